// Rows that say who they are: every float of a row is a function of its absolute index, so that a
// torn, stale, shifted or unwritten row cannot pass. Episodes end every kEpisodeRows rows of an
// environment; the next observation of such a row is a terminal one, never the first observation of
// the episode that follows (which lies next to it).
#pragma once

#include <cstdint>

#include "layout.h"
#include "portable.h"

namespace millrace {

constexpr RowLayout kTaggedLayout{3, 1, 1};  // width 12: no padding; 13 below has some
constexpr RowLayout kPaddedLayout{3, 2, 1};  // width 13, stride 16
constexpr uint64_t kEpisodeRows = 5;
constexpr float kTerminalOffset = 0.5f;

inline uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDull;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ull;
  return x ^ (x >> 33);
}

// The 24-bit checksum that the row's last float holds, over the bits of all others.
inline float checksum_of(const float* row, const RowLayout& layout) {
  uint64_t hash = 1;
  for (int i = 0; i + 1 < layout.width(); ++i) {
    u32 bits;
    __builtin_memcpy(&bits, &row[i], sizeof(bits));
    hash = mixed(hash ^ bits);
  }
  return static_cast<float>(hash & 0xFFFFFF);
}

inline bool is_terminal(uint64_t index) { return mixed(index) % kEpisodeRows == 0; }

// Indices below 2^23, so that floats hold them and their halves exactly.
inline void write_tagged(uint64_t index, const RowLayout& layout, float* row) {
  const float tag = static_cast<float>(index);
  for (int i = 0; i < layout.observation_dim; ++i) {
    row[layout.observation() + i] = tag;
    row[layout.next_observation() + i] = is_terminal(index) ? tag + kTerminalOffset : tag + 1;
  }
  for (int i = 0; i < layout.action_dim; ++i) row[layout.action() + i] = tag;
  row[layout.reward()] = 1000 + tag;
  row[layout.done()] = is_terminal(index) ? 1 : 0;
  row[layout.truncated()] = is_terminal(index) && index % 2 == 0 ? 1 : 0;
  for (int i = 0; i < layout.critic_dim; ++i) row[layout.critic() + i] = -tag;
  row[layout.width() - 1] = checksum_of(row, layout);
}

// The row's index if it is whole; UINT64_MAX if not.
inline uint64_t read_tagged(const float* row, const RowLayout& layout) {
  const float tag = row[0];
  if (!(tag >= 0)) return UINT64_MAX;
  if (row[layout.width() - 1] != checksum_of(row, layout)) return UINT64_MAX;
  const uint64_t index = static_cast<uint64_t>(tag);
  const float next = is_terminal(index) ? tag + kTerminalOffset : tag + 1;
  const bool is_right = row[layout.next_observation()] == next && row[layout.action()] == tag &&
                        row[layout.reward()] == 1000 + tag &&
                        row[layout.done()] == (is_terminal(index) ? 1 : 0) &&
                        row[layout.critic()] == -tag;
  return is_right ? index : UINT64_MAX;
}

inline void write_tagged_rows(uint64_t start, uint64_t rows, const RowLayout& layout, float* out) {
  for (uint64_t i = 0; i < rows; ++i) {
    write_tagged(start + i, layout, out + i * static_cast<uint64_t>(layout.width()));
  }
}

}  // namespace millrace
