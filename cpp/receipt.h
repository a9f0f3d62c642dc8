// A receipt proves that an operation was submitted: {operation, sequence, event}. A waiter waits on
// the receipt's own operation, never on "the stream": an UPDATE receipt does not answer for a STEP.
#pragma once

#include <cstdint>

namespace millrace {

enum class Operation : uint32_t { kStep, kUpdate, kReset, kPublish, kCopy, kGather, kLearn, kAct };
const char* to_string(Operation operation);

struct Receipt {
  Operation operation;
  uint64_t sequence;  // counts from 1 within its operation
  uint64_t event;     // backend event handle; 0 = complete when the call returned
};

// Throws Failure(kBug) naming both when the receipt is of another operation.
void expect_operation(const Receipt& receipt, Operation operation);

}  // namespace millrace
