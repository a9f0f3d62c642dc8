#include "learner.h"

#include <set>
#include <sstream>

namespace millrace {
namespace {

// Reads the keys of one section and remembers which were asked for.
class Section {
 public:
  explicit Section(const nlohmann::json& section) : section_(section) {
    if (!section.is_object()) throw Failure(Code::kInvalid, "learner: expected a section");
  }

  int integer(const char* key, int low, int high) {
    const nlohmann::json& value = at(key);
    if (!value.is_number_integer()) refuse(key, "expected an integer");
    const int64_t number = value.get<int64_t>();
    if (number < low || number > high) {
      refuse(key, "must be in " + std::to_string(low) + ".." + std::to_string(high));
    }
    return static_cast<int>(number);
  }

  float number(const char* key, double low, double high) {
    const nlohmann::json& value = at(key);
    if (!value.is_number()) refuse(key, "expected a number");
    const double number = value.get<double>();
    if (!(number >= low && number <= high)) {
      std::ostringstream range;
      range << "must be in " << low << ".." << high;
      refuse(key, range.str());
    }
    return static_cast<float>(number);
  }

  bool flag(const char* key) {
    const nlohmann::json& value = at(key);
    if (!value.is_boolean()) refuse(key, "expected true or false");
    return value.get<bool>();
  }

  std::string choice(const char* key, const std::set<std::string>& allowed) {
    const nlohmann::json& value = at(key);
    if (value.is_string() && allowed.count(value.get<std::string>()) > 0) return value;
    std::string names;
    for (const std::string& name : allowed) names += (names.empty() ? "" : ", ") + name;
    refuse(key, "must be one of " + names);
    return "";
  }

  void refuse(const char* key, const std::string& why) const {
    const auto value = section_.find(key);
    throw Failure(Code::kInvalid, std::string("learner.") + key + ": " + why + ", got " +
                                      (value == section_.end() ? "nothing" : value->dump()));
  }

  void refuse_unknown() const {
    for (const auto& item : section_.items()) {
      if (known_.count(item.key()) == 0) {
        throw Failure(Code::kInvalid, "learner." + item.key() + ": unknown key");
      }
    }
  }

 private:
  const nlohmann::json& at(const char* key) {
    known_.insert(key);
    const auto value = section_.find(key);
    if (value == section_.end()) {
      throw Failure(Code::kInvalid, std::string("learner.") + key + ": missing");
    }
    return *value;
  }

  const nlohmann::json& section_;
  std::set<std::string> known_;
};

RewardScaling reward_scaling_named(const std::string& name) {
  return name == "off"       ? RewardScaling::kOff
         : name == "episode" ? RewardScaling::kEpisode
                             : RewardScaling::kFlashSac;
}

}  // namespace

PolicyShape policy_shape_of(const LearnerSpec& spec, const RowLayout& layout) {
  return {layout.observation_dim,      layout.action_dim, spec.actor_hidden,
          spec.observation_normalizer, spec.algorithm,    spec.network};
}

LearnerSpec parse_learner(const nlohmann::json& learner) {
  constexpr int kMany = 1 << 24;
  constexpr double kLarge = 1e6;
  Section section(learner);
  LearnerSpec spec;
  spec.batch = section.integer("batch", 1, kMany);
  spec.updates_per_tick = section.integer("updates_per_tick", 1, 1024);
  spec.learning_starts = section.integer("learning_starts", 0, kMany);
  spec.policy_frequency = section.integer("policy_frequency", 1, 1024);
  spec.gamma = section.number("gamma", 0, 1);
  spec.tau = section.number("tau", 0, 1);
  spec.network = section.choice("network", {"auto", "plain"}) == "plain" ? NetworkBody::kPlain
                                                                         : NetworkBody::kFastSac;
  spec.actor_hidden = section.integer("actor_hidden", 4, 16384);
  spec.critic_hidden = section.integer("critic_hidden", 4, 16384);
  spec.critic = section.choice("critic", {"c51", "scalar"}) == "scalar" ? CriticKind::kScalar
                                                                        : CriticKind::kC51;
  spec.atoms = section.integer("atoms", 2, 4096);
  spec.v_min = section.number("v_min", -kLarge, kLarge);
  spec.v_max = section.number("v_max", -kLarge, kLarge);
  spec.actor_lr = section.number("actor_lr", 0, 1);
  spec.critic_lr = section.number("critic_lr", 0, 1);
  spec.alpha_lr = section.number("alpha_lr", 0, 1);
  spec.lr_decay_steps = section.integer("lr_decay_steps", 0, 1 << 30);
  spec.lr_final_share = section.number("lr_final_share", 0, 1);
  spec.weight_decay = section.number("weight_decay", 0, 1);
  spec.beta1 = section.number("beta1", 0, 0.999999);
  spec.beta2 = section.number("beta2", 0, 0.999999);
  spec.alpha_init = section.number("alpha_init", 1e-8, 1e4);
  spec.target_entropy_ratio = section.number("target_entropy_ratio", -10, 10);
  spec.max_grad_norm = section.number("max_grad_norm", 0, kLarge);
  spec.symmetry = section.flag("symmetry");
  spec.observation_normalizer = section.flag("observation_normalizer");
  spec.reward_scaling =
      reward_scaling_named(section.choice("reward_scaling", {"episode", "flashsac", "off"}));
  spec.noise_repeat_max = section.integer("noise_repeat_max", 1, 1024);
  spec.threads = section.integer("threads", 1, 256);
  spec.place = section.choice("place", {"auto", "device", "host"});
  section.refuse_unknown();
  if (spec.actor_hidden % 4 != 0) section.refuse("actor_hidden", "must be a multiple of 4");
  if (spec.critic_hidden % 4 != 0) section.refuse("critic_hidden", "must be a multiple of 4");
  if (!(spec.v_max > spec.v_min)) section.refuse("v_max", "must be above learner.v_min");
  return spec;
}

}  // namespace millrace
