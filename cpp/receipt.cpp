#include "receipt.h"

#include <string>

#include "status.h"

namespace millrace {

const char* to_string(Operation operation) {
  switch (operation) {
    case Operation::kStep:
      return "STEP";
    case Operation::kUpdate:
      return "UPDATE";
    case Operation::kReset:
      return "RESET";
    case Operation::kPublish:
      return "PUBLISH";
    case Operation::kCopy:
      return "COPY";
    case Operation::kGather:
      return "GATHER";
    case Operation::kLearn:
      return "LEARN";
    case Operation::kAct:
      return "ACT";
  }
  return "unknown";
}

void expect_operation(const Receipt& receipt, Operation operation) {
  if (receipt.operation == operation) return;
  throw Failure(Code::kBug, std::string("waited for a ") + to_string(operation) +
                                " receipt but was given " + to_string(receipt.operation) + " " +
                                std::to_string(receipt.sequence));
}

}  // namespace millrace
