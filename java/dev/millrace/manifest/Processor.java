package dev.millrace.manifest;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The processor's own name: measurements of different ones are not comparable. */
final class Processor {
  private static final Path CPU_INFO = Path.of("/proc/cpuinfo");

  private Processor() {}

  /** The architecture where the system does not tell the model. */
  static String name() {
    try {
      return name(Files.readString(CPU_INFO));
    } catch (IOException e) {
      return System.getProperty("os.arch");
    }
  }

  static String name(String cpuInfo) {
    return cpuInfo
        .lines()
        .filter(line -> line.startsWith("model name"))
        .map(line -> line.substring(line.indexOf(':') + 1).strip())
        .findFirst()
        .orElse(System.getProperty("os.arch"));
  }
}
