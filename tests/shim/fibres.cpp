#include "fibres.h"

#include <setjmp.h>
#include <ucontext.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace device_shim {
namespace {

constexpr size_t kStackBytes = 256 << 10;

enum class State { kReady, kAtBarrier, kAtExchange, kRefused, kDone };

// Where to go on, in some stack. clang has the compiler's own jumps on x86 alone.
#if defined(__x86_64__)
struct Place {
  void* words[5];
};
#define MR_MARK(place) __builtin_setjmp((place).words)
#define MR_JUMP(place) __builtin_longjmp((place).words, 1)
#else
struct Place {
  jmp_buf words;
};
#define MR_MARK(place) _setjmp((place).words)
#define MR_JUMP(place) _longjmp((place).words, 1)
#endif

// The address sanitizer would ask the system about the stack before each jump, which it takes for
// the end of one: ten times as slow. The thread sanitizer would wait for returns that never come.
#define MR_SWITCHES_STACKS __attribute__((noinline, no_sanitize("address"), no_sanitize("thread")))

// A function of its own: the compiler takes a jump that it sees for one within a stack.
[[noreturn]] MR_SWITCHES_STACKS void go_on_at(Place& place) { MR_JUMP(place); }

// Goes on at `to` and returns when someone goes on at `from`. No system call, unlike swapcontext:
// the tests take a fifth of the time.
MR_SWITCHES_STACKS void leave(Place& from, Place& to) {
  if (MR_MARK(from) == 0) go_on_at(to);
}

// Begins a stack of its own, otherwise the same.
MR_SWITCHES_STACKS void leave(Place& from, const ucontext_t& to) {
  if (MR_MARK(from) != 0) return;
  setcontext(&to);
  std::abort();  // also keeps this frame in place: the call above is no tail call
}

struct Thread {
  Place place;  // where it waits
  State state;
  const char* what;  // it exchanges
  uint64_t exchanges;
};

// A stack that runs one body after the other and never ends.
struct Fibre {
  std::unique_ptr<char[]> stack;
  Place place;  // while it has no body
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
  [[noreturn]] void refuse(const char* what);
  const void* exchange(const void* value, size_t bytes, const char* what);
  uint32_t running() const { return running_; }

 private:
  [[noreturn]] static void live();
  uint32_t at(uint32_t turn) const {
    return turns_ == Turns::kForward ? turn : static_cast<uint32_t>(threads_.size()) - 1 - turn;
  }
  void begin(uint32_t turns);
  void take_turns(uint32_t first_turn);
  void run_simdgroup(uint32_t first_turn);
  bool release();
  bool release_simdgroup(uint32_t first_turn);
  [[noreturn]] void fail();

  uint32_t running_ = 0;
  Turns turns_ = Turns::kForward;
  uint32_t begun_ = 0;     // turns whose thread has begun
  uint32_t to_begin_ = 0;  // turns whose thread may begin
  void (*body_)(void*, uint32_t) = nullptr;
  void* body_context_ = nullptr;
  Place scheduler_;
  std::vector<Thread> threads_;
  std::vector<std::unique_ptr<Fibre>> fibres_;  // kept from run to run
  std::vector<Fibre*> idle_;
  Fibre* beginning_ = nullptr;
  std::vector<Simdgroup> simdgroups_;
};

thread_local Threadgroup current;

// Runs the threads that may begin, one after the other: one that never waits costs no change of
// stacks. Once all have begun, the stack waits for others.
void Threadgroup::live() {
  Fibre* const self = current.beginning_;
  for (;;) {
    while (current.begun_ < current.to_begin_) {
      current.running_ = current.at(current.begun_++);
      current.body_(current.body_context_, current.running_);
      current.threads_[current.running_].state = State::kDone;
    }
    current.idle_.push_back(self);
    leave(self->place, current.scheduler_);
  }
}

// All threads of the turns before.
void Threadgroup::begin(uint32_t turns) {
  to_begin_ = turns;
  while (begun_ < to_begin_) {
    if (!idle_.empty()) {
      Fibre* const fibre = idle_.back();
      idle_.pop_back();
      leave(scheduler_, fibre->place);
      continue;
    }
    fibres_.push_back(std::make_unique<Fibre>());
    beginning_ = fibres_.back().get();
    beginning_->stack.reset(new char[kStackBytes]);
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = beginning_->stack.get();
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    makecontext(&context, live, 0);
    leave(scheduler_, context);
  }
}

void Threadgroup::take_turns(uint32_t first_turn) {
  for (uint32_t turn = first_turn; turn < first_turn + kSimdWidth; ++turn) {
    running_ = at(turn);
    if (threads_[running_].state == State::kReady) leave(scheduler_, threads_[running_].place);
  }
}

// Those that wait would wait for ever: their stacks are given up.
void Threadgroup::fail() {
  uint32_t at_barrier = 0, done = 0;
  std::string operations;
  for (const Thread& thread : threads_) {
    at_barrier += thread.state == State::kAtBarrier;
    done += thread.state == State::kDone;
    const bool is_elsewhere = thread.state == State::kAtExchange || thread.state == State::kRefused;
    if (is_elsewhere && operations.find(thread.what) == std::string::npos) {
      operations += std::string(", some at ") + thread.what;
    }
  }
  const size_t threads = threads_.size();
  idle_.clear();
  fibres_.clear();
  throw std::logic_error("threads of a threadgroup wait for different things: of " +
                         std::to_string(threads) + " " + std::to_string(at_barrier) +
                         " are at a barrier, " + std::to_string(done) + " have returned" +
                         operations);
}

// As far as it goes without the others, as it may on a GPU: what one simdgroup leaves before
// another has read what was there shows.
void Threadgroup::run_simdgroup(uint32_t first_turn) {
  do {
    take_turns(first_turn);
  } while (release_simdgroup(first_turn));
}

bool Threadgroup::release_simdgroup(uint32_t first_turn) {
  const uint32_t first = at(first_turn) / kSimdWidth * kSimdWidth;
  for (uint32_t i = first; i < first + kSimdWidth; ++i) {
    if (threads_[i].state != State::kAtExchange) return false;
    if (std::strcmp(threads_[i].what, threads_[first].what) != 0) return false;
  }
  for (uint32_t i = first; i < first + kSimdWidth; ++i) threads_[i].state = State::kReady;
  return true;
}

// Once no simdgroup goes on by itself: whether all may; false once all are done.
bool Threadgroup::release() {
  uint32_t at_barrier = 0, done = 0;
  for (const Thread& thread : threads_) {
    at_barrier += thread.state == State::kAtBarrier;
    done += thread.state == State::kDone;
  }
  if (done == threads_.size()) return false;
  if (at_barrier != threads_.size()) fail();
  for (Thread& thread : threads_) thread.state = State::kReady;
  return true;
}

void Threadgroup::run(uint32_t threads, Turns turns, void (*body)(void*, uint32_t), void* context) {
  if (threads == 0 || threads % kSimdWidth != 0) {
    throw std::logic_error("a threadgroup of " + std::to_string(threads) +
                           " threads, not a multiple of 32");
  }
  turns_ = turns;
  begun_ = 0;
  body_ = body;
  body_context_ = context;
  threads_.assign(threads, Thread{{}, State::kReady, nullptr, 0});
  if (simdgroups_.size() < threads / kSimdWidth) simdgroups_.resize(threads / kSimdWidth);
  for (uint32_t turn = 0; turn < threads; turn += kSimdWidth) {
    begin(turn + kSimdWidth);
    run_simdgroup(turn);
  }
  while (release()) {
    for (uint32_t turn = 0; turn < threads; turn += kSimdWidth) run_simdgroup(turn);
  }
}

void Threadgroup::wait(State state, const char* what) {
  Thread& thread = threads_[running_];
  thread.state = state;
  thread.what = what;
  leave(thread.place, scheduler_);
}

// Nothing makes it ready again, so that the run fails once nobody else may go on.
void Threadgroup::refuse(const char* what) {
  wait(State::kRefused, what);
  std::abort();
}

const void* Threadgroup::exchange(const void* value, size_t bytes, const char* what) {
  char* const values =
      simdgroups_[running_ / kSimdWidth].values[threads_[running_].exchanges++ % 2];
  if (bytes > 0) std::memcpy(values + running_ % kSimdWidth * bytes, value, bytes);
  wait(State::kAtExchange, what);
  return values;
}

}  // namespace

void run_threadgroup(uint32_t threads, Turns turns, void (*body)(void*, uint32_t), void* context) {
  current.run(threads, turns, body, context);
}

uint32_t thread() { return current.running(); }
uint32_t lane() { return current.running() % kSimdWidth; }
void wait_for_threadgroup() { current.wait(State::kAtBarrier, "threadgroup_barrier"); }
const void* exchange(const void* value, size_t bytes, const char* what) {
  return current.exchange(value, bytes, what);
}
void refuse(const char* what) { current.refuse(what); }

}  // namespace device_shim
