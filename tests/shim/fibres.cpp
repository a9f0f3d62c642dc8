#include "fibres.h"

#include <ucontext.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace metal_shim {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kMaxValueBytes = 16;

enum class State { kReady, kAtBarrier, kAtExchange, kDone };

struct Fibre {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  State state;
  const char* what;  // it exchanges
  uint64_t exchanges;
};

// Values of two exchanges: who reads those of the last has not yet written those of the next but
// one.
struct Simdgroup {
  alignas(16) char values[2][kSimdWidth * kMaxValueBytes];
};

class Threadgroup {
 public:
  void run(uint32_t threads, Turns turns, void (*body)(void*, uint32_t), void* context);
  void wait(State state, const char* what);
  const void* exchange(const void* value, size_t bytes, const char* what);
  uint32_t running() const { return running_; }

 private:
  static void enter();
  void start(uint32_t thread);
  void take_turns(Turns turns);
  bool release();
  bool release_simdgroup(uint32_t first);
  [[noreturn]] void fail() const;

  uint32_t threads_ = 0, running_ = 0;
  void (*body_)(void*, uint32_t) = nullptr;
  void* body_context_ = nullptr;
  ucontext_t scheduler_;
  std::vector<Fibre> fibres_;  // kept from run to run, for their stacks
  std::vector<Simdgroup> simdgroups_;
};

thread_local Threadgroup current;

void Threadgroup::enter() {
  current.body_(current.body_context_, current.running_);
  current.fibres_[current.running_].state = State::kDone;
}

void Threadgroup::start(uint32_t thread) {
  Fibre& fibre = fibres_[thread];
  if (!fibre.stack) fibre.stack.reset(new char[kStackBytes]);
  fibre.state = State::kReady;
  fibre.exchanges = 0;
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = fibre.stack.get();
  fibre.context.uc_stack.ss_size = kStackBytes;
  fibre.context.uc_link = &scheduler_;
  makecontext(&fibre.context, enter, 0);
}

void Threadgroup::take_turns(Turns turns) {
  for (uint32_t i = 0; i < threads_; ++i) {
    running_ = turns == Turns::kForward ? i : threads_ - 1 - i;
    if (fibres_[running_].state == State::kReady) {
      swapcontext(&scheduler_, &fibres_[running_].context);
    }
  }
}

void Threadgroup::fail() const {
  uint32_t at_barrier = 0, done = 0;
  std::string operations;
  for (uint32_t i = 0; i < threads_; ++i) {
    at_barrier += fibres_[i].state == State::kAtBarrier;
    done += fibres_[i].state == State::kDone;
    if (fibres_[i].state == State::kAtExchange &&
        operations.find(fibres_[i].what) == std::string::npos) {
      operations += std::string(", some at ") + fibres_[i].what;
    }
  }
  throw std::logic_error("threads of a threadgroup wait for different things: of " +
                         std::to_string(threads_) + " " + std::to_string(at_barrier) +
                         " are at a barrier, " + std::to_string(done) + " have returned" +
                         operations);
}

bool Threadgroup::release_simdgroup(uint32_t first) {
  for (uint32_t i = first; i < first + kSimdWidth; ++i) {
    if (fibres_[i].state != State::kAtExchange) return false;
    if (std::strcmp(fibres_[i].what, fibres_[first].what) != 0) return false;
  }
  for (uint32_t i = first; i < first + kSimdWidth; ++i) fibres_[i].state = State::kReady;
  return true;
}

// Whether anyone may go on; false once all are done.
bool Threadgroup::release() {
  bool any = false;
  for (uint32_t first = 0; first < threads_; first += kSimdWidth) {
    any = release_simdgroup(first) || any;
  }
  if (any) return true;
  uint32_t at_barrier = 0, done = 0;
  for (uint32_t i = 0; i < threads_; ++i) {
    at_barrier += fibres_[i].state == State::kAtBarrier;
    done += fibres_[i].state == State::kDone;
  }
  if (done == threads_) return false;
  if (at_barrier != threads_) fail();
  for (uint32_t i = 0; i < threads_; ++i) fibres_[i].state = State::kReady;
  return true;
}

void Threadgroup::run(uint32_t threads, Turns turns, void (*body)(void*, uint32_t), void* context) {
  if (threads == 0 || threads % kSimdWidth != 0) {
    throw std::logic_error("a threadgroup of " + std::to_string(threads) +
                           " threads, not a multiple of 32");
  }
  threads_ = threads;
  body_ = body;
  body_context_ = context;
  if (fibres_.size() < threads) fibres_.resize(threads);
  if (simdgroups_.size() < threads / kSimdWidth) simdgroups_.resize(threads / kSimdWidth);
  for (uint32_t i = 0; i < threads; ++i) start(i);
  do {
    take_turns(turns);
  } while (release());
}

void Threadgroup::wait(State state, const char* what) {
  Fibre& fibre = fibres_[running_];
  fibre.state = state;
  fibre.what = what;
  swapcontext(&fibre.context, &scheduler_);
}

const void* Threadgroup::exchange(const void* value, size_t bytes, const char* what) {
  if (bytes > kMaxValueBytes) throw std::logic_error("more bytes than lanes exchange");
  Fibre& fibre = fibres_[running_];
  char* const values = simdgroups_[running_ / kSimdWidth].values[fibre.exchanges++ % 2];
  if (bytes > 0) std::memcpy(values + running_ % kSimdWidth * bytes, value, bytes);
  wait(State::kAtExchange, what);
  return values;
}

}  // namespace

void run_threadgroup(uint32_t threads, Turns turns, void (*body)(void*, uint32_t), void* context) {
  current.run(threads, turns, body, context);
}

uint32_t lane() { return current.running() % kSimdWidth; }
void wait_for_threadgroup() { current.wait(State::kAtBarrier, "threadgroup_barrier"); }
const void* exchange(const void* value, size_t bytes, const char* what) {
  return current.exchange(value, bytes, what);
}

}  // namespace metal_shim
