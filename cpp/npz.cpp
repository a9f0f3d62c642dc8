#include "npz.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "inflate.h"
#include "status.h"

namespace millrace {

namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kFileBytesMax = uint64_t{1} << 30;
constexpr uint64_t kArrayBytesMax = uint64_t{1} << 30;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kEntrySignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr uint32_t kIsZip64 = 0xFFFFFFFFu;

[[noreturn]] void refuse(const std::string& problem) { throw Failure(Code::kInvalid, problem); }

uint32_t little_endian(const Bytes& file, size_t at, size_t count) {
  if (at + count > file.size()) refuse("the archive ends too early");
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= static_cast<uint32_t>(file[at + i]) << (8 * i);
  return value;
}

uint32_t crc32(const Bytes& data) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0u);
      entries[i] = value;
    }
    return entries;
  }();
  uint32_t crc = ~0u;
  for (const uint8_t byte : data) crc = table[(crc ^ byte) & 0xFFu] ^ (crc >> 8);
  return ~crc;
}

struct Entry {
  std::string name;
  uint32_t method, crc, packed_bytes, bytes, local_at;
};

std::vector<Entry> read_directory(const Bytes& file) {
  if (file.size() < kEndBytes) refuse("it is no npz archive");
  const size_t farthest = std::min<size_t>(file.size(), kEndBytes + 0xFFFF);
  size_t end = file.size() - kEndBytes;
  while (little_endian(file, end, 4) != kEndSignature) {
    if (end == file.size() - farthest) refuse("it is no npz archive");
    --end;
  }
  const uint32_t count = little_endian(file, end + 10, 2);
  size_t at = little_endian(file, end + 16, 4);
  std::vector<Entry> entries;
  for (uint32_t i = 0; i < count; ++i) {
    if (little_endian(file, at, 4) != kEntrySignature) refuse("the archive's directory is damaged");
    const uint32_t name_bytes = little_endian(file, at + 28, 2);
    Entry entry;
    entry.method = little_endian(file, at + 10, 2);
    entry.crc = little_endian(file, at + 16, 4);
    entry.packed_bytes = little_endian(file, at + 20, 4);
    entry.bytes = little_endian(file, at + 24, 4);
    entry.local_at = little_endian(file, at + 42, 4);
    if (at + kEntryBytes + name_bytes > file.size()) refuse("the archive ends too early");
    entry.name.assign(reinterpret_cast<const char*>(file.data()) + at + kEntryBytes, name_bytes);
    at += kEntryBytes + name_bytes + little_endian(file, at + 30, 2) +
          little_endian(file, at + 32, 2);
    entries.push_back(std::move(entry));
  }
  return entries;
}

Bytes unpack(const Bytes& file, const Entry& entry) {
  if (entry.bytes == kIsZip64 || entry.bytes > kArrayBytesMax) refuse("it is larger than 1 GiB");
  if (little_endian(file, entry.local_at, 4) != kLocalSignature) refuse("its header is damaged");
  const size_t start = size_t{entry.local_at} + kLocalBytes +
                       little_endian(file, size_t{entry.local_at} + 26, 2) +
                       little_endian(file, size_t{entry.local_at} + 28, 2);
  if (start + entry.packed_bytes > file.size()) refuse("the archive ends too early");
  const uint8_t* data = file.data() + start;
  Bytes bytes;
  if (entry.method == 0) {
    if (entry.packed_bytes != entry.bytes) refuse("its header is damaged");
    bytes.assign(data, data + entry.bytes);
  } else if (entry.method == 8) {
    bytes = inflate(data, entry.packed_bytes, entry.bytes);
  } else {
    refuse("its compression method " + std::to_string(entry.method) + " is not supported");
  }
  if (crc32(bytes) != entry.crc) refuse("its checksum is wrong");
  return bytes;
}

// What stands behind 'key': in a .npy header, up to `until`.
std::string header_value(const std::string& header, const std::string& key, char until) {
  const size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) refuse("its header has no " + key);
  const size_t start = header.find_first_not_of(' ', at + key.size() + 3);
  const size_t end = header.find(until, start);
  if (start == std::string::npos || end == std::string::npos) refuse("its header is damaged");
  return header.substr(start, end - start);
}

std::vector<int64_t> parse_shape(const std::string& text) {
  std::vector<int64_t> shape;
  uint64_t total = 1;
  for (size_t at = 1; at < text.size();) {
    at = text.find_first_of("0123456789", at);
    if (at == std::string::npos) break;
    const size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    if (end - at > 10) refuse("its shape " + text + ") is too large");
    const int64_t extent = std::stoll(text.substr(at, end - at));
    total *= static_cast<uint64_t>(std::max<int64_t>(extent, 1));
    if (total > kArrayBytesMax) refuse("its shape " + text + ") is too large");
    shape.push_back(extent);
    at = end;
  }
  return shape;
}

template <typename T>
void widen(const uint8_t* data, std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
}

NpyArray parse_npy(const Bytes& bytes) {
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0) {
    refuse("it is no .npy array");
  }
  const bool is_long = bytes[6] >= 2;
  const size_t start = is_long ? 12 : 10;
  const size_t header_bytes = little_endian(bytes, 8, is_long ? 4 : 2);
  if (start + header_bytes > bytes.size()) refuse("its header is damaged");
  const std::string header(reinterpret_cast<const char*>(bytes.data()) + start, header_bytes);
  const std::string type = header_value(header, "descr", ',');
  NpyArray array;
  array.shape = parse_shape(header_value(header, "shape", ')'));
  size_t count = 1;
  for (const int64_t extent : array.shape) count *= static_cast<size_t>(extent);
  if (array.shape.size() > 1 && header_value(header, "fortran_order", ',') != "False") {
    refuse("it is in Fortran order; save numpy.ascontiguousarray of it");
  }
  const size_t width = type == "'<f4'" || type == "'<i4'" ? 4 : 8;
  if (width == 8 && type != "'<f8'" && type != "'<i8'") {
    refuse("its type " + type + " is not one of <f4, <f8, <i4, <i8");
  }
  if (bytes.size() - start - header_bytes != count * width) refuse("its size and shape disagree");
  const uint8_t* data = bytes.data() + start + header_bytes;
  array.values.resize(count);
  if (type == "'<f4'") widen<float>(data, array.values);
  if (type == "'<f8'") widen<double>(data, array.values);
  if (type == "'<i4'") widen<int32_t>(data, array.values);
  if (type == "'<i8'") widen<int64_t>(data, array.values);
  return array;
}

Bytes read_file(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) refuse("is not there or is no regular file");
  const uint64_t bytes = fs::file_size(path, error);
  if (error || bytes > kFileBytesMax) refuse("is larger than 1 GiB");
  Bytes file(bytes);
  std::ifstream stream(path, std::ios::binary);
  stream.read(reinterpret_cast<char*>(file.data()), static_cast<std::streamsize>(bytes));
  if (!stream) refuse("cannot be read");
  return file;
}

// ---- writing ----

void append(Bytes& to, uint32_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) to.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void append(Bytes& to, const std::string& text) { to.insert(to.end(), text.begin(), text.end()); }

Bytes npy_of(const NpyArray& array) {
  std::string shape;
  for (const int64_t extent : array.shape) shape += std::to_string(extent) + ", ";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  Bytes bytes;
  append(bytes, std::string("\x93NUMPY\x01\x00", 8));
  append(bytes, static_cast<uint32_t>(header.size()), 2);
  append(bytes, header);
  for (const double value : array.values) {
    const auto number = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    append(bytes, bits, 4);
  }
  return bytes;
}

// What the local and the directory entry of a stored file have in common.
void append_entry(Bytes& to, const std::string& name, const Bytes& content) {
  append(to, 20, 2);          // version needed
  append(to, 0, 4);           // no flags, stored
  append(to, 0x00210000, 4);  // the first day that the format knows: same input, same file
  append(to, crc32(content), 4);
  append(to, static_cast<uint32_t>(content.size()), 4);
  append(to, static_cast<uint32_t>(content.size()), 4);
  append(to, static_cast<uint32_t>(name.size()), 2);
  append(to, 0, 2);
}

}  // namespace

NpyArrays read_npz(const std::string& path, const std::vector<std::string>& names) {
  std::string subject = "motion file '" + path + "'";
  try {
    const Bytes file = read_file(path);
    NpyArrays arrays;
    for (const Entry& entry : read_directory(file)) {
      const std::string& stored = entry.name;
      const bool is_array = stored.size() > 4 && stored.compare(stored.size() - 4, 4, ".npy") == 0;
      const std::string name = is_array ? stored.substr(0, stored.size() - 4) : stored;
      if (std::find(names.begin(), names.end(), name) == names.end()) continue;
      subject = "motion file '" + path + "': array " + name;
      arrays[name] = parse_npy(unpack(file, entry));
      subject = "motion file '" + path + "'";
    }
    return arrays;
  } catch (const Failure& failure) {
    throw Failure(failure.code(), subject + ": " + failure.what());
  }
}

void write_npz(const std::string& path, const NpyArrays& arrays) {
  Bytes file, directory;
  for (const auto& [name, array] : arrays) {
    const std::string stored = name + ".npy";
    const Bytes content = npy_of(array);
    append(directory, kEntrySignature, 4);
    append(directory, 20, 2);
    append_entry(directory, stored, content);
    append(directory, 0, 4);  // no comment, disk 0
    append(directory, 0, 2);
    append(directory, 0, 4);
    append(directory, static_cast<uint32_t>(file.size()), 4);
    append(directory, stored);
    append(file, kLocalSignature, 4);
    append_entry(file, stored, content);
    append(file, stored);
    file.insert(file.end(), content.begin(), content.end());
  }
  const auto directory_at = static_cast<uint32_t>(file.size());
  const auto count = static_cast<uint32_t>(arrays.size());
  file.insert(file.end(), directory.begin(), directory.end());
  append(file, kEndSignature, 4);
  append(file, 0, 4);
  append(file, count, 2);
  append(file, count, 2);
  append(file, static_cast<uint32_t>(directory.size()), 4);
  append(file, directory_at, 4);
  append(file, 0, 2);

  // To a file beside it, then renamed into its place.
  const std::string temporary = path + ".part";
  std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(file.data()),
               static_cast<std::streamsize>(file.size()));
  stream.close();
  if (!stream || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    throw Failure(Code::kInvalid, "'" + path + "' cannot be written: " + reason);
  }
}

}  // namespace millrace
