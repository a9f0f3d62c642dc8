// Tests for cpp/jni/session_table.cpp.
#include "jni/session_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>

namespace millrace::jni {
namespace {

class EmptySession : public Session {
 public:
  explicit EmptySession(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~EmptySession() override { --alive_; }
  nlohmann::json facts() const override { return {}; }
  nlohmann::json advance(uint64_t) override { return {}; }
  void stop() override {}
  const StateRegistry& registry() const override { return registry_; }
  void restored(bool) override {}
  const FirstError& first_error() const override { return error_; }

 private:
  std::atomic<int>& alive_;
  StateRegistry registry_;
  FirstError error_;
};

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kState);
    return failure.what();
  }
  return "accepted";
}

class SessionTableTest : public testing::Test {
 protected:
  int64_t add() { return table_.add(std::make_unique<EmptySession>(alive_)); }

  std::atomic<int> alive_{0};
  SessionTable table_;
};

TEST_F(SessionTableTest, FindsWhatItHolds) {
  const int64_t first = add(), second = add();
  EXPECT_NE(first, 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(table_.get(first), table_.get_as_owner(first));
  EXPECT_NE(table_.get(first), table_.get(second));
}

TEST_F(SessionTableTest, ClosingTwiceIsRefused) {
  const int64_t handle = add();
  EXPECT_NE(table_.take(handle), nullptr);
  EXPECT_EQ(alive_, 0);
  for (const auto& call : {std::function<void()>([&] { table_.take(handle); }),
                           std::function<void()>([&] { table_.get(handle); }),
                           std::function<void()>([&] { table_.get_as_owner(handle); })}) {
    EXPECT_EQ(refusal(call), "the run is closed");
  }
}

TEST_F(SessionTableTest, AStaleHandleDoesNotReachTheNextSession) {
  std::set<int64_t> handles;
  for (int i = 0; i < 100; ++i) {
    const int64_t handle = add();  // the same slot, another generation
    EXPECT_TRUE(handles.insert(handle).second);
    for (int64_t stale : handles) {
      if (stale == handle) continue;
      EXPECT_EQ(refusal([&] { table_.get(stale); }), "the run is closed");
    }
    table_.take(handle);
  }
}

TEST_F(SessionTableTest, HandlesThatNeverWereAreRefused) {
  add();
  for (int64_t handle : {int64_t{0}, int64_t{-1}, int64_t{1} << 32 | 5, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(refusal([&] { table_.get(handle); }), "the run is closed") << handle;
  }
}

TEST_F(SessionTableTest, AnotherThreadMayOnlyLook) {
  const int64_t handle = add();
  std::thread([&] {
    EXPECT_NE(table_.get(handle), nullptr);
    EXPECT_EQ(refusal([&] { table_.get_as_owner(handle); }),
              "called from a thread that does not own the run");
    EXPECT_EQ(refusal([&] { table_.take(handle); }),
              "closed from a thread that does not own the run");
  }).join();
  EXPECT_EQ(alive_, 1);
  EXPECT_NE(table_.get_as_owner(handle), nullptr);
}

TEST_F(SessionTableTest, ASessionLivesWhileACallUsesIt) {
  const int64_t handle = add();
  std::shared_ptr<Session> in_use = table_.get(handle);
  table_.take(handle);
  EXPECT_EQ(alive_, 1);
  in_use.reset();
  EXPECT_EQ(alive_, 0);
}

}  // namespace
}  // namespace millrace::jni
