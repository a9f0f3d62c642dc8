package dev.millrace.manifest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.run.FakeCore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

class BuildInfoTest {
  @Test
  void theVersionIsThePomsAlsoWithoutAJar() throws IOException {
    Matcher pom =
        Pattern.compile("<version>(.*?)</version>").matcher(Files.readString(Path.of("pom.xml")));
    assertTrue(pom.find());
    assertEquals(pom.group(1), BuildInfo.version());
    String commit = BuildInfo.commit();
    assertTrue(commit.matches("[0-9a-f]{7,40}(-dirty)?|unknown"), commit);
  }

  @Test
  void aManifestNamesTheCommitAndTheProcessor() {
    JsonNode build = BuildInfo.of(new FakeCore().describe());
    assertEquals(BuildInfo.commit(), build.path("commit").asString());
    assertFalse(build.path("cpu").asString().isBlank());
  }

  @Test
  void theProcessorIsNamedOnceAndOtherwiseItsArchitecture() {
    String two = "processor : 0\nmodel name\t: Fast One 3.0\nmodel name\t: Fast One 3.0\n";
    assertEquals("Fast One 3.0", Processor.name(two));
    assertEquals(System.getProperty("os.arch"), Processor.name("processor : 0\n"));
  }
}
