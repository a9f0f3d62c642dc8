package dev.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Rules of the tree that no compiler checks: this test reads the sources. */
class TidyTest {
  private static final int MAX_LINES = 700;
  private static final int MAX_NATIVE_METHODS = 16;

  /** Sources by their path from the root, with '/' between the names. */
  private static final TreeMap<String, String> SOURCES = new TreeMap<>();

  @BeforeAll
  static void read() throws IOException {
    for (String folder : List.of("cpp", "cuda", "metal", "java", "tests", "tools", "cmake")) {
      if (Files.isDirectory(Path.of(folder))) {
        try (Stream<Path> paths = Files.walk(Path.of(folder))) {
          for (Path path : paths.filter(TidyTest::isSource).toList()) {
            SOURCES.put(path.toString(), Files.readString(path));
          }
        }
      }
    }
    for (String file : List.of("pom.xml", "CMakeLists.txt", "README.md")) {
      SOURCES.put(file, Files.readString(Path.of(file)));
    }
    assertTrue(SOURCES.containsKey("cpp/status.h"), "started outside the root of the project?");
  }

  private static boolean isSource(Path path) {
    String name = path.getFileName().toString();
    return Files.isRegularFile(path)
        && !path.toString().contains("node_modules")
        && (name.matches(".*\\.(cpp|h|cu|cuh|mm|metal|java|py|js|mjs|cmake|xml|yaml|json|sh)")
            || path.startsWith("tools"));
  }

  @Test
  void everyModuleHasItsTest() {
    List<String> missing =
        paths(path -> path.matches("cpp/[a-z0-9_]+\\.cpp"))
            .map(path -> "tests/" + path.replace(".cpp", "_test.cpp"))
            .filter(test -> !SOURCES.containsKey(test))
            .toList();
    assertEquals(List.of(), missing, "a module is one header, one source and one test");
  }

  @Test
  void everyModuleHasAHeaderThatOpensWithItsContract() {
    List<String> wrong = new ArrayList<>();
    paths(path -> path.matches("cpp/[a-z0-9_]+\\.cpp"))
        .map(path -> path.replace(".cpp", ".h"))
        .filter(header -> SOURCES.containsKey(header)) // a source may implement another's header
        .filter(header -> !SOURCES.get(header).startsWith("// "))
        .forEach(wrong::add);
    assertEquals(List.of(), wrong);
  }

  @Test
  void bannedWords() {
    List<String> found = new ArrayList<>();
    // Nothing outside a run's configuration may decide what it does.
    find(found, "\\bgetenv\\b", product("cpp/blas_threads.cpp"));
    // A critical section stops the garbage collector of every thread.
    find(found, "PrimitiveArrayCritical", code());
    // Results must not depend on what the compiler may reorder.
    find(found, "ffast-math|-Ofast", path -> code().test(path) || path.equals("CMakeLists.txt"));
    // A wait has a condition, not a duration.
    find(found, "\\bsleep_for\\b|\\busleep\\b|Thread\\.sleep", product());
    // Some languages have digits and capitals of their own.
    find(
        found,
        "\\.formatted\\(|(String\\.format|\\bprintf|to(Upp|Low)erCase)\\((?!\\s*Locale\\.)",
        product().and(path -> path.endsWith(".java")));
    find(found, "\\b(TO" + "DO|FIX" + "ME|XX" + "X)\\b", path -> !path.endsWith(".json"));
    assertEquals(List.of(), found);
  }

  @Test
  void noPackageRegistryIsNamed() {
    List<String> found = new ArrayList<>();
    String dot = "\\.";
    String hosts =
        Stream.of("repo1" + dot + "maven", "repo" + dot + "maven", "registry" + dot + "npmjs")
            .reduce("deb" + dot + "debian" + dot + "org|pypi" + dot + "org", (a, b) -> a + "|" + b);
    find(found, hosts, path -> true);
    assertEquals(List.of(), found);
  }

  @Test
  void nativeMethodsAreFewAndInOneClass() {
    Pattern method = Pattern.compile("^\\s*(?:\\w+\\s+)*native\\s+\\w", Pattern.MULTILINE);
    TreeMap<String, Long> counts = new TreeMap<>();
    paths(path -> path.startsWith("java/") && path.endsWith(".java"))
        .forEach(
            path -> {
              long count = method.matcher(SOURCES.get(path)).results().count();
              if (count > 0) {
                counts.put(path, count);
              }
            });
    assertEquals(Set.of("java/dev/millrace/core/NativeCore.java"), counts.keySet());
    long count = counts.firstEntry().getValue();
    assertTrue(count <= MAX_NATIVE_METHODS, count + " native methods: a new one needs an ADR");
  }

  @Test
  void platformTypesStayInTheirFolder() {
    List<String> found = new ArrayList<>();
    find(found, "<jni\\.h>|\\bJNIEnv\\b", path -> isNative(path) && !path.startsWith("cpp/jni/"));
    find(
        found,
        "cuda_runtime|\\bcuda(Stream|Event|Graph|Error)_t\\b",
        path ->
            isNative(path)
                && !path.matches("cuda/.*|tests/shim/cuda/.*|tests/cpp/cuda_runtime_test\\.cpp"));
    find(
        found,
        "#import|\\bid<MTL|Metal/Metal\\.h",
        path -> isNative(path) && !path.matches("metal/.*|tests/shim/.*"));
    assertEquals(List.of(), found);
  }

  @Test
  void whatEveryBackendCompilesIsFreestanding() {
    List<String> found = new ArrayList<>();
    Set<String> shared = Set.of("portable.h", "elementary.h", "philox.h", "state.h", "terms.h");
    Predicate<String> isShared =
        path -> path.startsWith("cpp/") && shared.contains(path.substring("cpp/".length()));
    find(found, "#include\\s*<|\\bstd::", isShared);
    find(found, "\\bdouble\\s+\\w", isShared);
    assertEquals(List.of(), found);
  }

  @Test
  void filesAreShort() {
    List<String> found =
        paths(code())
            .filter(path -> SOURCES.get(path).lines().count() > MAX_LINES)
            .map(path -> path + " has " + SOURCES.get(path).lines().count() + " lines")
            .toList();
    assertEquals(List.of(), found, "is each of these one noun?");
  }

  @Test
  void theCoreExportsOneSymbol() throws Exception {
    Path core = Path.of(System.getProperty("millrace.build"), "native", "libmillrace_core.so");
    Process nm =
        new ProcessBuilder("nm", "--dynamic", "--defined-only", core.toString())
            .redirectErrorStream(true)
            .start();
    String output = new String(nm.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, nm.waitFor(), output);
    List<String> symbols =
        output.lines().map(line -> line.substring(line.lastIndexOf(' ') + 1)).toList();
    assertEquals(List.of("JNI_OnLoad"), symbols);
  }

  /** Native and Java sources, without the ones named here and without this test. */
  private static Predicate<String> code(String... except) {
    return path ->
        (isNative(path) || path.endsWith(".java"))
            && !path.endsWith("/TidyTest.java")
            && !List.of(except).contains(path);
  }

  private static Predicate<String> product(String... except) {
    return code(except).and(path -> !path.startsWith("tests/"));
  }

  private static boolean isNative(String path) {
    return path.matches(".*\\.(cpp|h|cu|cuh|mm|metal)");
  }

  private static Stream<String> paths(Predicate<String> where) {
    return SOURCES.keySet().stream().filter(where);
  }

  private static void find(List<String> found, String pattern, Predicate<String> where) {
    Pattern compiled = Pattern.compile(pattern);
    paths(where)
        .forEach(
            path -> {
              Matcher matcher = compiled.matcher(SOURCES.get(path));
              while (matcher.find()) {
                long line = SOURCES.get(path).substring(0, matcher.start()).lines().count();
                found.add(path + ":" + Math.max(1, line) + ": " + matcher.group());
              }
            });
  }
}
