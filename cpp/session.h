// A session is what a Java handle stands for: training (cpp/run.h) or playing a policy
// (cpp/player.h). One thread, the one that opened it, makes every call but stop() and error().
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "state_registry.h"
#include "status.h"

namespace millrace {

class Session {
 public:
  virtual ~Session() = default;

  // What stands since the session was opened: carriers, rng, replay, budget, physics, graphs.
  virtual nlohmann::json facts() const = 0;

  // Runs at most `ticks` ticks and reports on them.
  virtual nlohmann::json advance(uint64_t ticks) = 0;

  // Asks advance() to return at the next tick boundary. Any thread.
  virtual void stop() = 0;

  // Everything a checkpoint holds, in a fixed order.
  virtual const StateRegistry& registry() const = 0;

  // Takes over what was written into the registered tensors.
  virtual void restored(bool with_replay) = 0;

  // Any thread.
  virtual const FirstError& first_error() const = 0;
};

// `config` is the resolved configuration and `mode`. Throws Failure(kInvalid) for what preflight
// would have refused as input.
std::unique_ptr<Session> open_session(const nlohmann::json& config);

}  // namespace millrace
