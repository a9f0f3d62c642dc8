// A small program under CapturedProgram on fake_cuda: a history that every run shifts by one and
// puts its input in front of, so that a run that was left out, made twice or out of order shows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "captured_program.h"
#include "fake_cuda.h"
#include "run_fixture.h"

namespace millrace {

class ProgramBench {
 public:
  static constexpr uint64_t kLength = 16;
  static constexpr uint64_t kOps = 3;
  // In every run but replays, before op 0, 1 and 2 and behind the last one.
  using InBody = std::function<void(uint64_t body, uint64_t op)>;

  explicit ProgramBench(GraphPolicy policy = GraphPolicy::kAuto, uint64_t max_runs = 64,
                        std::string obstacle = "", const BackendApi& api = fake_cuda())
      : backend_(api),
        stream_(backend_),
        staged_(backend_, Memory::Kind::kPinnedHost, max_runs * sizeof(float)),
        input_(backend_, Memory::Kind::kDevice, sizeof(float)),
        history_(backend_, Memory::Kind::kDevice, kLength * sizeof(float)),
        scratch_(backend_, Memory::Kind::kDevice, kLength * sizeof(float)),
        found_(backend_, Memory::Kind::kPinnedHost, kLength * sizeof(float)),
        passed_(backend_),
        expected_(kLength, 0.0f),
        program_(backend_, stream_, {"update", policy, std::move(obstacle)}, [this] { body(); }) {}

  Backend& backend() { return backend_; }
  Stream& stream() { return stream_; }
  FakeCuda& fake() { return FakeCuda::of(backend_); }
  CapturedProgram& program() { return program_; }
  const float* history() const { return history_.floats(); }
  void in_body(InBody action) { in_body_ = std::move(action); }

  // Enqueues a run with an input of its own.
  void run() {
    float* staged = staged_.floats() + runs_;
    *staged = static_cast<float>(++runs_);
    stream_.copy(CopyDirection::kHostToDevice, input_.floats(), staged, sizeof(float));
    program_.run();
    expected_.insert(expected_.begin(), *staged);
    expected_.pop_back();
  }
  void finish() {
    stream_.record(passed_);
    passed_.wait();
    program_.completed();
  }
  void run_to_the_end(uint64_t runs) {
    for (uint64_t i = 0; i < runs; ++i) {
      run();
      finish();
    }
  }

  std::vector<float> found() {
    stream_.copy(CopyDirection::kDeviceToHost, found_.floats(), history_.floats(), found_.bytes());
    stream_.record(passed_);
    passed_.wait();
    return {found_.floats(), found_.floats() + kLength};
  }
  const std::vector<float>& expected() const { return expected_; }
  int error_code() {
    BackendError error{};
    backend_.api().last_error(backend_.device(), &error);
    return error.code;
  }
  // States that the program was in, in order; one that was entered again counts.
  std::string states() const {
    std::string text;
    const nlohmann::json found = program_.describe();
    for (const auto& change : found.at("history")) {
      text += (text.empty() ? "" : " ") + change.at("state").get<std::string>();
    }
    return text;
  }
  // The reasons of all states.
  std::string reasons() const {
    std::string text;
    const nlohmann::json found = program_.describe();
    for (const auto& change : found.at("history")) {
      text += change.at("reason").get<std::string>() + "\n";
    }
    return text;
  }

 private:
  void body() {
    const uint64_t body = bodies_++;
    const uint64_t bytes = (kLength - 1) * sizeof(float);
    before(body, 0);
    stream_.copy(CopyDirection::kDeviceToDevice, scratch_.floats(), history_.floats(), bytes);
    before(body, 1);
    stream_.copy(CopyDirection::kDeviceToDevice, history_.floats() + 1, scratch_.floats(), bytes);
    before(body, 2);
    stream_.copy(CopyDirection::kDeviceToDevice, history_.floats(), input_.floats(), sizeof(float));
    before(body, kOps);
  }
  void before(uint64_t body, uint64_t op) {
    if (in_body_) in_body_(body, op);
  }

  Backend backend_;
  Stream stream_;
  Memory staged_, input_, history_, scratch_, found_;
  Event passed_;
  std::vector<float> expected_;
  uint64_t runs_ = 0, bodies_ = 0;
  InBody in_body_;
  CapturedProgram program_;
};

inline std::string failure_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A test whose end finds nothing wrong in the fake driver, within a minute.
class ProgramTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(FakeCuda::take_violations(), std::vector<std::string>{}); }
  Watchdog watchdog_{60};
};

}  // namespace millrace
