package dev.millrace.core;

import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * The native core as the rest of the program sees it; the JSON shapes are those of {@code
 * NativeCore}. {@link Natives} is the real one.
 */
public interface Core {
  /** What this build is and knows: backends, tasks, terms. */
  JsonNode describe();

  /** Every finding for a resolved configuration, and the budget; allocates nothing large. */
  JsonNode preflight(ObjectNode config);

  /** Opens a run; the calling thread owns it. */
  Engine open(ObjectNode config);

  /** Runs a benchmark and returns its report. */
  JsonNode bench(ObjectNode request);

  /** Describes, converts or makes a reference motion. */
  JsonNode motion(ObjectNode request);
}
