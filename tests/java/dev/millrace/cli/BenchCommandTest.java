package dev.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.millrace.core.Json;
import dev.millrace.core.NativeException;
import dev.millrace.run.FakeCore;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;

class BenchCommandTest extends CommandLineTest<FakeCore> {
  BenchCommandTest() {
    super(new FakeCore());
  }

  @Test
  void aBenchPassesItsOptionsOnAndCanBeCompared() throws IOException {
    String bench =
        "bench replay --pipeline cpu_pinned_double_buffer --layout sac --bandwidth --out ";
    assertEquals(0, run((bench + path("a.json")).split(" ")), () -> err);
    JsonNode report = Json.parse(Files.readString(folder.resolve("a.json")));
    JsonNode request = report.path("request");
    assertEquals("cpu_pinned_double_buffer", request.path("pipeline").asString());
    assertEquals("sac", request.path("layout").asString());
    assertTrue(request.path("bandwidth").asBoolean());
    assertEquals("replay", report.path("kind").asString());
    assertTrue(report.path("build").has("cpu"));
    assertEquals(0, run("bench", "train", "g1_walk_flat", "--out", path("train.json")));
    report = Json.parse(Files.readString(folder.resolve("train.json")));
    assertEquals("g1_walk_flat", report.path("config").path("task").asString());
    assertEquals(0, run((bench.replace("sac", "row") + path("b.json")).split(" ")), () -> err);
    assertEquals(3, run("compare", path("a.json"), path("b.json")));
    assertTrue(out.contains("request.layout  sac  row"), out);
    assertEquals(0, run("compare", path("a.json"), path("b.json"), "--varying", "layout"));
    assertTrue(out.contains("subject request.layout: sac | row"), out);
    assertOneLine(2, "cannot write", "bench", "physics", "--out", path("none/a.json"));
  }

  @Test
  void aBenchThatIsTooLargeIsBadInput() {
    String robots = "--envs 2000000000: expected 1 to 1048576";
    assertOneLine(2, robots, "bench", "physics", "--envs", "2000000000");
    assertOneLine(2, robots, "bench", "update", "cartpole_swingup", "--envs", "2000000000");
    assertOneLine(2, robots, "bench", "replay", "--envs", "2000000000");
    String rows = " 100000000000: expected 1 to 4294967295";
    assertOneLine(2, "--samples" + rows, "bench", "replay", "--samples", "100000000000");
    assertOneLine(2, "--capacity" + rows, "bench", "replay", "--capacity", "100000000000");
    assertOneLine(2, "--depth 17: expected 1 to 16", "bench", "replay", "--depth", "17");
    assertOneLine(2, "--dims 0: expected 1 to 65536", "bench", "replay", "--dims", "1,0,1");
    assertOneLine(2, "--input-mib -1: expected 1 to", "bench", "graphs", "--input-mib", "-1");
    assertOneLine(2, "--threads 0: expected 1 to 1024", "bench", "physics", "--threads", "0");
    core.benchFailure = new NativeException("resource", "ring 1 B > 0 B");
    String asked = "millrace: bench replay --capacity 4000000000: does not fit: ring 1 B > 0 B";
    assertOneLine(2, asked, "bench", "replay", "--capacity", "4000000000");
    core.benchFailure = new NativeException("device", "lost");
    assertOneLine(4, "lost", "bench", "replay");
  }

  @Test
  void aCountOfNothingIsNamed() {
    for (String each :
        List.of(
            "physics --ticks",
            "physics --rounds",
            "replay --runs",
            "replay --ticks",
            "update cartpole_swingup --launches",
            "update cartpole_swingup --runs",
            "learner cartpole_swingup --launches",
            "learner cartpole_swingup --runs",
            "train cartpole_swingup --ticks",
            "train cartpole_swingup --rounds")) {
      String option = each.substring(each.indexOf("--"));
      String[] args = ("bench " + each + " -1").split(" ");
      assertOneLine(2, option + " -1: expected at least 1", args);
    }
    assertOneLine(2, "--rounds 9: expected at least 10", "bench", "graphs", "--rounds", "9");
    assertOneLine(
        2,
        "--counted 40: expected 1 to 30, which is --ticks",
        "bench",
        "replay",
        "--counted",
        "40");
    String slots = "--capacity 9: expected at least 1536 = (--depth + 1) x --envs"; // (2 + 1) x 512
    assertOneLine(2, slots, "bench", "replay", "--capacity", "9");
  }

  @Test
  void aBenchShowsItsMedians() {
    core.report.putObject("medians").put("gather_us", 12.5);
    core.report.putObject("iqr").put("gather_us", 0.5);
    assertEquals(0, run("bench", "replay"));
    assertTrue(out.contains("measured   median    IQR\ngather_us  12.500  0.500\n"), out);
  }

  @Test
  void aWrongWordIsNamedWithItsOptionAndWhatIsAllowed() {
    String devices = ": expected one of cpu, cuda, metal";
    for (String bench :
        List.of("replay", "graphs", "update cartpole_swingup", "learner cartpole_swingup")) {
      assertOneLine(2, "--device x" + devices, ("bench " + bench + " --device x").split(" "));
    }
    assertOneLine(
        2, "--mode x: expected one of serial, prefetch", "bench", "replay", "--mode", "x");
    String pipelines = "--pipeline x: expected one of device_resident, cpu_pinned_double_buffer";
    assertOneLine(2, pipelines, "bench", "replay", "--pipeline", "x");
    String layouts = "--layout x: expected one of row, sac, critic";
    assertOneLine(2, layouts, "bench", "replay", "--layout", "x");
    String precisions = "--precision x: expected one of fp32, tf32, bf16";
    assertOneLine(2, precisions, "bench", "learner", "cartpole_swingup", "--precision", "x");
    for (String name : List.of("x", "")) {
      String cases = "--case " + name + ": expected one of one_host_scalar, varying_inputs, ";
      assertOneLine(2, cases, "bench", "graphs", "--case", name);
    }
    String dims = "--dims 98,29: expected three numbers, OBS,ACT,CRITIC";
    assertOneLine(2, dims, "bench", "replay", "--dims", "98,29");
    assertOneLine(2, "--model /none: no such file", "bench", "physics", "--model", "/none");
    assertOneLine(2, "--model /: is a folder", "bench", "physics", "--model", "/");
    assertFalse(core.report.has("request"), "measured for nothing");
  }

  @Test
  void theHelpNamesTheLimits() {
    assertHelp("physics", "1 to 1048576", "1 to 1024");
    assertHelp(
        "replay",
        "1 to 1048576",
        "1 to 4294967295",
        "1 to 16",
        "1 to 65536",
        "at least (--depth + 1) x --envs",
        "1 to --ticks");
    assertHelp("update", "1 to 1048576");
    assertHelp("graphs", "at least 10", "1 to 1048576");
  }

  private void assertHelp(String bench, String... parts) {
    assertEquals(0, run("bench", bench, "--help"));
    String help = out.replaceAll("\\s+", " ");
    for (String part : parts) {
      assertTrue(help.contains(part), part + " is not in " + help);
    }
  }
}
