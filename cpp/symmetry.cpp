#include "symmetry.h"

#include <algorithm>

#include "status.h"

namespace millrace {

namespace {

std::string partner_of(const std::string& joint) {
  if (joint.rfind("left_", 0) == 0) return "right_" + joint.substr(5);
  if (joint.rfind("right_", 0) == 0) return "left_" + joint.substr(6);
  return joint;
}

bool turns_over(const std::string& joint) {
  return joint.find("roll") != std::string::npos || joint.find("yaw") != std::string::npos;
}

MirrorMap signs(std::vector<float> sign) {
  MirrorMap map;
  map.sign = std::move(sign);
  for (size_t i = 0; i < map.sign.size(); ++i) map.source.push_back(static_cast<int>(i));
  return map;
}

MirrorMap mirror_term(int term, const MirrorMap& joints, const MirrorMap& actions) {
  switch (term) {
    case kObserveGyro:  // an axial vector: only the part about the mirror's normal stays
      return signs({-1, 1, -1});
    case kObserveProjectedGravity:
    case kObserveLocalLinearVelocity:
      return signs({1, -1, 1});
    case kObserveCommand:
      return signs({1, -1, -1});
    case kObserveGaitPhase:
      return {{1, 0}, {1, 1}};
    case kObserveJointPosition:
    case kObserveJointVelocity:
      return joints;
    case kObserveLastAction:
      return actions;
    default:
      throw Failure(Code::kBug,
                    "observation term " + std::to_string(term) + " has no left-right mirror rule");
  }
}

}  // namespace

void MirrorMap::apply(const float* in, float* out) const {
  for (size_t i = 0; i < source.size(); ++i) out[i] = sign[i] * in[source[i]];
}

MirrorMap mirror_joints(const std::vector<std::string>& joint_names) {
  MirrorMap map;
  for (const std::string& joint : joint_names) {
    const std::string partner = partner_of(joint);
    const auto found = std::find(joint_names.begin(), joint_names.end(), partner);
    if (found == joint_names.end()) {
      throw Failure(Code::kInvalid,
                    "model: joint " + joint + " has no partner " + partner + " to mirror it");
    }
    map.source.push_back(static_cast<int>(found - joint_names.begin()));
    map.sign.push_back(turns_over(joint) ? -1.0f : 1.0f);
  }
  return map;
}

MirrorMap mirror_observation(const ObservationLayout& layout, const MirrorMap& joints,
                             const MirrorMap& actions) {
  MirrorMap map;
  for (int k = 0; k < layout.count; ++k) {
    const MirrorMap part = mirror_term(layout.slot[k].term, joints, actions);
    MR_CHECK(static_cast<int>(part.source.size()) == layout.slot[k].dim,
             "mirror rule and observation term disagree on their size");
    for (size_t i = 0; i < part.source.size(); ++i) {
      map.source.push_back(layout.slot[k].offset + part.source[i]);
      map.sign.push_back(part.sign[i]);
    }
  }
  return map;
}

}  // namespace millrace
