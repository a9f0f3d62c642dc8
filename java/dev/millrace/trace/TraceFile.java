package dev.millrace.trace;

import dev.millrace.io.FileErrors;
import dev.millrace.run.BadInputException;
import dev.millrace.run.RunDirectory;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import tools.jackson.core.JacksonException;
import tools.jackson.core.JsonParser;
import tools.jackson.core.JsonToken;
import tools.jackson.core.ObjectReadContext;
import tools.jackson.core.exc.JacksonIOException;
import tools.jackson.core.json.JsonFactory;

/**
 * The spans of a Chrome trace, read in one pass: of each only its two times are kept, so a file of
 * hundreds of megabytes fits a small heap. A file that ends too early gives what it holds.
 */
final class TraceFile {
  private static final double NANOS_PER_MICRO = 1e3;

  private final Map<String, Spans> spans = new TreeMap<>();
  private final Map<Spans.Track, String> threadNames = new HashMap<>();
  private long dropped;
  private boolean hasEvents;
  private String broken;

  private TraceFile() {}

  static TraceFile read(Path file) throws IOException {
    if (Files.isDirectory(file)) {
      throw new BadInputException(
          file
              + ": is a folder; a run with log.trace: true leaves its trace in "
              + new RunDirectory(file).trace());
    }
    TraceFile trace = new TraceFile();
    try (InputStream in = Files.newInputStream(file);
        JsonParser parser = new JsonFactory().createParser(ObjectReadContext.empty(), in)) {
      trace.readRoot(parser);
    } catch (JacksonIOException e) {
      throw FileErrors.cannot("read", file, e.getCause());
    } catch (JacksonException e) {
      trace.broken = e.getOriginalMessage().lines().findFirst().orElse("");
    } catch (IOException e) {
      throw FileErrors.cannot("read", file, e);
    }
    if (!trace.hasEvents) {
      String why = trace.broken == null ? "" : ": " + trace.broken;
      throw new BadInputException(file + ": no trace: it has no traceEvents" + why);
    }
    return trace;
  }

  /** By name. */
  Map<String, Spans> spans() {
    return spans;
  }

  String threadName(Spans.Track track) {
    return threadNames.getOrDefault(track, "thread " + track.thread());
  }

  /** Records that the writer had no room for. */
  long dropped() {
    return dropped;
  }

  /** Why the file could not be read to its end, or null. */
  String broken() {
    return broken;
  }

  /** An object that holds the events, or the bare list of them: both are the format. */
  private void readRoot(JsonParser parser) {
    JsonToken root = parser.nextToken();
    if (root == JsonToken.START_ARRAY) {
      readEvents(parser);
    } else if (root == JsonToken.START_OBJECT) {
      while (parser.nextToken() == JsonToken.PROPERTY_NAME) {
        String key = parser.currentName();
        if (parser.nextToken() == JsonToken.START_ARRAY && key.equals("traceEvents")) {
          readEvents(parser);
        } else {
          parser.skipChildren();
        }
      }
    }
  }

  private void readEvents(JsonParser parser) {
    hasEvents = true;
    for (JsonToken token = parser.nextToken();
        token != JsonToken.END_ARRAY;
        token = parser.nextToken()) {
      if (token == JsonToken.START_OBJECT) {
        Event event = new Event();
        event.read(parser);
        take(event);
      } else {
        parser.skipChildren();
      }
    }
  }

  private void take(Event event) {
    Spans.Track track = new Spans.Track(event.process, event.thread);
    if (event.phase.equals("X") && event.micros >= 0 && event.durationMicros >= 0) {
      long begin = nanos(event.micros);
      long end = begin + nanos(event.durationMicros);
      spans.computeIfAbsent(event.name, name -> new Spans()).add(track, begin, end);
    } else if (event.phase.equals("M") && event.name.equals("thread_name")) {
      threadNames.put(track, event.argumentName);
    } else if (event.phase.equals("M") && event.name.equals("dropped")) {
      dropped += event.argumentRecords;
    }
  }

  private static long nanos(double micros) {
    return Math.round(micros * NANOS_PER_MICRO);
  }

  /** What this program needs of an event; a value of another type is as good as none. */
  private static final class Event {
    String phase = "";
    String name = "";
    String argumentName = "";
    long argumentRecords;
    long process;
    long thread;
    double micros = Double.NaN;
    double durationMicros = Double.NaN;

    void read(JsonParser parser) {
      while (parser.nextToken() == JsonToken.PROPERTY_NAME) {
        String key = parser.currentName();
        parser.nextToken();
        switch (key) {
          case "ph" -> phase = parser.getValueAsString("");
          case "name" -> name = parser.getValueAsString("");
          case "ts" -> micros = parser.getValueAsDouble(Double.NaN);
          case "dur" -> durationMicros = parser.getValueAsDouble(Double.NaN);
          case "pid" -> process = parser.getValueAsLong(0);
          case "tid" -> thread = parser.getValueAsLong(0);
          case "args" -> readArguments(parser);
          default -> {}
        }
        parser.skipChildren();
      }
    }

    private void readArguments(JsonParser parser) {
      if (!parser.isExpectedStartObjectToken()) {
        return;
      }
      while (parser.nextToken() == JsonToken.PROPERTY_NAME) {
        String key = parser.currentName();
        parser.nextToken();
        if (key.equals("name")) {
          argumentName = parser.getValueAsString("");
        } else if (key.equals("records")) {
          argumentRecords = parser.getValueAsLong(0);
        }
        parser.skipChildren();
      }
    }
  }
}
