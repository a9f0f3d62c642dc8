/** Only for the packaged image (tools/package): the build itself uses the class path. */
module dev.millrace {
  requires com.networknt.schema;
  requires info.picocli;
  requires org.snakeyaml.engine;
  requires tools.jackson.databind;

  opens dev.millrace.cli to
      info.picocli;
}
