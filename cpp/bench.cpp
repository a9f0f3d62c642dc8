#include "bench.h"

#include "bench_graphs.h"
#include "bench_learner.h"
#include "bench_physics.h"
#include "bench_replay.h"
#include "bench_train.h"
#include "bench_update.h"
#include "status.h"

namespace millrace {

nlohmann::json run_bench(const nlohmann::json& request) {
  const std::string kind = request.value("kind", "");
  if (kind == "physics") return bench_physics(request);
  if (kind == "replay") return bench_replay(request);
  if (kind == "update") return bench_update(request);
  if (kind == "learner") return bench_learner(request);
  if (kind == "train") return bench_train(request);
  if (kind == "graphs") return bench_graphs(request);
  throw Failure(
      Code::kInvalid,
      "bench: '" + kind + "' is not one of physics, replay, update, learner, train, graphs");
}

}  // namespace millrace
