#include "motion_robot.h"

#include <algorithm>

namespace millrace {

namespace {

// Place of `value` in `list`, or -1.
int place_of(const std::vector<int>& list, int value) {
  const auto found = std::find(list.begin(), list.end(), value);
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

}  // namespace

MotionRobot::MotionRobot(const SimSpec& spec)
    : path_(spec.model_path),
      model_(load_model(spec.model_path)),
      index_(index_model(*model_, spec)),
      description_(describe_model(*model_, index_)),
      data_(make_data(*model_)) {}

void MotionRobot::place(const double* root_position, const double* root_quaternion,
                        const double* joints) {
  mju_copy(data_->qpos, model_->qpos0, model_->nq);
  mju_copy3(data_->qpos, root_position);
  mju_copy4(data_->qpos + 3, root_quaternion);
  for (size_t j = 0; j < index_.joints.size(); ++j) {
    data_->qpos[description_.joint_qpos_address[j]] = joints[j];
  }
  mj_kinematics(model_.get(), data_.get());
}

void MotionRobot::place_moving(const double* root_position, const double* root_quaternion,
                               const double* joints, const double* root_linear,
                               const double* root_angular, const double* joint_velocity) {
  place(root_position, root_quaternion, joints);
  mjtNum inverse[4];
  mju_negQuat(inverse, data_->qpos + 3);
  mju_zero(data_->qvel, model_->nv);
  mju_copy3(data_->qvel, root_linear);
  mju_rotVecQuat(data_->qvel + 3, root_angular, inverse);  // a free joint's is in its body's axes
  for (size_t j = 0; j < index_.joints.size(); ++j) {
    data_->qvel[description_.joint_dof_address[j]] = joint_velocity[j];
  }
  mj_comPos(model_.get(), data_.get());
  mj_comVel(model_.get(), data_.get());
}

BodyState MotionRobot::state_of(int body) const {
  BodyState state;
  mju_copy3(state.position, data_->xpos + 3 * body);
  mju_copy4(state.quaternion, data_->xquat + 4 * body);
  mjtNum velocity[6];  // angular, linear
  mj_objectVelocity(model_.get(), data_.get(), mjOBJ_XBODY, body, velocity, 0);
  mju_copy3(state.angular_velocity, velocity);
  mju_copy3(state.linear_velocity, velocity + 3);
  return state;
}

void MotionRobot::feet(double* middle, double* lowest) const {
  mju_zero3(middle);
  *lowest = mjMAXVAL;
  for (const int site : index_.foot_sites) {
    mju_addToScl3(middle, data_->site_xpos + 3 * site,
                  1.0 / static_cast<double>(index_.foot_sites.size()));
    *lowest = std::min(*lowest, data_->site_xpos[3 * site + 2]);
  }
}

// Bodies from the root, those nearer to it first.
std::vector<int> MotionRobot::breadth_first() const {
  std::vector<int> bodies = {index_.root_body};
  for (size_t at = 0; at < bodies.size(); ++at) {
    for (int body = 1; body < model_->nbody; ++body) {
      if (model_->body_parentid[body] == bodies[at]) bodies.push_back(body);
    }
  }
  return bodies;
}

std::vector<MotionRobot::Order> MotionRobot::orders_of(int bodies) const {
  const std::vector<int> breadth = breadth_first();
  std::vector<int> depth = breadth;
  std::sort(depth.begin(), depth.end());
  std::vector<int> own_joints, breadth_joints;
  for (int j = 0; j < joints(); ++j) own_joints.push_back(j);
  for (const int body : breadth) {
    for (int j = 0; j < joints(); ++j) {
      const int joint = index_.joints[static_cast<size_t>(j)];
      if (model_->jnt_bodyid[joint] == body) breadth_joints.push_back(j);
    }
  }
  std::vector<int> tracked, of_depth, of_breadth;
  for (int body = 0; body < this->bodies(); ++body) tracked.push_back(body);
  for (const int body : depth) of_depth.push_back(place_of(index_.bodies, body));
  for (const int body : breadth) of_breadth.push_back(place_of(index_.bodies, body));
  std::vector<Order> orders = {{"tracked bodies", own_joints, tracked},
                               {"depth first", own_joints, of_depth},
                               {"breadth first", breadth_joints, of_breadth}};
  const auto differs = [bodies](const Order& order) {
    return static_cast<int>(order.bodies.size()) != bodies;
  };
  orders.erase(std::remove_if(orders.begin(), orders.end(), differs), orders.end());
  return orders;
}

}  // namespace millrace
