/** Only for the packaged image (tools/package): the build itself uses the class path. */
open module dev.millrace {
  requires com.networknt.schema;
  requires info.picocli;
  requires org.snakeyaml.engine;
  requires tools.jackson.databind;
}
