#include "fake_metal_world.h"

#include <chrono>
#include <utility>

#include "fake_metal_mistakes.h"

namespace metal_shim {

namespace {

using Lock = std::unique_lock<std::mutex>;

// One command buffer in four is late, by up to this.
constexpr uint64_t kMostLate_us = 200;

// Scrambles a number (the finaliser of splitmix64).
uint64_t scrambled(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

FakeMetalWorld& FakeMetalWorld::one() {
  static FakeMetalWorld world;
  return world;
}

std::vector<std::string> FakeMetalWorld::take_violations() {
  Lock lock(mutex_);
  return std::exchange(violations_, {});
}

void FakeMetalWorld::hold() {
  Lock lock(mutex_);
  is_held_ = true;
  allowed_ = 0;
}

void FakeMetalWorld::run(uint64_t count) {
  Lock lock(mutex_);
  allowed_ += count;
  moved_.notify_all();
}

void FakeMetalWorld::resume() {
  Lock lock(mutex_);
  is_held_ = false;
  moved_.notify_all();
}

uint64_t FakeMetalWorld::committed() const {
  Lock lock(mutex_);
  return committed_;
}

uint64_t FakeMetalWorld::completed() const {
  Lock lock(mutex_);
  return completed_;
}

void FakeMetalWorld::fail_command_buffer(uint64_t at, int code) {
  Lock lock(mutex_);
  faults_[committed_ + at] = code;
}

void FakeMetalWorld::begin_journal() {
  Lock lock(mutex_);
  has_journal_ = true;
  journal_.clear();
}

void FakeMetalWorld::note(const std::string& text) {
  Lock lock(mutex_);
  if (has_journal_) journal_.push_back(text);
}

std::vector<std::string> FakeMetalWorld::take_journal() {
  Lock lock(mutex_);
  has_journal_ = false;
  return std::exchange(journal_, {});
}

std::vector<std::string> FakeMetalWorld::mistakes() const { return names_of_mistakes(); }

void FakeMetalWorld::make(const std::string& mistake) { make_mistake(mistake); }

void FakeMetalWorld::violation(const std::string& text) {
  Lock lock(mutex_);
  violations_.push_back(text);
}

uint64_t FakeMetalWorld::commit(const std::string& what) {
  Lock lock(mutex_);
  if (has_journal_) journal_.push_back("commit " + what);
  return committed_++;
}

int FakeMetalWorld::begin(uint64_t number) {
  Lock lock(mutex_);
  const uint64_t draw = scrambled(number + 1);
  if (!is_held_ && draw % 4 == 0) {
    moved_.wait_for(lock, std::chrono::microseconds(draw / 4 % kMostLate_us),
                    [this] { return is_held_; });
  }
  moved_.wait(lock, [this] { return !is_held_ || allowed_ > 0; });
  if (is_held_) --allowed_;
  const auto fault = faults_.find(number);
  if (fault == faults_.end()) return 0;
  const int code = fault->second;
  faults_.erase(fault);
  return code;
}

void FakeMetalWorld::complete(uint64_t) {
  Lock lock(mutex_);
  ++completed_;
  if (has_journal_) journal_.push_back("complete");
}

}  // namespace metal_shim

extern "C" __attribute__((visibility("default"))) metal_shim::FakeMetal* millrace_fake_metal() {
  return &metal_shim::FakeMetalWorld::one();
}
