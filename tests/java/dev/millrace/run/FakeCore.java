package dev.millrace.run;

import dev.millrace.checkpoint.FakeEngine;
import dev.millrace.core.Core;
import dev.millrace.core.Engine;
import dev.millrace.core.Json;
import dev.millrace.core.NativeException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ArrayNode;
import tools.jackson.databind.node.ObjectNode;

/** A core whose answers a test sets; what it was asked is kept. */
public final class FakeCore implements Core {
  public Supplier<FakeEngine> engines = () -> new FakeEngine(1);
  public final ArrayNode findings = Json.object().putArray("findings");
  public final List<ObjectNode> opened = new ArrayList<>();
  public final ObjectNode report = Json.object();
  public FakeEngine last;
  public NativeException benchFailure; // what a bench ends with; null: it succeeds

  public FakeCore refuse(String id, String reason) {
    findings
        .addObject()
        .put("id", id)
        .put("verdict", "REFUSED")
        .put("subject", "replay")
        .put("reason", reason)
        .put("hint", "");
    return this;
  }

  @Override
  public JsonNode describe() {
    ObjectNode root = Json.object().put("version", "fake").put("compiler", "none");
    root.put("blas", "none").put("cores", 2);
    root.putObject("mujoco").put("compiled", "2.2.2").put("loaded", "2.2.2");
    root.putObject("memory").put("available_bytes", 8L << 30).put("source", "test");
    ArrayNode backends = root.putArray("backends");
    ObjectNode cpu = backends.addObject().put("name", "cpu").put("available", true);
    cpu.put("device", "2 cores").put("verified", "device");
    ObjectNode cuda = backends.addObject().put("name", "cuda").put("available", false);
    cuda.put("reason", "not built").put("verified", "device");
    ObjectNode metal = backends.addObject().put("name", "metal").put("available", true);
    metal.put("device", "Apple M0").put("verified", "host");
    ArrayNode tasks = root.putArray("tasks");
    for (String name : List.of("cartpole_swingup", "g1_walk_flat")) {
      ObjectNode task = tasks.addObject().put("name", name).put("algo", "fastsac");
      task.put("summary", "A task.").put("observation_dim", 5).put("tick_seconds", 0.02);
      task.putArray("rewards").addObject().put("term", "alive").put("weight", 1.0);
    }
    ArrayNode terms = root.putArray("terms");
    for (String name :
        List.of(
            "upright",
            "tracking_lin_vel",
            "tracking_ang_vel",
            "penalty_ang_vel_xy",
            "penalty_orientation",
            "penalty_action_rate",
            "pose",
            "penalty_feet_ori",
            "feet_phase",
            "alive")) {
      ObjectNode term = terms.addObject().put("name", name).put("kind", "reward");
      term.put("unit", "1").put("summary", "A reward.");
      term.putArray("params").addObject().put("name", "scale").put("default", 0.25);
    }
    return root;
  }

  @Override
  public JsonNode preflight(ObjectNode config) {
    ObjectNode root = Json.object();
    root.set("findings", findings);
    root.putObject("device")
        .put("requested", "auto")
        .put("effective", "cpu")
        .put("reason", "cuda: not built");
    ObjectNode term = root.putArray("terms").addObject().put("kind", "event").put("term", "push");
    term.put("detail", "off").put("stream", "event").put("draws_per_tick", 7);
    term.put("draws_per_reset", 1).put("class", "INTERVAL").put("verdict", "EAGER_ONLY");
    term.put("reason", "no timer").put("hint", "add one");
    ObjectNode update = root.putObject("graphs").putObject("update").put("requested", "auto");
    update.put("name", "update").putArray("findings");
    ObjectNode op = update.putArray("ops").addObject().put("name", "tick").put("site", "a \"b\"");
    op.put("device", "cpu").putArray("parts").add("1 push");
    op.putArray("reads").add("timer");
    op.putArray("writes").add("timer").add("row");
    ArrayNode carriers = update.putArray("carriers");
    for (String name : List.of("timer", "row")) {
      ObjectNode carrier = carriers.addObject().put("name", name).put("bytes", 2048);
      carrier.put("owner", "update").put("device", "cpu");
    }
    ObjectNode host = root.putObject("budget").putObject("host");
    host.putArray("items").addObject().put("name", "slots").put("bytes", 224).put("formula", "f");
    host.put("total_bytes", 224).put("limit_bytes", 1000).put("free_bytes", 2000);
    return root;
  }

  @Override
  public Engine open(ObjectNode config) {
    opened.add(config);
    last = engines.get();
    return last;
  }

  @Override
  public JsonNode bench(ObjectNode request) {
    if (benchFailure != null) {
      throw benchFailure;
    }
    report.put("ratio", 0.97);
    report.putArray("rounds").addObject().put("ours_ms", 1.5).put("bare_ms", 1.4);
    report.set("request", request);
    return report;
  }

  @Override
  public JsonNode motion(ObjectNode request) {
    ObjectNode report = Json.object().put("source", "built-in").put("frames", 500);
    report.set("request", request);
    return report;
  }
}
