package dev.millrace.io;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;

/** Turns file errors into one clear line that names the file and the reason. */
public final class FileErrors {
  private FileErrors() {}

  /** An exception whose message is complete: {@code cannot write PATH: reason}. */
  public static IOException cannot(String what, Path file, IOException cause) {
    return new IOException("cannot " + what + " " + file + ": " + reason(cause), cause);
  }

  /**
   * Why nothing new can be put into a folder that is there; empty if it can. Permissions alone do
   * not tell: a file system may be full, or hold nothing new.
   */
  public static Optional<String> whyNothingNew(Path folder) {
    try {
      Files.delete(Files.createTempDirectory(folder, ".millrace"));
      return Optional.empty();
    } catch (NoSuchFileException e) { // what /proc says of every new name
      return Optional.of("nothing can be created there");
    } catch (IOException e) {
      return Optional.of(reason(e));
    }
  }

  /** The reason alone, without the path that some exceptions carry. */
  public static String reason(IOException error) {
    if (error instanceof NoSuchFileException) {
      return "no such file or folder";
    }
    if (error instanceof AccessDeniedException) {
      return "permission denied";
    }
    if (error instanceof FileAlreadyExistsException) {
      return "it exists already";
    }
    if (error instanceof DirectoryNotEmptyException) {
      return "the folder is not empty";
    }
    if (error instanceof CharacterCodingException) {
      return "it is not UTF-8 text";
    }
    if (error instanceof FileSystemException known && known.getReason() != null) {
      return known.getReason();
    }
    return error.getMessage() == null ? error.getClass().getSimpleName() : error.getMessage();
  }
}
