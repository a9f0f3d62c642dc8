#include "catalog.h"

#include <thread>

#include "backend.h"
#include "blas_threads.h"
#include "budget.h"
#include "expression_names.h"
#include "model_loader.h"
#include "task.h"
#include "term_table.h"

namespace millrace {

nlohmann::json describe_library() {
  nlohmann::json list = nlohmann::json::array();
  for (const BackendInfo& info : backends()) {
    list.push_back({{"name", info.name},
                    {"available", info.available},
                    {"reason", info.reason},
                    {"device", info.device},
                    {"verified", info.verified}});
  }
  nlohmann::json terms = describe_terms();
  for (nlohmann::json& each : describe_expressions()) terms.push_back(std::move(each));
  const HostMemory memory = available_host_memory();
  return {{"version", MILLRACE_VERSION},
          {"compiler", __VERSION__},
          {"mujoco", {{"compiled", mjVERSION_HEADER}, {"loaded", mj_version()}}},
          {"blas", {{"name", "OpenBLAS"}, {"kernels", blas_kernels()}}},
          {"cores", std::thread::hardware_concurrency()},
          {"memory", {{"available_bytes", memory.bytes}, {"source", memory.source}}},
          {"backends", std::move(list)},
          {"tasks", describe_tasks()},
          {"terms", std::move(terms)}};
}

}  // namespace millrace
