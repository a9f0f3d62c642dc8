package dev.millrace.config;

import java.util.Collection;
import java.util.Map;

/** Checks the reward section against the terms that the native core has. */
public final class TermCheck {
  private TermCheck() {}

  /**
   * Throws a {@link ConfigException} for the first term or parameter that does not exist.
   *
   * @param terms parameter names of every reward term
   */
  public static void check(RunConfig config, Map<String, ? extends Collection<String>> terms) {
    config
        .rewards()
        .forEach(
            (name, reward) -> {
              Collection<String> params = terms.get(name);
              if (reward.expr() != null) {
                checkExpression(name, reward, params != null);
                return;
              }
              if (params == null) {
                throw new ConfigException(
                    "rewards."
                        + name
                        + ": no such reward term"
                        + Nearest.hint(name, terms.keySet()));
              }
              for (String param : reward.params().keySet()) {
                if (!params.contains(param)) {
                  String hint = params.isEmpty() ? "; it has none" : Nearest.hint(param, params);
                  throw new ConfigException(
                      "rewards." + name + ".params." + param + ": no such parameter" + hint);
                }
              }
            });
  }

  /** What an expression says is for the native core to check: only it knows the robot. */
  private static void checkExpression(String name, RunConfig.Reward reward, boolean isTerm) {
    if (isTerm) {
      throw new ConfigException(
          "rewards." + name + ".expr: " + name + " is a term; call the expression something else");
    }
    if (!reward.params().isEmpty()) {
      throw new ConfigException(
          "rewards." + name + ".params: an expression has none: write their values into it");
    }
  }
}
