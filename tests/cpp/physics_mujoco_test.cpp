#include "physics_mujoco.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "physics_fixture.h"
#include "status.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

constexpr double kPi = 3.14159265358979323846;

// One row of doubles or floats per environment, filled with a default row.
template <typename T>
struct Rows {
  Rows(int num_envs, const std::vector<T>& row) : width(row.size()) {
    for (int env = 0; env < num_envs; ++env) values.insert(values.end(), row.begin(), row.end());
  }
  void set(int env, const std::vector<T>& row) {
    std::copy(row.begin(), row.end(), values.begin() + static_cast<std::ptrdiff_t>(env * width));
  }
  T* data() { return values.data(); }
  size_t width;
  std::vector<T> values;
};

// The state, actions and mask of a batch.
struct Batch {
  Batch(const SimModel& model, int num_envs)
      : qpos(num_envs, model.default_qpos),
        qvel(num_envs, std::vector<double>(static_cast<size_t>(model.nv))),
        gains(num_envs, {1.0, 1.0}),
        actions(num_envs, std::vector<float>(static_cast<size_t>(model.num_actions))),
        everyone(static_cast<size_t>(num_envs), 1) {}
  void reset(PhysicsMujoco& physics) {
    physics.reset(everyone.data(), qpos.data(), qvel.data(), gains.data());
  }
  Rows<double> qpos, qvel, gains;
  Rows<float> actions;
  std::vector<uint8_t> everyone;
};

std::vector<double> exact(const double* values, int count) { return {values, values + count}; }

std::vector<float> field(const PhysicsMujoco& physics, SimField name, int env) {
  const FieldView view = physics.state_view()[name];
  std::vector<float> values;
  for (int i = 0; i < view.dim; ++i) values.push_back(component(view, env, i));
  return values;
}

// A plain mj_step loop on one mjData.
struct PlainLoop {
  explicit PlainLoop(const SimSpec& spec)
      : substeps(spec.substeps), model(load_model(spec.model_path)), data(make_data(*model)) {
    controls = default_controls(*model, describe_model(*model, index_model(*model, spec)));
  }
  void start(const std::vector<double>& qpos, const std::vector<double>& qvel) {
    mj_resetData(model.get(), data.get());
    std::copy(qpos.begin(), qpos.end(), data->qpos);
    std::copy(qvel.begin(), qvel.end(), data->qvel);
  }
  void tick(const float* action) {
    for (int i = 0; i < model->nu; ++i) {
      data->ctrl[i] = controls[static_cast<size_t>(i)] + 1.0 * action[i];
    }
    for (int substep = 0; substep < substeps; ++substep) mj_step(model.get(), data.get());
  }
  int substeps;
  ModelPtr model;
  DataPtr data;
  std::vector<double> controls;
};

TEST(PhysicsMujoco, EqualsAPlainLoopBitForBit) {
  constexpr int kEnvs = 5, kTicks = 200;  // 600 physics steps
  WorkerPool pool(2);
  PhysicsMujoco physics(g1_spec(), kEnvs, pool);
  PlainLoop plain(g1_spec());
  for (unsigned seed : {1u, 2u, 3u}) {
    RandomState random(seed);
    Batch batch(physics.model(), kEnvs);
    for (int env = 0; env < kEnvs; ++env) {
      batch.qpos.set(env, random.qpos(physics.model()));
      batch.qvel.set(env, random.qvel(physics.model()));
    }
    std::vector<std::vector<float>> actions;
    for (int i = 0; i < kTicks * kEnvs; ++i)
      actions.push_back(random.actions(physics.model(), .4f));
    const int watched = static_cast<int>(seed) % kEnvs;
    std::vector<std::vector<double>> trajectory;
    batch.reset(physics);
    for (int tick = 0; tick < kTicks; ++tick) {
      for (int env = 0; env < kEnvs; ++env) {
        batch.actions.set(env, actions[static_cast<size_t>(tick * kEnvs + env)]);
      }
      physics.step(batch.actions.data(), static_cast<uint64_t>(tick));
      trajectory.push_back(exact(physics.qpos(watched), 36));
    }
    for (int env = 0; env < kEnvs; ++env) {
      plain.start(exact(&batch.qpos.values[static_cast<size_t>(env * 36)], 36),
                  exact(&batch.qvel.values[static_cast<size_t>(env * 35)], 35));
      for (int tick = 0; tick < kTicks; ++tick) {
        plain.tick(actions[static_cast<size_t>(tick * kEnvs + env)].data());
        if (env == watched) {
          ASSERT_EQ(trajectory[static_cast<size_t>(tick)], exact(plain.data->qpos, 36)) << tick;
        }
      }
      EXPECT_EQ(exact(physics.qpos(env), 36), exact(plain.data->qpos, 36)) << env;
      EXPECT_EQ(exact(physics.qvel(env), 35), exact(plain.data->qvel, 35)) << env;
    }
  }
  EXPECT_EQ(physics.unstable_count(), 0u);
}

TEST(PhysicsMujoco, FieldsAreThoseOfTheSensors) {
  const SimSpec spec = g1_spec();
  WorkerPool pool(1);
  PhysicsMujoco physics(spec, 1, pool);
  std::ifstream file(spec.model_path);
  std::stringstream text;
  text << file.rdbuf();
  std::string with_sensors = text.str();
  with_sensors.insert(
      with_sensors.rfind("</mujoco>"),
      "<sensor><gyro site='imu_in_torso' cutoff='34.9'/><velocimeter site='imu_in_pelvis'/>"
      "<framepos objtype='site' objname='left_foot'/><framequat objtype='site' "
      "objname='right_foot'/><framelinvel objtype='xbody' objname='right_wrist_yaw_link'/>"
      "<frameangvel objtype='xbody' objname='right_wrist_yaw_link'/></sensor>");
  const TemporaryFolder folder;
  const std::string path = folder / "sensors.xml";
  std::ofstream(path) << with_sensors;
  const ModelPtr model = load_model(path);
  const DataPtr data = make_data(*model);

  RandomState random(5);
  Batch batch(physics.model(), 1);
  batch.qpos.set(0, random.qpos(physics.model()));
  batch.qvel.set(0, random.qvel(physics.model()));
  batch.reset(physics);
  for (int tick = 0; tick < 20; ++tick) {
    batch.actions.set(0, random.actions(physics.model(), 0.3f));
    physics.step(batch.actions.data(), 0);
    std::copy_n(physics.qpos(0), 36, data->qpos);
    std::copy_n(physics.qvel(0), 35, data->qvel);
    mj_forward(model.get(), data.get());
    const auto sensor = [&](int address, int count) {
      return std::vector<float>(data->sensordata + address, data->sensordata + address + count);
    };
    const auto tail = [](std::vector<float> v, size_t from) {
      return std::vector<float>(v.begin() + static_cast<std::ptrdiff_t>(from), v.end());
    };
    EXPECT_EQ(field(physics, kGyro, 0), sensor(0, 3));
    EXPECT_EQ(field(physics, kLocalLinearVelocity, 0), sensor(3, 3));
    auto feet = field(physics, kFootPosition, 0);
    feet.resize(3);
    EXPECT_EQ(feet, sensor(6, 3));
    EXPECT_EQ(tail(field(physics, kFootQuaternion, 0), 4), sensor(9, 4));
    EXPECT_EQ(tail(field(physics, kBodyLinearVelocity, 0), 9), sensor(13, 3));
    EXPECT_EQ(tail(field(physics, kBodyAngularVelocity, 0), 9), sensor(16, 3));
    const int torso = mj_name2id(model.get(), mjOBJ_BODY, "torso_link");
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(field(physics, kProjectedGravity, 0)[static_cast<size_t>(i)],
                -static_cast<float>(data->xmat[9 * torso + 6 + i]));
    }
  }
}

TEST(PhysicsMujoco, WithFixedTargetsTheG1TopplesAtTick72) {
  WorkerPool pool(1);
  PhysicsMujoco physics(g1_spec(), 1, pool);
  const std::vector<float> zero(29, 0.0f);
  EXPECT_EQ(field(physics, kFootContact, 0), (std::vector<float>{1.0f, 1.0f}));
  int tick = 0;
  double tilt = 0.0;
  while (tilt <= 65.0 && tick < 200) {
    physics.step(zero.data(), static_cast<uint64_t>(tick++));
    tilt = std::acos(-field(physics, kProjectedGravity, 0)[2]) * 180.0 / kPi;
    if (tick == 40) {
      EXPECT_EQ(field(physics, kFootContact, 0), (std::vector<float>{1.0f, 1.0f}));
    }
  }
  EXPECT_EQ(tick, 72);
}

TEST(PhysicsMujoco, FeetInTheAirDoNotTouch) {
  WorkerPool pool(1);
  PhysicsMujoco physics(g1_spec(), 1, pool);
  Batch batch(physics.model(), 1);
  batch.qpos.values[2] = 1.0;
  batch.reset(physics);
  EXPECT_EQ(field(physics, kFootContact, 0), (std::vector<float>{0.0f, 0.0f}));
  physics.step(batch.actions.data(), 0);
  EXPECT_EQ(field(physics, kFootContact, 0), (std::vector<float>{0.0f, 0.0f}));
}

// The mirror image about the x-z plane, by names.
struct Mirror {
  explicit Mirror(const SimModel& model) {
    for (const std::string& name : model.joint_names) {
      std::string other = name;
      if (name.rfind("left_", 0) == 0) other = "right_" + name.substr(5);
      if (name.rfind("right_", 0) == 0) other = "left_" + name.substr(6);
      const auto found = std::find(model.joint_names.begin(), model.joint_names.end(), other);
      source.push_back(static_cast<size_t>(found - model.joint_names.begin()));
      const bool flips =
          name.find("roll") != std::string::npos || name.find("yaw") != std::string::npos;
      sign.push_back(flips ? -1.0 : 1.0);
    }
  }
  template <typename T>
  std::vector<T> joints(const T* values) const {
    std::vector<T> mirrored;
    for (size_t i = 0; i < source.size(); ++i) {
      mirrored.push_back(static_cast<T>(sign[i]) * values[source[i]]);
    }
    return mirrored;
  }
  std::vector<double> qpos(const double* q) const {
    std::vector<double> mirrored = {q[0], -q[1], q[2], q[3], -q[4], q[5], -q[6]};
    const std::vector<double> tail = joints(q + 7);
    mirrored.insert(mirrored.end(), tail.begin(), tail.end());
    return mirrored;
  }
  std::vector<double> qvel(const double* v) const {
    std::vector<double> mirrored = {v[0], -v[1], v[2], -v[3], v[4], -v[5]};
    const std::vector<double> tail = joints(v + 6);
    mirrored.insert(mirrored.end(), tail.begin(), tail.end());
    return mirrored;
  }
  std::vector<size_t> source;
  std::vector<double> sign;
};

double max_difference(const double* a, const std::vector<double>& b) {
  double difference = 0.0;
  for (size_t i = 0; i < b.size(); ++i) difference = std::max(difference, std::abs(a[i] - b[i]));
  return difference;
}

TEST(PhysicsMujoco, AMirroredStateHasAMirroredFuture) {
  constexpr int kPairs = 300;
  WorkerPool pool(2);
  PhysicsMujoco physics(g1_spec(), 2 * kPairs, pool);
  const Mirror mirror(physics.model());
  RandomState random(11);
  Batch batch(physics.model(), 2 * kPairs);
  for (int pair = 0; pair < kPairs; ++pair) {
    const auto qpos = random.qpos(physics.model());
    const auto qvel = random.qvel(physics.model());
    const auto actions = random.actions(physics.model(), 0.5f);
    batch.qpos.set(2 * pair, qpos);
    batch.qvel.set(2 * pair, qvel);
    batch.actions.set(2 * pair, actions);
    batch.qpos.set(2 * pair + 1, mirror.qpos(qpos.data()));
    batch.qvel.set(2 * pair + 1, mirror.qvel(qvel.data()));
    batch.actions.set(2 * pair + 1, mirror.joints(actions.data()));
  }
  batch.reset(physics);
  physics.step(batch.actions.data(), 0);
  double position = 0.0, velocity = 0.0;
  for (int pair = 0; pair < kPairs; ++pair) {
    position = std::max(
        position, max_difference(physics.qpos(2 * pair + 1), mirror.qpos(physics.qpos(2 * pair))));
    velocity = std::max(
        velocity, max_difference(physics.qvel(2 * pair + 1), mirror.qvel(physics.qvel(2 * pair))));
  }
  RecordProperty("position", std::to_string(position * 1e12) + "e-12");
  RecordProperty("velocity", std::to_string(velocity * 1e12) + "e-12");
  EXPECT_LT(position, 1e-9);
  EXPECT_LT(velocity, 1e-9);
}

TEST(PhysicsMujoco, ResetTouchesOnlyTheMaskedEnvironments) {
  WorkerPool pool(2);
  PhysicsMujoco physics(g1_spec(), 3, pool);
  Batch batch(physics.model(), 3);
  for (int tick = 0; tick < 5; ++tick) physics.step(batch.actions.data(), 0);
  const auto before = exact(physics.qpos(0), 36);
  batch.qpos.values[1 * 36] = 7.0;
  batch.qvel.values[1 * 35 + 3] = 2.0;
  const uint8_t mask[3] = {0, 1, 0};
  physics.reset(mask, batch.qpos.data(), batch.qvel.data(), batch.gains.data());
  EXPECT_EQ(exact(physics.qpos(0), 36), before);
  EXPECT_EQ(exact(physics.qpos(2), 36), before);
  EXPECT_EQ(physics.qpos(1)[0], 7.0);
  EXPECT_EQ(field(physics, kRootPosition, 1)[0], 7.0f);
  EXPECT_EQ(field(physics, kRootAngularVelocity, 1)[0], 2.0f);
  EXPECT_FLOAT_EQ(field(physics, kGyro, 1)[0], 2.0f);
  batch.qpos.values[0] = std::nan("");
  EXPECT_THROW(batch.reset(physics), Failure);
}

TEST(PhysicsMujoco, AResetEnvironmentForgetsItsPast) {
  WorkerPool pool(1);
  PhysicsMujoco physics(g1_spec(), 2, pool);
  Batch batch(physics.model(), 2);
  RandomState random(3);
  batch.actions.set(0, random.actions(physics.model(), 0.5f));
  for (int tick = 0; tick < 30; ++tick) physics.step(batch.actions.data(), 0);
  batch.actions.set(1, random.actions(physics.model(), 0.5f));
  batch.actions.set(0, {&batch.actions.values[29], &batch.actions.values[29] + 29});
  batch.reset(physics);
  for (int tick = 0; tick < 30; ++tick) physics.step(batch.actions.data(), 0);
  EXPECT_EQ(exact(physics.qpos(0), 36), exact(physics.qpos(1), 36));
}

// With the default pose as target at rest, kp changes the torque of a displaced joint and kd that
// of a moving one, in proportion; the other environments of the worker keep their own gains.
TEST(PhysicsMujoco, GainsBelongToTheEnvironment) {
  WorkerPool pool(1);
  PhysicsMujoco physics(g1_spec(), 4, pool);
  EXPECT_TRUE(physics.capabilities().can_randomise_gains);
  Batch batch(physics.model(), 4);
  for (int env = 0; env < 4; ++env) {
    batch.qpos.values[static_cast<size_t>(env * 36 + 2)] = 2.0;
    batch.qpos.values[static_cast<size_t>(env * 36 + 7 + 3)] += 0.2;
    batch.qvel.values[static_cast<size_t>(env * 35 + 6 + 4)] = 3.0;
  }
  batch.gains.set(1, {1.1, 1.0});
  batch.gains.set(2, {1.0, 0.9});
  batch.reset(physics);
  physics.step(batch.actions.data(), 0);

  for (int env = 0; env < 4; ++env) {
    PlainLoop plain(g1_spec());
    for (int i = 0; i < plain.model->nu; ++i) {
      plain.model->actuator_gainprm[i * mjNGAIN] *= env == 1 ? 1.1 : 1.0;
      plain.model->actuator_biasprm[i * mjNBIAS + 1] *= env == 1 ? 1.1 : 1.0;
      plain.model->actuator_biasprm[i * mjNBIAS + 2] *= env == 2 ? 0.9 : 1.0;
    }
    plain.start({&batch.qpos.values[static_cast<size_t>(env * 36)],
                 &batch.qpos.values[static_cast<size_t>(env * 36)] + 36},
                {&batch.qvel.values[static_cast<size_t>(env * 35)],
                 &batch.qvel.values[static_cast<size_t>(env * 35)] + 35});
    plain.tick(batch.actions.data());
    EXPECT_EQ(exact(physics.qvel(env), 35), exact(plain.data->qvel, 35)) << env;
  }
  EXPECT_NE(exact(physics.qvel(0), 35), exact(physics.qvel(1), 35));
  EXPECT_NE(exact(physics.qvel(0), 35), exact(physics.qvel(2), 35));
  EXPECT_EQ(exact(physics.qvel(0), 35), exact(physics.qvel(3), 35));
}

TEST(PhysicsMujoco, AVelocityChangeIsInWorldAxes) {
  WorkerPool pool(1);
  PhysicsMujoco physics(g1_spec(), 2, pool);
  Batch batch(physics.model(), 2);
  // Turned by 90 degrees about x: the body's y axis is the world's z axis.
  batch.qpos.values[2] = 2.0;
  batch.qpos.values[3] = batch.qpos.values[4] = std::sqrt(0.5);
  batch.reset(physics);
  Rows<float> change(2, {0.1f, 0.2f, 0.3f, 0.0f, 0.0f, 1.0f});
  const uint8_t mask[2] = {1, 0};
  physics.apply_velocity_change(mask, change.data());
  const double* velocity = physics.qvel(0);
  EXPECT_EQ(velocity[0], static_cast<double>(0.1f));
  EXPECT_EQ(velocity[1], static_cast<double>(0.2f));
  EXPECT_EQ(velocity[2], static_cast<double>(0.3f));
  EXPECT_NEAR(velocity[3], 0.0, 1e-12);
  EXPECT_NEAR(velocity[4], 1.0, 1e-12);
  EXPECT_NEAR(velocity[5], 0.0, 1e-12);
  EXPECT_EQ(exact(physics.qvel(1), 35), std::vector<double>(35, 0.0));
}

bool all_finite(const PhysicsMujoco& physics, int env) {
  for (int name = 0; name < kSimFieldCount; ++name) {
    for (float value : field(physics, static_cast<SimField>(name), env)) {
      if (!std::isfinite(value)) return false;
    }
  }
  return true;
}

TEST(PhysicsMujoco, AnUnstableEnvironmentStopsAndKeepsItsFields) {
  WorkerPool pool(2);
  PhysicsMujoco physics(g1_spec(), 3, pool);
  Batch batch(physics.model(), 3);
  batch.qvel.values[35 + 10] = 9e9;  // finite, but not after one step
  batch.reset(physics);
  const auto pose = field(physics, kJointPosition, 1);
  const auto slab = exact(physics.qpos(1), 36);
  for (int tick = 0; tick < 3; ++tick) {
    physics.step(batch.actions.data(), 0);
    EXPECT_EQ(field(physics, kUnstable, 0)[0], 0.0f);
    EXPECT_EQ(field(physics, kUnstable, 1)[0], 1.0f);
    EXPECT_EQ(field(physics, kJointPosition, 1), pose);
    EXPECT_EQ(exact(physics.qpos(1), 36), slab);
    EXPECT_TRUE(all_finite(physics, 1));
  }
  EXPECT_EQ(physics.unstable_count(), 1u);
  EXPECT_EQ(exact(physics.qpos(0), 36), exact(physics.qpos(2), 36));

  batch.qvel.values[35 + 10] = 0.0;
  batch.reset(physics);
  EXPECT_EQ(field(physics, kUnstable, 1)[0], 0.0f);
  physics.step(batch.actions.data(), 0);
  EXPECT_EQ(exact(physics.qpos(1), 36), exact(physics.qpos(0), 36));
  EXPECT_EQ(physics.unstable_count(), 1u);
}

TEST(PhysicsMujoco, AnActionThatIsNotFiniteIsUnstable) {
  WorkerPool pool(1);
  PhysicsMujoco physics(g1_spec(), 2, pool);
  Batch batch(physics.model(), 2);
  batch.actions.values[3] = std::numeric_limits<float>::quiet_NaN();
  physics.step(batch.actions.data(), 0);
  EXPECT_EQ(field(physics, kUnstable, 0)[0], 1.0f);
  EXPECT_EQ(field(physics, kUnstable, 1)[0], 0.0f);
  EXPECT_EQ(physics.unstable_causes()["ctrl"], 1u);
}

TEST(PhysicsMujoco, ContinuesExactlyFromItsRegisteredState) {
  constexpr int kEnvs = 4;
  WorkerPool pool(2);
  RandomState random(21);
  PhysicsMujoco original(g1_spec(), kEnvs, pool);
  PhysicsMujoco restored(g1_spec(), kEnvs, pool);
  Batch batch(original.model(), kEnvs);
  batch.gains.set(1, {1.07, 0.93});
  batch.qvel.values[2 * 35 + 10] = 9e9;
  batch.reset(original);
  const auto advance = [&](PhysicsMujoco& physics, int ticks, unsigned seed) {
    RandomState actions(seed);
    for (int tick = 0; tick < ticks; ++tick) {
      for (int env = 0; env < kEnvs; ++env) {
        batch.actions.set(env, actions.actions(physics.model(), 0.3f));
      }
      physics.step(batch.actions.data(), static_cast<uint64_t>(tick));
    }
  };
  advance(original, 30, 1);
  StateRegistry from, to;
  original.register_state(from);
  restored.register_state(to);
  ASSERT_EQ(from.tensors().size(), to.tensors().size());
  for (size_t i = 0; i < from.tensors().size(); ++i) {
    ASSERT_EQ(from.tensors()[i].bytes(), to.tensors()[i].bytes());
    std::memcpy(to.tensors()[i].data, from.tensors()[i].data, from.tensors()[i].bytes());
  }
  restored.state_restored();
  advance(original, 30, 2);
  advance(restored, 30, 2);
  for (size_t i = 0; i < from.tensors().size(); ++i) {
    EXPECT_EQ(std::memcmp(to.tensors()[i].data, from.tensors()[i].data, from.tensors()[i].bytes()),
              0)
        << from.tensors()[i].name;
  }
  EXPECT_EQ(restored.unstable_count(), 1u);
  *static_cast<double*>(to.tensors()[0].data) = std::nan("");
  EXPECT_THROW(restored.state_restored(), Failure);
}

TEST(PhysicsMujoco, TheCartpoleSwings) {
  WorkerPool pool(1);
  PhysicsMujoco physics(cartpole_spec(), 2, pool);
  EXPECT_FALSE(physics.capabilities().can_randomise_gains);
  EXPECT_EQ(physics.state_view()[kRootPosition].data, nullptr);
  EXPECT_EQ(physics.state_view()[kJointPosition].dim, 2);
  Batch batch(physics.model(), 2);
  batch.qpos.set(0, {0.0, kPi});
  batch.qpos.set(1, {0.0, kPi});
  batch.actions.values = {1.0f, 0.0f};
  batch.reset(physics);
  physics.step(batch.actions.data(), 0);
  // F = (m + M) a - m l / 2 * alpha; a hanging pole trails: between 20/1.1 and 20/1.0 m/s2.
  const double acceleration = physics.qvel(0)[0] / 0.02;
  EXPECT_GT(acceleration, 20.0 / 1.1);
  EXPECT_LT(acceleration, 20.0 / 1.0);
  EXPECT_NEAR(physics.qvel(1)[1], 0.0, 1e-12);
  for (int tick = 0; tick < 200; ++tick) physics.step(batch.actions.data(), 0);
  EXPECT_NEAR(field(physics, kJointPosition, 0)[0], 1.8f, 0.05f);  // the stop of the rail
  const float change[12] = {};
  const uint8_t mask[2] = {1, 0};
  EXPECT_THROW(physics.apply_velocity_change(mask, change), Failure);
}

}  // namespace
}  // namespace millrace
