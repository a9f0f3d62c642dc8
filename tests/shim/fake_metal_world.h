// What all fake Metal devices of a process share: violations, faults, the journal and the gate that
// tests hold. Any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "fake_metal_control.h"

namespace metal_shim {

class FakeMetalWorld final : public FakeMetal {
 public:
  static FakeMetalWorld& one();

  std::vector<std::string> take_violations() override;
  void hold() override;
  void run(uint64_t count) override;
  void resume() override;
  uint64_t committed() const override;
  uint64_t completed() const override;
  void fail_command_buffer(uint64_t at, int code) override;
  void begin_journal() override;
  void note(const std::string& text) override;
  std::vector<std::string> take_journal() override;
  std::vector<std::string> mistakes() const override;
  void make(const std::string& mistake) override;

  void violation(const std::string& text);
  // The number of a command buffer that is committed now; `what` it does is for the journal.
  uint64_t commit(const std::string& what);
  // Waits until the oldest command buffer may run; 0, or the code that it ends with.
  int begin(uint64_t number);
  void complete(uint64_t number);

 private:
  mutable std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<std::string> violations_;
  std::map<uint64_t, int> faults_;  // by number of the command buffer
  uint64_t committed_ = 0, completed_ = 0;
  bool is_held_ = false;
  uint64_t allowed_ = 0;  // to run, while held
  bool has_journal_ = false;
  std::vector<std::string> journal_;
};

}  // namespace metal_shim
