// Tests for cpp/policy_network.cpp: each algorithm's, as its learner's tensors lie.
#include "policy_network.h"

#include <gtest/gtest.h>

#include "flashsac_fixture.h"

namespace millrace {
namespace {

TEST(PolicyNetwork, HasTheTensorsOfTheLearnersActor) {
  LearnerSpec plain = small_spec();
  plain.network = NetworkBody::kPlain;
  for (const LearnerSpec& spec : {small_spec(), plain, small_flash_spec()}) {
    const auto programs = SacPrograms::make(spec, small_layout());
    const auto network = PolicyNetwork::make(programs->policy_shape);
    EXPECT_EQ(network->parameter_count(), programs->policy_parameter_count());
    ASSERT_EQ(network->tensors().size(), programs->actor_tensors().size());
    for (size_t i = 0; i < network->tensors().size(); ++i) {
      EXPECT_EQ(network->tensors()[i].name, programs->actor_tensors()[i].name);
      EXPECT_EQ(network->tensors()[i].offset, programs->actor_tensors()[i].offset);
    }
  }
}

TEST(PolicyNetwork, OnlyFlashSacsActsByRunningStatistics) {
  for (const LearnerSpec& spec : {small_spec(), small_flash_spec()}) {
    const auto network = PolicyNetwork::make(policy_shape_of(spec, small_layout()));
    Workspace workspace;
    const Operand parameters = workspace.add_floats("parameters", network->parameter_count());
    const auto rows_of = [](int width) { return 4 * static_cast<uint64_t>(width); };
    const Operand input = workspace.add_floats("input", rows_of(network->input_stride()));
    const Operand heads = workspace.add_floats("heads", rows_of(network->head_width()));
    network->add_carriers(workspace, 4);
    Program program("act", workspace);
    network->record(program, parameters, 4, input, heads);
    int norms = 0;
    for (const Program::Record& record : program.records()) {
      const auto* norm = std::get_if<BatchNormForwardOp>(&record.op);
      if (norm == nullptr) continue;
      EXPECT_FALSE(norm->norm.is_training);
      ++norms;
    }
    EXPECT_EQ(norms, spec.algorithm == Algorithm::kFlashSac ? 5 : 0);
  }
}

}  // namespace
}  // namespace millrace
