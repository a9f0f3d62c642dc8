package dev.millrace.config;

import dev.millrace.config.YamlNode.Kind;
import dev.millrace.config.YamlNode.Mapping;
import dev.millrace.config.YamlNode.Position;
import dev.millrace.config.YamlNode.Scalar;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Turns a tree into records and back. The records are the schema: a key that no component has, a
 * component that no key has (unless it may be null), a wrong type and a value out of range are
 * mistakes that name the place, the key's path and, where there is one, the name that was probably
 * meant. All of them are found.
 */
final class RecordBinder {
  private final Mistakes mistakes;

  private RecordBinder(Mistakes mistakes) {
    this.mistakes = mistakes;
  }

  /** Null if there were mistakes. */
  static <T extends Record> T bind(Mapping root, Class<T> type, Mistakes mistakes) {
    return type.cast(new RecordBinder(mistakes).record(root, "", type));
  }

  /** The keys a record stands for, in order. */
  static List<String> keys(Class<?> type) {
    return Arrays.stream(type.getRecordComponents()).map(RecordBinder::key).toList();
  }

  /** Records as nested maps with the configuration's own key names. */
  static Map<String, Object> tree(Record record) {
    Map<String, Object> tree = new LinkedHashMap<>();
    for (RecordComponent component : record.getClass().getRecordComponents()) {
      Object value = get(component, record);
      Nullable nullable = component.getAnnotation(Nullable.class);
      if (value != null || nullable == null || nullable.shown()) {
        tree.put(key(component), plain(value));
      }
    }
    return tree;
  }

  private static Object plain(Object value) {
    if (value instanceof Threads threads) {
      return threads.count() == 0 ? "auto" : (Object) threads.count();
    }
    if (value instanceof Record record) {
      return tree(record);
    }
    if (value instanceof Enum<?> constant) {
      return constant.name().toLowerCase(Locale.ROOT);
    }
    if (value instanceof Map<?, ?> map) {
      Map<String, Object> tree = new LinkedHashMap<>();
      map.forEach((key, each) -> tree.put((String) key, plain(each)));
      return tree;
    }
    return value;
  }

  /** What keeps a single value from being one; it ends here, what stands beside it goes on. */
  private static final class WrongValue extends RuntimeException {
    private static final long serialVersionUID = 1;

    WrongValue(String message) {
      super(message);
    }
  }

  private Record record(YamlNode node, String path, Class<?> type) {
    if (!(node instanceof Mapping mapping)) {
      throw wrong(node, path, "a group of keys");
    }
    int before = mistakes.count();
    List<String> known = keys(type);
    mapping
        .entries()
        .forEach(
            (key, value) -> {
              if (!known.contains(key)) {
                mistakes.add(
                    value.position(), "unknown key " + join(path, key) + Nearest.hint(key, known));
              }
            });
    List<Object> values = new ArrayList<>();
    List<String> missing = new ArrayList<>();
    for (RecordComponent component : type.getRecordComponents()) {
      String at = join(path, key(component));
      YamlNode given = mapping.entries().get(key(component));
      boolean isEmpty = given == null && component.getType() == Map.class;
      YamlNode value = isEmpty ? new Mapping(mapping.position(), Map.of()) : given;
      if (value == null && !component.isAnnotationPresent(Nullable.class)) {
        missing.add(at);
      }
      values.add(value == null ? null : orMistake(value, () -> value(value, at, component)));
    }
    if (!missing.isEmpty()) {
      mistakes.add(
          path.isEmpty() ? Position.of(mapping.position().source()) : mapping.position(),
          String.join(", ", missing) + (missing.size() == 1 ? " is missing" : " are missing"));
    }
    return mistakes.count() > before ? null : construct(type, values);
  }

  private Object orMistake(YamlNode node, Supplier<Object> value) {
    try {
      return value.get();
    } catch (WrongValue e) {
      mistakes.add(node.position(), e.getMessage());
      return null;
    }
  }

  private Object value(YamlNode node, String path, RecordComponent component) {
    if (component.isAnnotationPresent(Nullable.class)
        && node instanceof Scalar scalar
        && scalar.kind() == Kind.NULL) {
      return null;
    }
    Object value = value(node, path, component.getGenericType());
    Range range = component.getAnnotation(Range.class);
    boolean auto = Threads.AUTO.equals(value);
    if (range != null && !auto) {
      Object number = value instanceof Threads threads ? (Object) threads.count() : value;
      double asDouble = ((Number) number).doubleValue();
      if (asDouble < range.min() || asDouble > range.max()) {
        String allowed =
            asDouble < range.min()
                ? "at least " + Numbers.text(range.min())
                : "at most " + Numbers.text(range.max());
        throw wrong(node, path, allowed);
      }
    }
    return value;
  }

  private Object value(YamlNode node, String path, Type type) {
    if (type instanceof ParameterizedType map) {
      return map(node, path, map.getActualTypeArguments()[1]);
    }
    Class<?> plain = (Class<?>) type;
    if (plain.isRecord() && plain != Threads.class) {
      return record(node, path, plain);
    }
    if (!(node instanceof Scalar scalar)) {
      throw wrong(node, path, "a single value");
    }
    return scalar(scalar, path, plain);
  }

  private Map<String, Object> map(YamlNode node, String path, Type valueType) {
    if (!(node instanceof Mapping mapping)) {
      throw wrong(node, path, "a group of keys");
    }
    Map<String, Object> values = new LinkedHashMap<>();
    mapping
        .entries()
        .forEach(
            (key, each) ->
                values.put(key, orMistake(each, () -> value(each, join(path, key), valueType))));
    return Collections.unmodifiableMap(values);
  }

  private static Object scalar(Scalar scalar, String path, Class<?> type) {
    if (type == String.class) {
      if (scalar.kind() == Kind.NULL) {
        throw wrong(scalar, path, "a text");
      }
      if (scalar.text().indexOf('\0') >= 0) { // no file has such a name, and C ends a text there
        throw wrong(scalar, path, "a text without NUL");
      }
      return scalar.text();
    }
    if (type == boolean.class) {
      if (scalar.kind() != Kind.BOOLEAN) {
        throw wrong(scalar, path, "true or false");
      }
      return scalar.text().equalsIgnoreCase("true");
    }
    if (type == double.class || type == Double.class) {
      return number(scalar, path);
    }
    if (type == long.class) {
      return integer(scalar, path, "an integer", Long.MAX_VALUE);
    }
    if (type == int.class) {
      return (int) integer(scalar, path, "an integer", Integer.MAX_VALUE);
    }
    if (type == Threads.class) {
      if (scalar.text().equals("auto")) {
        return Threads.AUTO;
      }
      long count = integer(scalar, path, "an integer or auto", Integer.MAX_VALUE);
      if (count == 0) {
        throw wrong(scalar, path, "at least 1, or auto");
      }
      return new Threads((int) count);
    }
    return constant(scalar, path, type);
  }

  private static double number(Scalar scalar, String path) {
    double value = Double.NaN;
    if (scalar.kind() == Kind.INTEGER) {
      value = Numbers.integer(scalar.text()).doubleValue();
    } else if (scalar.kind() == Kind.NUMBER && scalar.text().matches("[-+0-9.eE]+")) {
      value = Double.parseDouble(scalar.text());
    }
    if (!Double.isFinite(value)) {
      throw wrong(scalar, path, "a finite number");
    }
    return value;
  }

  private static long integer(Scalar scalar, String path, String expected, long limit) {
    if (scalar.kind() != Kind.INTEGER) {
      throw wrong(scalar, path, expected);
    }
    var value = Numbers.integer(scalar.text());
    if (value.abs().bitLength() > 63 || value.abs().longValue() > limit) {
      throw wrong(scalar, path, "an integer of at most " + limit);
    }
    return value.longValue();
  }

  private static Object constant(Scalar scalar, String path, Class<?> type) {
    List<String> names = new ArrayList<>();
    for (Object constant : type.getEnumConstants()) {
      String name = ((Enum<?>) constant).name().toLowerCase(Locale.ROOT);
      if (name.equals(scalar.text())) {
        return constant;
      }
      names.add(name);
    }
    throw wrong(scalar, path, "one of " + String.join(", ", names));
  }

  private static WrongValue wrong(YamlNode node, String path, String expected) {
    return new WrongValue(path + ": expected " + expected + ", got " + got(node));
  }

  /** What stands there, as a message says it. */
  static String got(YamlNode node) {
    if (node instanceof Mapping) {
      return "a group of keys";
    }
    if (!(node instanceof Scalar scalar)) {
      return "a list";
    }
    return switch (scalar.kind()) {
      case NULL -> "nothing";
      case TEXT -> "\"" + scalar.text().replace("\0", "\\0") + "\"";
      default -> scalar.text();
    };
  }

  private static String join(String path, String key) {
    return path.isEmpty() ? key : path + "." + key;
  }

  private static String key(RecordComponent component) {
    return component.getName().replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
  }

  private static Object get(RecordComponent component, Record record) {
    try {
      return component.getAccessor().invoke(record);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(component.toString(), e);
    }
  }

  private static Record construct(Class<?> type, List<Object> values) {
    Class<?>[] types =
        Arrays.stream(type.getRecordComponents())
            .map(RecordComponent::getType)
            .toArray(Class<?>[]::new);
    try {
      return (Record) type.getDeclaredConstructor(types).newInstance(values.toArray());
    } catch (ReflectiveOperationException e) {
      throw new LinkageError(type.toString(), e);
    }
  }
}
