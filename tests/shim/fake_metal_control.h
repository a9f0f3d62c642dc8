// fake_metal: a Metal device without a GPU, for tests of the modules in metal/. It is what
// tests/shim/Metal/Metal.h declares, in Objective-C, linked with those modules into the plug-in
// libmillrace_metal_fake; this is how a test talks to it.
//
//   late work    A queue runs committed command buffers in order on a thread of its own, some of
//                them late. Kernels run by the CPU shim (metal_kernels.h).
//   memory       A GPU address is not where the host sees the same bytes, and can be read only
//                while a pass runs that declared the buffer. Freed blocks are never reused.
//   rules        What Apple's documentation forbids but no call would tell is a violation, and so
//   is
//                what our own rules forbid: tests end with none.
//
// One in a process: violations, faults and journal are of all its devices. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace metal_shim {

class FakeMetal {
 public:
  // What was wrong since the last call.
  virtual std::vector<std::string> take_violations() = 0;

  // While held, committed command buffers wait; run() lets the oldest `count` of them through.
  virtual void hold() = 0;
  virtual void run(uint64_t count) = 0;
  virtual void resume() = 0;
  virtual uint64_t committed() const = 0;  // command buffers, ever
  virtual uint64_t completed() const = 0;

  // Command buffer number `at`, from 0 and from now on, ends with this code of
  // MTLCommandBufferErrorDomain; its commands do not run.
  virtual void fail_command_buffer(uint64_t at, int code) = 0;

  // From now on what is committed ("commit gather_rows", with the kernels' names) and completed
  // ("complete") is written down, with what a test notes.
  virtual void begin_journal() = 0;
  virtual void note(const std::string& text) = 0;
  virtual std::vector<std::string> take_journal() = 0;

  // Mistakes that a Metal backend can make, each made on a device of its own.
  virtual std::vector<std::string> mistakes() const = 0;
  virtual void make(const std::string& mistake) = 0;

 protected:
  ~FakeMetal() = default;
};

using FakeMetalEntry = FakeMetal*();
constexpr const char* kFakeMetalEntryName = "millrace_fake_metal";

}  // namespace metal_shim
