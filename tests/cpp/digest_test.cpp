// Tests for cpp/digest.h against the published values of FNV-1a.
#include "digest.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(DigestTest, IsFnv1a) {
  EXPECT_EQ(digest_of(""), 0xCBF29CE484222325ull);
  EXPECT_EQ(digest_of("a"), 0xAF63DC4C8601EC8Cull);
  EXPECT_EQ(digest_of("foobar"), 0x85944171F73967E8ull);
}

TEST(DigestTest, GoesOnFromPart) {
  EXPECT_EQ(digest_of("bar", digest_of("foo")), digest_of("foobar"));
}

}  // namespace
}  // namespace millrace
