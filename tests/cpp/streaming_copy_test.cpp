#include "streaming_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace millrace {
namespace {

TEST(StreamingCopy, CopiesEveryLengthFromEveryAlignmentAndNothingElse) {
  constexpr size_t kRoom = 64;
  std::vector<float> from(kRoom);
  for (size_t i = 0; i < kRoom; ++i) from[i] = static_cast<float>(i + 1);
  for (size_t source = 0; source < 5; ++source) {
    for (size_t target = 0; target < 5; ++target) {
      for (size_t count = 0; count + 5 < kRoom; ++count) {
        std::vector<float> to(kRoom, -1.0f);
        streaming_copy(&to[target], &from[source], count);
        streaming_fence();
        for (size_t i = 0; i < kRoom; ++i) {
          const bool is_inside = i >= target && i < target + count;
          ASSERT_EQ(to[i], is_inside ? from[source + i - target] : -1.0f)
              << source << ' ' << target << ' ' << count << ' ' << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace
