package dev.millrace.io;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** SHA-256 of bytes and files, as lower-case hex. */
public final class Sha256 {
  private static final int CHUNK_BYTES = 1 << 20;

  private Sha256() {}

  public static MessageDigest digest() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError("every JDK has SHA-256", e);
    }
  }

  public static String hex(MessageDigest digest) {
    return HexFormat.of().formatHex(digest.digest());
  }

  public static String of(byte[] bytes) {
    return HexFormat.of().formatHex(digest().digest(bytes));
  }

  public static String of(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      return of(channel);
    }
  }

  /** Of everything in an open file; its position is left where it was. */
  public static String of(FileChannel channel) throws IOException {
    MessageDigest digest = digest();
    ByteBuffer chunk = ByteBuffer.allocate(CHUNK_BYTES);
    long at = 0;
    while (channel.read(chunk.clear(), at) > 0) {
      at += chunk.position();
      digest.update(chunk.flip());
    }
    return hex(digest);
  }
}
