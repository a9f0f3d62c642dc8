#include "program_facts.h"

namespace millrace {

const char* to_string(TermClass term_class) {
  switch (term_class) {
    case TermClass::kPure:
      return "PURE";
    case TermClass::kInterval:
      return "INTERVAL";
    case TermClass::kResetOwned:
      return "RESET_OWNED";
    case TermClass::kStepOwned:
      return "STEP_OWNED";
    case TermClass::kHostEvent:
      return "HOST_EVENT";
    case TermClass::kGlobal:
      return "GLOBAL";
  }
  return "unknown";
}

const char* to_string(RandomStream stream) {
  switch (stream) {
    case kStreamReset:
      return "reset";
    case kStreamCommand:
      return "command";
    case kStreamEvent:
      return "event";
    case kStreamObservationNoise:
      return "observation_noise";
    case kStreamExploration:
      return "exploration";
    case kStreamSampler:
      return "sampler";
    case kStreamLearnerNoise:
      return "learner_noise";
    case kStreamInitialWeights:
      return "initial_weights";
    case kStreamGainRandomisation:
      return "gain_randomisation";
    case kStreamFrameSampler:
      return "frame_sampler";
  }
  return "unknown";
}

nlohmann::json to_json(const ProgramFacts& program) {
  nlohmann::json ops = nlohmann::json::array();
  for (const OpFacts& op : program.ops) {
    ops.push_back({{"name", op.name},
                   {"site", op.site},
                   {"device", op.device},
                   {"parts", op.parts},
                   {"reads", op.reads},
                   {"writes", op.writes}});
  }
  nlohmann::json carriers = nlohmann::json::array();
  for (const CarrierFacts& carrier : program.carriers) {
    carriers.push_back({{"name", carrier.name},
                        {"owner", carrier.owner},
                        {"device", carrier.device},
                        {"bytes", carrier.bytes}});
  }
  return {{"name", program.name}, {"ops", std::move(ops)}, {"carriers", std::move(carriers)}};
}

}  // namespace millrace
