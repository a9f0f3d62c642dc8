#include "model_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "status.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

class ModelFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "robot" / "parts");
    write("robot/parts/ok.xml", "<mujoco/>");
    write("outside.xml", "<mujoco/>");
  }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  // The reason of the refusal, empty when there was none.
  std::string refusal(const std::string& body) {
    return refusal_of(write("robot/robot.xml", "<mujoco>" + body + "</mujoco>"));
  }
  std::string refusal_of(const std::string& path) {
    try {
      confine_model_files(path);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kInvalid);
      EXPECT_EQ(std::string(failure.what()).find('\n'), std::string::npos);
      return failure.what();
    }
    return "";
  }
  bool is_refused(const std::string& body) { return !refusal(body).empty(); }

  const TemporaryFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(ModelFiles, ScansTagsAndAttributes) {
  const auto elements = scan_xml(
      "<?xml version='1.0'?><!DOCTYPE x><!-- <a file='no'/> --><mujoco model = 'g>1'>"
      "< include\n file=\"b.xml\"/>text<![CDATA[<c file='no'/>]]></mujoco>");
  ASSERT_EQ(elements.size(), 2u);
  EXPECT_EQ(elements[0].tag, "mujoco");
  ASSERT_EQ(elements[0].attributes.size(), 1u);
  EXPECT_EQ(elements[0].attributes[0].second, "g>1");
  EXPECT_EQ(elements[1].tag, "include");
  ASSERT_EQ(elements[1].attributes.size(), 1u);
  EXPECT_EQ(elements[1].attributes[0].first, "file");
  EXPECT_EQ(elements[1].attributes[0].second, "b.xml");
}

TEST_F(ModelFiles, BrokenTextIsReadAsFarAsItGoes) {
  for (const char* text : {"", "<", "<a", "<a b", "<a b=", "<a b='", "<!--", "<a b=c>", "<a '>",
                           "<a / / b='x'", "</a", "<?x"}) {
    EXPECT_LE(scan_xml(text).size(), 2u) << text;
  }
}

TEST_F(ModelFiles, AcceptsWhatStaysInside) {
  EXPECT_EQ(refusal("<include file='parts/ok.xml'/>"), "");
  EXPECT_EQ(refusal("<compiler meshdir='parts'/><asset><mesh file='a.stl'/></asset>"), "");
  EXPECT_EQ(refusal("<!-- <include file='../outside.xml'/> -->"), "");
  EXPECT_EQ(refusal("<include file='not_there.xml'/>"), "");  // MuJoCo says so
}

TEST_F(ModelFiles, RefusesWhatLeavesTheFolder) {
  EXPECT_NE(refusal("<include file='../outside.xml'/>").find("leaves the model's folder"),
            std::string::npos);
  EXPECT_TRUE(is_refused("<include file='parts/../../outside.xml'/>"));
  EXPECT_TRUE(is_refused("< include file='../outside.xml'/>"));
  EXPECT_TRUE(is_refused("<include file='/etc/passwd'/>"));
  EXPECT_TRUE(is_refused("<include file='&#46;&#46;/outside.xml'/>"));
  EXPECT_TRUE(is_refused("<include file='..\\outside.xml'/>"));
  EXPECT_TRUE(is_refused("<compiler meshdir='../'/>"));
  EXPECT_TRUE(is_refused("<compiler assetdir='/usr'/>"));
  EXPECT_TRUE(is_refused("<compiler texturedir='a/../../b'/>"));
  EXPECT_TRUE(is_refused("<asset><mesh file='../m.stl'/></asset>"));
  EXPECT_TRUE(is_refused("<asset><hfield file='/h.png'/></asset>"));
  EXPECT_TRUE(is_refused("<asset><texture fileright='../t.png'/></asset>"));
}

TEST_F(ModelFiles, RefusesLinksThatLeaveTheFolder) {
  fs::create_symlink(folder_ / "outside.xml", folder_ / "robot" / "link.xml");
  fs::create_symlink(folder_, folder_ / "robot" / "up");
  fs::create_symlink("ok.xml", folder_ / "robot" / "parts" / "inside.xml");
  EXPECT_TRUE(is_refused("<include file='link.xml'/>"));
  EXPECT_TRUE(is_refused("<include file='up/outside.xml'/>"));
  EXPECT_TRUE(is_refused("<compiler meshdir='up'/><asset><mesh file='outside.xml'/></asset>"));
  EXPECT_EQ(refusal("<include file='parts/inside.xml'/>"), "");
}

TEST_F(ModelFiles, FollowsIncludesAndCapsTheirDepth) {
  write("robot/parts/bad.xml", "<mujoco><include file='../../outside.xml'/></mujoco>");
  EXPECT_TRUE(is_refused("<include file='parts/bad.xml'/>"));
  write("robot/self.xml", "<mujoco><include file='self.xml'/></mujoco>");
  EXPECT_EQ(refusal("<include file='self.xml'/>"), "");  // a cycle ends; MuJoCo reports it
  for (int i = 0; i < 20; ++i) {
    write("robot/deep" + std::to_string(i) + ".xml",
          "<mujoco><include file='deep" + std::to_string(i + 1) + ".xml'/></mujoco>");
  }
  EXPECT_NE(refusal("<include file='deep0.xml'/>").find("16 deep"), std::string::npos);
}

TEST_F(ModelFiles, RefusesTooMuchTextAndSpecialFiles) {
  fs::resize_file(write("robot/big.xml", "<mujoco/>"), (64u << 20) + 1);
  EXPECT_NE(refusal("<include file='big.xml'/>").find("64 MiB"), std::string::npos);
  EXPECT_TRUE(is_refused("<include file='parts'/>"));
  const std::string folder = (folder_ / "robot").string(), none = (folder_ / "none.xml").string();
  EXPECT_EQ(refusal_of(folder), "model file '" + folder + "' is a folder, no MJCF file");
  EXPECT_EQ(refusal_of(none), "model file '" + none + "' is not there");
  EXPECT_THROW(confine_model_files("/dev/zero"), Failure);
}

}  // namespace
}  // namespace millrace
