#include "model_loader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "physics_fixture.h"
#include "status.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

struct ModelFile {
  TemporaryFolder folder;
  std::string path = folder / "model.xml";

  explicit ModelFile(const std::string& text) { std::ofstream(path) << text; }
};

std::string message_of(const SimSpec& spec) {
  try {
    const ModelPtr model = load_model(spec.model_path);
    index_model(*model, spec);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
    EXPECT_EQ(std::string(failure.what()).find('\n'), std::string::npos) << failure.what();
    return failure.what();
  }
  return "";
}

TEST(ModelLoader, DescribesTheBuiltInG1) {
  const SimSpec spec = g1_spec();
  const ModelPtr model = load_model(spec.model_path);
  const SimModel g1 = describe_model(*model, index_model(*model, spec));
  EXPECT_EQ(g1.nq, 36);
  EXPECT_EQ(g1.nv, 35);
  EXPECT_EQ(g1.num_actions, 29);
  ASSERT_EQ(g1.joint_names.size(), 29u);
  EXPECT_EQ(g1.joint_names[0], "left_hip_pitch_joint");
  EXPECT_EQ(g1.joint_names[11], "right_ankle_roll_joint");
  EXPECT_EQ(g1.joint_names[12], "waist_yaw_joint");
  EXPECT_EQ(g1.joint_names[28], "right_wrist_yaw_joint");
  EXPECT_EQ(g1.default_qpos[2], 0.754);
  EXPECT_EQ(g1.default_joint_position[3], 0.669);
  EXPECT_EQ(g1.default_joint_position[23], -0.2);
  EXPECT_EQ(g1.joint_lower[1], -0.5236);
  EXPECT_EQ(g1.joint_upper[7], 0.5236);
  EXPECT_EQ(default_controls(*model, g1), g1.default_joint_position);
  EXPECT_NEAR(mj_getTotalmass(model.get()), 33.341, 1e-3);
  for (int i = 0; i < 29; ++i) EXPECT_TRUE(is_servo(*model, i));
}

// kp = armature (2 pi 10 Hz)^2 with the hip motor's armature, not the 0.01 of the joints.
TEST(ModelLoader, GainsComeFromTheMotors) {
  const ModelPtr model = load_model(g1_spec().model_path);
  const double w = 2 * 3.14159265358979323846 * 10;
  EXPECT_NEAR(model->actuator_gainprm[0], 0.010177520 * w * w, 1e-3);
  EXPECT_NEAR(model->actuator_biasprm[2], -4 * 0.010177520 * w, 1e-3);
  EXPECT_EQ(model->dof_armature[6], 0.01);
  EXPECT_EQ(model->dof_frictionloss[6], 0.3);
  EXPECT_EQ(model->dof_frictionloss[0], 0.0);
}

TEST(ModelLoader, UndrivenJointsFollowTheDrivenOnes) {
  const SimSpec spec = cartpole_spec();
  const ModelPtr model = load_model(spec.model_path);
  const SimModel cartpole = describe_model(*model, index_model(*model, spec));
  EXPECT_EQ(cartpole.num_actions, 1);
  EXPECT_EQ(cartpole.joint_names, (std::vector<std::string>{"slider", "hinge"}));
  EXPECT_EQ(cartpole.joint_upper, (std::vector<double>{1.8, mjMAXVAL}));
  EXPECT_EQ(default_controls(*model, cartpole), std::vector<double>{0.0});
  EXPECT_FALSE(is_servo(*model, 0));
}

TEST(ModelLoader, ListsEverythingThatIsMissing) {
  SimSpec spec = g1_spec();
  spec.model_path = cartpole_spec().model_path;
  spec.joint_names = {"slider", "left_knee_joint"};
  const std::string message = message_of(spec);
  for (const char* missing :
       {"a free joint at the root", "body 'torso_link'", "site 'imu_in_pelvis'",
        "site 'imu_in_torso'", "site 'left_foot'", "site 'right_foot'", "body 'left_knee_link'",
        "joint 'left_knee_joint'"}) {
    EXPECT_NE(message.find(missing), std::string::npos) << missing << " in " << message;
  }
  EXPECT_EQ(message.find("slider"), std::string::npos);
}

TEST(ModelLoader, RefusesAnActuatorWithoutAJointOfItsOwn) {
  SimSpec spec = cartpole_spec();
  const ModelFile file(
      "<mujoco><worldbody><body><joint name='j'/><geom size='1'/></body></worldbody><actuator>"
      "<motor name='one' joint='j'/><motor name='two' joint='j'/></actuator></mujoco>");
  spec.model_path = file.path;
  EXPECT_NE(message_of(spec).find("'two'"), std::string::npos);
}

TEST(ModelLoader, RefusesATimestepThatDoesNotFillTheTick) {
  SimSpec spec = g1_spec();
  spec.substeps = 4;
  EXPECT_NE(message_of(spec).find("4 substeps is not the tick"), std::string::npos);
}

TEST(ModelLoader, SurvivesBrokenModels) {
  std::string nested;
  for (int i = 0; i < 100000; ++i) nested += "<body>";
  for (const std::string& text :
       {std::string("<mujoco><worldbody><body>"), std::string("not XML at all"), std::string(),
        std::string("<mujoco><no_such_element/></mujoco>"),
        std::string("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>"),
        std::string("<mujoco><include file='none.xml'/></mujoco>"),
        std::string("<mujoco><include file='../none.xml'/></mujoco>"),
        "<mujoco><worldbody>" + nested}) {
    EXPECT_THROW(load_model(ModelFile(text).path), Failure) << text.substr(0, 80);
  }
  EXPECT_THROW(load_model("/nowhere/robot.xml"), Failure);
}

// MuJoCo's default fatal handler would end the process here.
TEST(ModelLoader, FatalErrorsBecomeFailures) {
  set_mujoco_handlers();
  try {
    mju_error("made up");
    FAIL() << "mju_error returned";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kDevice);
    EXPECT_STREQ(failure.what(), "MuJoCo: made up");
  }
  const uint64_t before = mujoco_warning_count();
  mju_warning("made up");
  EXPECT_EQ(mujoco_warning_count(), before + 1);
}

// The same from inside libmujoco: the data of one model copied with the sizes of another.
TEST(ModelLoader, FatalErrorsUnwindThroughTheLibrary) {
  const ModelPtr g1 = load_model(g1_spec().model_path);
  const ModelPtr cartpole = load_model(cartpole_spec().model_path);
  const DataPtr of_g1 = make_data(*g1);
  const DataPtr of_cartpole = make_data(*cartpole);
  EXPECT_THROW(mj_copyData(of_cartpole.get(), g1.get(), of_g1.get()), Failure);
}

TEST(ModelLoader, RefusesAnotherVersionWithBothNumbers) {
  EXPECT_NO_THROW(require_mujoco_version(mjVERSION_HEADER, mj_version()));
  try {
    require_mujoco_version(222, 314);
    FAIL() << "accepted";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kUnavailable);
    EXPECT_NE(std::string(failure.what()).find("314"), std::string::npos);
    EXPECT_NE(std::string(failure.what()).find("222"), std::string::npos);
  }
}

}  // namespace
}  // namespace millrace
