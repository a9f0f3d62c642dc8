package dev.millrace.core;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/**
 * The native libraries of one platform: an index (SHA-256, size and name of each file) and the
 * files that it names, which lie in one folder because they find each other there. Any thread, and
 * any number of processes at once.
 */
record NativePack(String index, List<NativeLibrary.Packed> files) {
  static final String INDEX = "index";

  /** Where the bytes of a pack come from: a folder or the jar. */
  interface Source {
    byte[] read(String name) throws IOException;
  }

  static NativePack of(Source source) throws IOException {
    String index = new String(source.read(INDEX), StandardCharsets.UTF_8);
    List<NativeLibrary.Packed> files = new ArrayList<>();
    for (String line : index.lines().toList()) {
      String[] parts = line.split(" ", 3);
      if (parts.length != 3 || !parts[1].matches("[0-9]{1,12}") || !isPlainName(parts[2])) {
        throw new IOException("the index of the native libraries has a bad line: " + line);
      }
      files.add(new NativeLibrary.Packed(parts[2], Long.parseLong(parts[1]), parts[0]));
    }
    return new NativePack(index, List.copyOf(files));
  }

  private static boolean isPlainName(String name) {
    return name.matches("[A-Za-z0-9._+-]+") && !name.startsWith(".");
  }

  /**
   * Compares sizes only, which is free at every start: a shortened library would not fail to load,
   * touching its missing pages would kill the process (SIGBUS).
   */
  void checkSizes(Path folder) throws IOException {
    for (NativeLibrary.Packed file : files) {
      Path path = folder.resolve(file.name());
      if (!Files.isRegularFile(path)) {
        throw new NoSuchFileException(path + " is missing");
      }
      if (Files.size(path) != file.bytes()) {
        throw new IOException(path + " has " + Files.size(path) + " bytes, not " + file.bytes());
      }
    }
  }

  /** Names the files whose contents are not those of the index. */
  List<String> damaged(Path folder) throws IOException {
    List<String> names = new ArrayList<>();
    for (NativeLibrary.Packed file : files) {
      if (!sha256(Files.readAllBytes(folder.resolve(file.name()))).equals(file.sha256())) {
        names.add(file.name());
      }
    }
    return names;
  }

  /**
   * Returns the folder of this pack in the cache, named by the hash of the index; extracts it first
   * when it is not there or not whole.
   */
  Path extract(Source source, Path cache) throws IOException {
    Path target =
        cache
            .resolve(sha256(index.getBytes(StandardCharsets.UTF_8)).substring(0, 32))
            .toAbsolutePath();
    if (isWhole(target)) {
      return target;
    }
    Files.createDirectories(cache);
    // A file lock holds between processes only, so threads queue on the class. Renaming alone would
    // not do: a second process could move away the good folder that the first one just made.
    synchronized (NativePack.class) {
      try (FileChannel channel =
              FileChannel.open(
                  cache.resolve("lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
          FileLock lock = channel.lock()) {
        if (lock.isValid() && !isWhole(target)) {
          replace(target, source, cache);
        }
      }
    }
    return target;
  }

  private void replace(Path target, Source source, Path cache) throws IOException {
    Path work = Files.createTempDirectory(cache, "extract");
    try {
      for (NativeLibrary.Packed file : files) {
        byte[] bytes = source.read(file.name());
        if (!sha256(bytes).equals(file.sha256())) {
          throw new IOException(file.name() + " is damaged in the jar: its SHA-256 differs");
        }
        Files.write(work.resolve(file.name()), bytes);
      }
      Files.writeString(work.resolve(INDEX), index);
      if (Files.exists(target)) {
        Path old = Files.createTempDirectory(cache, "damaged").resolve("old");
        Files.move(target, old, StandardCopyOption.ATOMIC_MOVE);
        delete(old.getParent());
      }
      Files.move(work, target, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      delete(work);
      throw e;
    }
  }

  private boolean isWhole(Path folder) {
    try {
      checkSizes(folder);
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  /** Removes a folder and everything in it, if it is there. */
  static void delete(Path folder) throws IOException {
    if (Files.isDirectory(folder)) {
      try (var children = Files.list(folder)) {
        for (Path child : children.toList()) {
          delete(child);
        }
      }
    }
    Files.deleteIfExists(folder);
  }

  private static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }
}
