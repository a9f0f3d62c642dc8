// Tests for cpp/sac_programs.cpp.
#include "sac_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "flashsac_fixture.h"

namespace millrace {
namespace {

TEST(SacPrograms, AreThoseOfTheNamedAlgorithm) {
  const auto fast = SacPrograms::make(small_spec(), small_layout());
  const auto flash = SacPrograms::make(small_flash_spec(), small_layout());
  EXPECT_EQ(fast->critic_program->name(), "fastsac/critic");
  EXPECT_EQ(flash->critic_program->name(), "flashsac/critic");
  EXPECT_EQ(flash->policy_shape.algorithm, Algorithm::kFlashSac);
  EXPECT_FALSE(fast->steps_temperature_with_actor());
  EXPECT_TRUE(flash->steps_temperature_with_actor());
}

// What each of them reads, to a place of its own; the critics of an update alone need no more than
// the next state, theirs, and the action.
TEST(SacPrograms, UnpackAllOfTheBatchInTheFirstOp) {
  const RowLayout layout = small_layout();
  for (const LearnerSpec& spec : {small_spec(), small_flash_spec()}) {
    const auto programs = SacPrograms::make(spec, layout);
    for (const bool with_actor : {false, true}) {
      std::vector<const UnpackOp*> ops;
      for (const Program::Record& record : programs->program(with_actor).records()) {
        if (const auto* op = std::get_if<UnpackOp>(&record.op)) ops.push_back(op);
      }
      ASSERT_EQ(ops.size(), 1u);
      EXPECT_EQ(ops[0], std::get_if<UnpackOp>(&programs->program(with_actor).records()[0].op));
      std::multiset<int> columns;
      std::set<std::pair<int, uint64_t>> places;
      for (const UnpackPart& part : ops[0]->parts) {
        columns.insert(part.column);
        places.insert({part.target.carrier, part.target.offset});
      }
      std::multiset<int> expected = {layout.next_observation(), layout.next_critic(),
                                     layout.critic(), layout.action()};
      if (with_actor) expected.insert({layout.observation(), layout.critic()});
      EXPECT_EQ(columns, expected);
      EXPECT_EQ(places.size(), expected.size());
    }
  }
}

// What a policy takes is the actor's carrier: parameters, running statistics, normaliser, and what
// fills rows up between them.
TEST(SacPrograms, APolicyTakesTheWholeSpanOfTheActor) {
  for (const bool is_normalised : {false, true}) {
    for (LearnerSpec spec : {small_spec(), small_flash_spec()}) {
      spec.observation_normalizer = is_normalised;
      const auto programs = SacPrograms::make(spec, small_layout());
      const uint64_t normaliser =
          is_normalised ? 2 * static_cast<uint64_t>(small_layout().observation_dim) : 0;
      uint64_t end = 0;
      for (const NetworkTensor& tensor : programs->actor_tensors()) {
        end = std::max(end, tensor.offset + tensor.distance);
      }
      const uint64_t floats = end + normaliser;
      EXPECT_EQ(programs->policy_parameter_count(), floats);
      const auto carrier = static_cast<size_t>(programs->actor_state.parameters.carrier);
      EXPECT_EQ(programs->workspace.carriers()[carrier].count, floats);
      EXPECT_LE(programs->actor_state.count, floats - normaliser);
    }
  }
}

}  // namespace
}  // namespace millrace
