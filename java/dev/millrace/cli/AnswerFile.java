package dev.millrace.cli;

import dev.millrace.io.FileErrors;
import dev.millrace.run.BadInputException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/** A file that the user names for an answer. */
final class AnswerFile {
  private AnswerFile() {}

  /** Before the work whose answer it gets; null if none was named. */
  static void refuseUnusable(Path file) {
    if (file == null) {
      return;
    }
    if (Files.exists(file)) {
      throw new BadInputException(file + ": exists already; name another file");
    }
    Path folder = file.toAbsolutePath().getParent();
    if (!Files.isDirectory(folder)) {
      throw new BadInputException("cannot write " + file + ": there is no folder " + folder);
    }
    Optional<String> why = FileErrors.whyNothingNew(folder);
    if (why.isPresent()) {
      throw new BadInputException("cannot write " + file + ": " + folder + ": " + why.get());
    }
  }
}
