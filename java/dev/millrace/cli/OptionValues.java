package dev.millrace.cli;

import dev.millrace.config.RunConfig.Profile;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import picocli.CommandLine;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Turns the text of an option into its value; a wrong one is named beside what is allowed. */
final class OptionValues {
  private OptionValues() {}

  /** For all sub-commands that are there already. */
  static void register(CommandLine line) {
    var wholeInt = number(Integer::valueOf, "a whole number of at most " + Integer.MAX_VALUE);
    var wholeLong = number(Long::valueOf, "a whole number of at most " + Long.MAX_VALUE);
    var real = number(Double::valueOf, "a number");
    line.registerConverter(int.class, wholeInt).registerConverter(Integer.class, wholeInt);
    line.registerConverter(long.class, wholeLong).registerConverter(Long.class, wholeLong);
    line.registerConverter(double.class, real).registerConverter(Double.class, real);
    line.registerConverter(Path.class, OptionValues::path);
    line.registerConverter(Profile.class, word(Profile.values()));
    line.registerConverter(BenchCommand.Mode.class, word(BenchCommand.Mode.values()));
  }

  private static <T extends Number> ITypeConverter<T> number(
      Function<String, T> parse, String allowed) {
    return text -> {
      try {
        return parse.apply(text);
      } catch (NumberFormatException e) {
        throw expected(allowed, text);
      }
    };
  }

  /** An empty one would mean the current folder. */
  private static Path path(String text) {
    if (text.isEmpty()) {
      throw expected("a file or folder", text);
    }
    return Path.of(text);
  }

  private static <T extends Enum<T>> ITypeConverter<T> word(T[] values) {
    List<String> words =
        Arrays.stream(values).map(each -> each.name().toLowerCase(Locale.ROOT)).toList();
    return text -> {
      int at = words.indexOf(text);
      if (at < 0) {
        throw expected("one of " + String.join(", ", words), text);
      }
      return values[at];
    };
  }

  private static TypeConversionException expected(String allowed, String got) {
    return new TypeConversionException("expected " + allowed + ", got \"" + got + '"');
  }
}
