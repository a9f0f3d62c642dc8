package dev.millrace.config;

import java.util.Collection;
import java.util.Map;

/** Checks the reward section against the terms that the native core has. */
public final class TermCheck {
  private final ConfigLoader.Resolved resolved;
  private final Map<String, ? extends Collection<String>> terms;
  private final Mistakes mistakes = new Mistakes();

  private TermCheck(
      ConfigLoader.Resolved resolved, Map<String, ? extends Collection<String>> terms) {
    this.resolved = resolved;
    this.terms = terms;
  }

  /**
   * Throws a {@link ConfigException} that names every term and parameter that does not exist.
   *
   * @param terms parameter names of every reward term
   */
  public static void check(
      ConfigLoader.Resolved resolved, Map<String, ? extends Collection<String>> terms) {
    TermCheck check = new TermCheck(resolved, terms);
    resolved.config().rewards().forEach(check::reward);
    check.mistakes.refuse();
  }

  private void reward(String name, RunConfig.Reward reward) {
    Collection<String> params = terms.get(name);
    if (reward.expr() != null) {
      expression(name, reward, params != null);
      return;
    }
    if (params == null) {
      mistake("rewards." + name, "no such reward term" + Nearest.hint(name, terms.keySet()));
      return;
    }
    for (String param : reward.params().keySet()) {
      if (!params.contains(param)) {
        String hint = params.isEmpty() ? "; it has none" : Nearest.hint(param, params);
        mistake("rewards." + name + ".params." + param, "no such parameter" + hint);
      }
    }
  }

  /** What an expression says is for the native core to check: only it knows the robot. */
  private void expression(String name, RunConfig.Reward reward, boolean isTerm) {
    if (isTerm) {
      mistake("rewards." + name + ".expr", name + " is a term; call the expression something else");
    }
    if (!reward.params().isEmpty()) {
      mistake("rewards." + name + ".params", "an expression has none: write their values into it");
    }
  }

  private void mistake(String path, String text) {
    mistakes.add(resolved.place(path), path + ": " + text);
  }
}
