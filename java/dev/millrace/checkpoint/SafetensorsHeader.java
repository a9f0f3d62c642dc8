package dev.millrace.checkpoint;

import dev.millrace.checkpoint.TensorInfo.DType;
import dev.millrace.core.Json;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.node.ObjectNode;

/**
 * The header of a safetensors file: 8 bytes of little-endian length, then that much JSON, then the
 * data. Accepted only if the tensors cover the data without gap or overlap.
 */
final class SafetensorsHeader {
  static final int LENGTH_BYTES = 8;

  /** The format's own limit. */
  static final long LIMIT_BYTES = 100_000_000;

  private static final String METADATA = "__metadata__";

  private SafetensorsHeader() {}

  /** Length and JSON, padded with spaces so that the data starts at a multiple of 8. */
  static ByteBuffer encode(List<TensorInfo> tensors) {
    ObjectNode root = Json.object();
    for (TensorInfo tensor : tensors) {
      ObjectNode entry = root.putObject(tensor.name());
      entry.put("dtype", tensor.dtype().name());
      var shape = entry.putArray("shape");
      tensor.shape().forEach(shape::add);
      entry.putArray("data_offsets").add(tensor.begin()).add(tensor.end());
    }
    byte[] json = Json.write(root).getBytes(StandardCharsets.UTF_8);
    int padded = (json.length + 7) / 8 * 8;
    if (padded > LIMIT_BYTES) {
      throw new CheckpointException("the tensor list is larger than the format allows");
    }
    ByteBuffer header = ByteBuffer.allocate(LENGTH_BYTES + padded).order(ByteOrder.LITTLE_ENDIAN);
    header.putLong(padded).put(json);
    while (header.hasRemaining()) {
      header.put((byte) ' ');
    }
    return header.flip();
  }

  /**
   * @param json the header without its length
   * @param dataBytes how much follows it in the file
   */
  static List<TensorInfo> decode(byte[] json, long dataBytes) {
    JsonNode root;
    try {
      String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(json)).toString();
      if (!text.startsWith("{")) {
        throw new CheckpointException("the header is not a JSON object");
      }
      root = Json.parse(text);
    } catch (CharacterCodingException | IllegalArgumentException e) {
      throw new CheckpointException("the header is damaged: " + e.getMessage(), e);
    }
    List<TensorInfo> tensors = new ArrayList<>();
    for (Map.Entry<String, JsonNode> entry : root.properties()) {
      if (!entry.getKey().equals(METADATA)) {
        tensors.add(tensor(entry.getKey(), entry.getValue()));
      }
    }
    tensors.sort(Comparator.comparingLong(TensorInfo::begin).thenComparingLong(TensorInfo::end));
    long covered = 0;
    for (TensorInfo tensor : tensors) {
      if (tensor.begin() != covered) {
        String kind = tensor.begin() < covered ? "overlaps another" : "leaves a gap before it";
        throw new CheckpointException("tensor \"" + tensor.name() + "\" " + kind);
      }
      covered = tensor.end();
    }
    if (covered != dataBytes) {
      throw new CheckpointException(
          "the tensors take " + covered + " bytes, the file has " + dataBytes);
    }
    return tensors;
  }

  private static TensorInfo tensor(String name, JsonNode entry) {
    try {
      if (entry.size() != 3) {
        throw new CheckpointException("expected dtype, shape and data_offsets");
      }
      JsonNode offsets = required(entry, "data_offsets");
      if (!offsets.isArray() || offsets.size() != 2) {
        throw new CheckpointException("data_offsets must be two numbers");
      }
      DType dtype = DType.of(text(required(entry, "dtype")));
      JsonNode sizes = required(entry, "shape");
      if (!sizes.isArray() || sizes.size() > 16) {
        throw new CheckpointException("shape must be a list of at most 16 numbers");
      }
      List<Long> shape = new ArrayList<>();
      sizes.forEach(size -> shape.add(whole(size)));
      long begin = whole(offsets.get(0));
      long end = whole(offsets.get(1));
      if (begin > end || end - begin != TensorInfo.bytes(dtype, shape)) {
        throw new CheckpointException(
            "bytes " + begin + " to " + end + " do not fit " + dtype + " " + shape);
      }
      return new TensorInfo(name, dtype, shape, begin, end);
    } catch (CheckpointException e) {
      throw new CheckpointException("tensor \"" + name + "\": " + e.getMessage(), e);
    }
  }

  private static JsonNode required(JsonNode entry, String key) {
    JsonNode value = entry.get(key);
    if (value == null) {
      throw new CheckpointException(key + " is missing");
    }
    return value;
  }

  private static String text(JsonNode node) {
    if (!node.isString()) {
      throw new CheckpointException("expected a text, got " + node);
    }
    return node.asString();
  }

  private static long whole(JsonNode node) {
    if (!node.isIntegralNumber() || !node.canConvertToLong() || node.asLong() < 0) {
      throw new CheckpointException("expected a whole number, got " + node);
    }
    return node.asLong();
  }
}
