// Runs one bench request on a machine without Java: millrace_bench '{"kind": "replay"}' prints the
// report.
#include <cstdio>
#include <exception>

#include "bench.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: millrace_bench REQUEST, where REQUEST is JSON\n", stderr);
    return 2;
  }
  try {
    std::puts(millrace::run_bench(nlohmann::json::parse(argv[1])).dump(1).c_str());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "millrace_bench: %s\n", failure.what());
    return 4;
  }
  return 0;
}
