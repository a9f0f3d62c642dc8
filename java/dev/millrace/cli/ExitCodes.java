package dev.millrace.cli;

import dev.millrace.checkpoint.CheckpointException;
import dev.millrace.config.ConfigException;
import dev.millrace.core.NativeException;
import dev.millrace.core.NativeUnavailableException;
import dev.millrace.preflight.RefusedException;
import dev.millrace.run.BadInputException;
import dev.millrace.run.RunFailure;
import java.io.IOException;
import picocli.CommandLine;

/** What the process ends with, for every kind of failure. */
final class ExitCodes {
  static final int OK = 0;
  static final int INTERNAL_ERROR = 1;
  static final int USAGE = 2;
  static final int REFUSED = 3;
  static final int RUN_FAILED = 4;
  static final int NATIVE_UNAVAILABLE = 5;

  private ExitCodes() {}

  /** A device that was named and is not here, wherever that was found out. */
  private static boolean isUnavailable(Throwable failure) {
    return failure instanceof NativeException e && e.code().equals("unavailable");
  }

  static int of(Throwable failure) {
    if (failure instanceof CommandLine.ParameterException
        || failure instanceof ConfigException
        || failure instanceof BadInputException
        || failure instanceof CheckpointException
        || failure instanceof IllegalArgumentException
        || failure instanceof IOException) {
      return USAGE;
    }
    if (failure instanceof RefusedException || isUnavailable(failure)) {
      return REFUSED;
    }
    if (failure instanceof RunFailure || failure instanceof NativeException) {
      return RUN_FAILED;
    }
    if (failure instanceof NativeUnavailableException) {
      return NATIVE_UNAVAILABLE;
    }
    return INTERNAL_ERROR;
  }
}
