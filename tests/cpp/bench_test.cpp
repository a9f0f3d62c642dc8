// Tests for cpp/bench.cpp.
#include "bench.h"

#include <gtest/gtest.h>

#include "resources.h"
#include "run_fixture.h"

namespace millrace {
namespace {

TEST(Bench, DispatchesByKind) {
  EXPECT_TRUE(run_bench({{"kind", "train"},
                         {"config", cartpole_config()},
                         {"rounds", 1},
                         {"ticks", 2},
                         {"warmup_ticks", 0}})
                  .contains("medians"));
  EXPECT_TRUE(run_bench({{"kind", "physics"},
                         {"model_file", resources() + "/models/g1.xml"},
                         {"envs", 2},
                         {"ticks", 2},
                         {"rounds", 1},
                         {"threads", 1}})
                  .contains("ratio"));
}

TEST(Bench, AnUnknownKindIsRefused) {
  for (const nlohmann::json& request :
       {nlohmann::json{{"kind", "memory"}}, nlohmann::json::object()}) {
    try {
      run_bench(request);
      FAIL();
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kInvalid);
      EXPECT_NE(
          std::string(failure.what()).find("is not one of physics, replay, update, learner, train"),
          std::string::npos);
    }
  }
}

}  // namespace
}  // namespace millrace
