#include "algorithm.h"

#include "status.h"

namespace millrace {

Algorithm algorithm_named(const std::string& name) {
  for (const Algorithm each : {Algorithm::kFastSac, Algorithm::kFlashSac}) {
    if (name == to_string(each)) return each;
  }
  throw Failure(Code::kInvalid, "algo: '" + name + "' is not one of fastsac, flashsac");
}

const char* to_string(Algorithm algorithm) {
  return algorithm == Algorithm::kFastSac ? "fastsac" : "flashsac";
}

}  // namespace millrace
