#include "inflate.h"

#include <array>

#include "status.h"

namespace millrace {

namespace {

constexpr int kCodeBitsMax = 15;

[[noreturn]] void damaged(const char* what) {
  throw Failure(Code::kInvalid, std::string("the compressed data is damaged: ") + what);
}

// Bits of a stream, the lowest of each byte first.
class BitReader {
 public:
  BitReader(const uint8_t* data, size_t bytes) : data_(data), bytes_(bytes) {}

  uint32_t bits(int count) {
    while (held_ < count) {
      if (at_ == bytes_) damaged("it ends too early");
      hold_ |= static_cast<uint32_t>(data_[at_++]) << held_;
      held_ += 8;
    }
    const uint32_t value = hold_ & ((1u << count) - 1);
    hold_ >>= count;
    held_ -= count;
    return value;
  }
  // What is left of the current byte is skipped.
  void align() {
    hold_ = 0;
    held_ = 0;
  }

 private:
  const uint8_t* data_;
  size_t bytes_;
  size_t at_ = 0;
  uint32_t hold_ = 0;
  int held_ = 0;
};

// A canonical Huffman code, from the lengths of its symbols: codes of one length are consecutive
// numbers, so that a code is found by counting.
class Code15 {
 public:
  Code15(const uint8_t* lengths, int symbols) {
    for (int s = 0; s < symbols; ++s) ++count_[lengths[s]];
    count_[0] = 0;
    int left = 1;  // codes that are still free at a length
    std::array<int, kCodeBitsMax + 2> first{};
    for (int length = 1; length <= kCodeBitsMax; ++length) {
      left = 2 * left - count_[static_cast<size_t>(length)];
      if (left < 0) damaged("a code is over-full");
      first[static_cast<size_t>(length) + 1] =
          first[static_cast<size_t>(length)] + count_[static_cast<size_t>(length)];
    }
    symbols_.resize(static_cast<size_t>(symbols));
    for (int s = 0; s < symbols; ++s) {
      if (lengths[s]) symbols_[static_cast<size_t>(first[lengths[s]]++)] = s;
    }
  }

  int read(BitReader& in) const {
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= kCodeBitsMax; ++length) {
      code |= static_cast<int>(in.bits(1));
      const int count = count_[static_cast<size_t>(length)];
      if (code - first < count) return symbols_[static_cast<size_t>(index + code - first)];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    damaged("a code has no symbol");
  }

 private:
  std::array<int, kCodeBitsMax + 1> count_{};
  std::vector<int> symbols_;
};

struct Codes {
  Code15 literal, distance;
};

Codes fixed_codes() {
  uint8_t literal[288], distance[30];
  for (int s = 0; s < 288; ++s) {
    literal[s] = static_cast<uint8_t>(s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : 8);
  }
  for (uint8_t& length : distance) length = 5;
  return {Code15(literal, 288), Code15(distance, 30)};
}

Codes read_codes(BitReader& in) {
  const int literals = static_cast<int>(in.bits(5)) + 257;
  const int distances = static_cast<int>(in.bits(5)) + 1;
  const int lengths_stored = static_cast<int>(in.bits(4)) + 4;
  if (literals > 286 || distances > 30) damaged("a code has too many symbols");
  static const int order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  uint8_t meta[19] = {};
  for (int i = 0; i < lengths_stored; ++i) meta[order[i]] = static_cast<uint8_t>(in.bits(3));
  const Code15 code(meta, 19);
  uint8_t lengths[286 + 30] = {};
  for (int at = 0; at < literals + distances;) {
    const int symbol = code.read(in);
    if (symbol < 16) {
      lengths[at++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && at == 0) damaged("a length repeats nothing");
    const uint8_t value = symbol == 16 ? lengths[at - 1] : uint8_t{0};
    int repeat = symbol == 16   ? 3 + static_cast<int>(in.bits(2))
                 : symbol == 17 ? 3 + static_cast<int>(in.bits(3))
                                : 11 + static_cast<int>(in.bits(7));
    if (at + repeat > literals + distances) damaged("a length repeats too often");
    while (repeat-- > 0) lengths[at++] = value;
  }
  return {Code15(lengths, literals), Code15(lengths + literals, distances)};
}

// A span that was there before: base value and extra bits of each symbol.
int read_span_length(BitReader& in, int symbol) {
  static const int base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                               31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const int extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  if (symbol > 285) damaged("a length is unknown");
  return base[symbol - 257] + static_cast<int>(in.bits(extra[symbol - 257]));
}

int read_distance(BitReader& in, int symbol) {
  if (symbol < 4) return symbol + 1;
  const int extra = symbol / 2 - 1;
  return ((2 + symbol % 2) << extra) + 1 + static_cast<int>(in.bits(extra));
}

class Output {
 public:
  explicit Output(size_t bytes) : limit_(bytes) { out.reserve(bytes); }

  void put(uint8_t byte) {
    if (out.size() == limit_) damaged("it holds more than it says");
    out.push_back(byte);
  }
  void repeat(size_t distance, int length) {
    if (distance > out.size()) damaged("it refers to what was not there");
    while (length-- > 0) put(out[out.size() - distance]);
  }

  std::vector<uint8_t> out;

 private:
  size_t limit_;
};

void read_stored(BitReader& in, Output& to) {
  in.align();
  const uint32_t length = in.bits(16);
  if ((in.bits(16) ^ length) != 0xFFFFu) damaged("a stored block has no length");
  for (uint32_t i = 0; i < length; ++i) to.put(static_cast<uint8_t>(in.bits(8)));
}

void read_coded(BitReader& in, const Codes& codes, Output& to) {
  for (;;) {
    const int symbol = codes.literal.read(in);
    if (symbol == 256) return;
    if (symbol < 256) {
      to.put(static_cast<uint8_t>(symbol));
      continue;
    }
    const int length = read_span_length(in, symbol);
    const int distance = read_distance(in, codes.distance.read(in));
    to.repeat(static_cast<size_t>(distance), length);
  }
}

}  // namespace

std::vector<uint8_t> inflate(const uint8_t* data, size_t bytes, size_t out_bytes) {
  BitReader in(data, bytes);
  Output to(out_bytes);
  for (bool is_last = false; !is_last;) {
    is_last = in.bits(1) != 0;
    const uint32_t kind = in.bits(2);
    if (kind == 3) damaged("a block is of no known kind");
    if (kind == 0) {
      read_stored(in, to);
    } else {
      read_coded(in, kind == 1 ? fixed_codes() : read_codes(in), to);
    }
  }
  if (to.out.size() != out_bytes) damaged("it holds less than it says");
  return std::move(to.out);
}

}  // namespace millrace
