#include "fibres.h"

#include <ucontext.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace metal_shim {
namespace {

constexpr size_t kStackBytes = 256 << 10;

enum class State { kReady, kAtBarrier, kAtExchange, kDone };

// Where to go on, in some stack.
struct Place {
  void* words[5];
};

// A function of its own: the compiler takes a jump that it sees for one within a stack.
[[noreturn]] __attribute__((noinline)) void go_on_at(Place& place) {
  __builtin_longjmp(place.words, 1);
}

// Goes on at `to` and returns when someone goes on at `from`. No system call, unlike swapcontext:
// the tests take a fifth of the time.
__attribute__((noinline)) void leave(Place& from, Place& to) {
  if (__builtin_setjmp(from.words) == 0) go_on_at(to);
}

// Begins a stack of its own, otherwise the same.
__attribute__((noinline)) void leave(Place& from, const ucontext_t& to) {
  if (__builtin_setjmp(from.words) != 0) return;
  setcontext(&to);
  std::abort();  // also keeps this frame in place: the call above is no tail call
}

struct Fibre {
  std::unique_ptr<char[]> stack;  // null: it has never run
  Place place;
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
  [[noreturn]] static void live();
  void give_turn(uint32_t thread);
  void take_turns(Turns turns);
  bool release();
  bool release_simdgroup(uint32_t first);
  [[noreturn]] void fail();

  uint32_t threads_ = 0, running_ = 0;
  void (*body_)(void*, uint32_t) = nullptr;
  void* body_context_ = nullptr;
  Place scheduler_;
  std::vector<Fibre> fibres_;  // kept from run to run
  std::vector<Simdgroup> simdgroups_;
};

thread_local Threadgroup current;

// A fibre runs one body after the other and never ends.
void Threadgroup::live() {
  for (;;) {
    current.body_(current.body_context_, current.running_);
    current.wait(State::kDone, "its next body");
  }
}

void Threadgroup::give_turn(uint32_t thread) {
  running_ = thread;
  Fibre& fibre = fibres_[thread];
  if (fibre.stack) return leave(scheduler_, fibre.place);
  fibre.stack.reset(new char[kStackBytes]);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = fibre.stack.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, live, 0);
  leave(scheduler_, context);
}

void Threadgroup::take_turns(Turns turns) {
  for (uint32_t i = 0; i < threads_; ++i) {
    const uint32_t thread = turns == Turns::kForward ? i : threads_ - 1 - i;
    if (fibres_[thread].state == State::kReady) give_turn(thread);
  }
}

// Those that wait would wait for ever: their stacks are given up.
void Threadgroup::fail() {
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
  fibres_.clear();
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
  for (uint32_t i = 0; i < threads; ++i) {
    fibres_[i].state = State::kReady;
    fibres_[i].exchanges = 0;
  }
  do {
    take_turns(turns);
  } while (release());
}

void Threadgroup::wait(State state, const char* what) {
  Fibre& fibre = fibres_[running_];
  fibre.state = state;
  fibre.what = what;
  leave(fibre.place, scheduler_);
}

const void* Threadgroup::exchange(const void* value, size_t bytes, const char* what) {
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
