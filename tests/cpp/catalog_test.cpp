// Tests for cpp/catalog.cpp.
#include "catalog.h"

#include <gtest/gtest.h>
#include <mujoco/mujoco.h>

#include <map>

namespace millrace {
namespace {

TEST(Catalog, SaysWhatTheLibraryIsAndKnows) {
  const nlohmann::json catalog = describe_library();
  EXPECT_EQ(catalog.at("version"), MILLRACE_VERSION);
  EXPECT_EQ(catalog.at("mujoco").at("compiled"), mjVERSION_HEADER);
  EXPECT_EQ(catalog.at("mujoco").at("loaded"), mj_version());
  EXPECT_EQ(catalog.at("blas").at("name"), "OpenBLAS");
  EXPECT_FALSE(catalog.at("blas").at("kernels").get<std::string>().empty());
  EXPECT_GE(catalog.at("cores"), 1);
  EXPECT_GT(catalog.at("memory").at("available_bytes"), 0);
  EXPECT_FALSE(catalog.at("memory").at("source").get<std::string>().empty());
  ASSERT_EQ(catalog.at("tasks").size(), 3u);
  EXPECT_EQ(catalog.at("tasks")[0].at("name"), "cartpole_swingup");
  EXPECT_GT(catalog.at("terms").size(), 20u);
}

TEST(Catalog, EveryBackendIsThereOrSaysWhyNot) {
  std::vector<std::string> names;
  const nlohmann::json catalog = describe_library();
  for (const nlohmann::json& backend : catalog.at("backends")) {
    names.push_back(backend.at("name"));
    EXPECT_EQ(backend.at("available").get<bool>(), backend.at("reason").get<std::string>().empty())
        << backend;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"cpu", "cuda", "metal"}));
}

TEST(Catalog, TermsIncludeWhatExpressionsCanName) {
  std::map<std::string, int> kinds;
  const nlohmann::json catalog = describe_library();
  for (const nlohmann::json& term : catalog.at("terms")) kinds[term.at("kind")] += 1;
  EXPECT_GT(kinds["reward"], 10);
  EXPECT_GT(kinds["expression"], 30);
}

// It crosses to Java as text.
TEST(Catalog, IsValidText) { EXPECT_NO_THROW(describe_library().dump()); }

}  // namespace
}  // namespace millrace
