// For tests of graphs: they run on fake_cuda and on every real backend with graphs that this
// machine has.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "each_backend.h"
#include "fake_cuda.h"

namespace millrace {

inline const BackendApi& graph_backend_api(const std::string& name) {
  return name == fake_cuda().name ? fake_cuda() : test_backend_api(name);
}

inline std::vector<std::string> graph_backends() {
  std::vector<std::string> names = {fake_cuda().name};
  for (const std::string& name : available_backends()) {
    if (test_backend_api(name).has_graphs != 0) names.push_back(name);
  }
  return names;
}

#define MR_ON_EACH_GRAPH_BACKEND(suite) \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::ValuesIn(graph_backends()), backend_of_test)

}  // namespace millrace
