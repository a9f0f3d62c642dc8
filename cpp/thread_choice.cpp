#include "thread_choice.h"

#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <set>
#include <string>

#include "physics_mujoco.h"
#include "worker_pool.h"

namespace millrace {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMeasureSeconds = 0.4;  // of all candidates together; the rest is for set-up
constexpr int kEnvsPerThread = 4;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Processors that the control group may use at once; 0 = no quota.
int quota_processors() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0.0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0.0) return 0;
  return std::max(1, static_cast<int>(std::lround(std::stod(quota) / period)));
}

double measure(const SimSpec& spec, int num_envs, int threads, double seconds) {
  WorkerPool pool(threads);
  PhysicsMujoco physics(spec, num_envs, pool);
  const std::vector<float> actions(
      static_cast<size_t>(num_envs) * static_cast<size_t>(physics.model().num_actions), 0.0f);
  physics.step(actions.data(), 0);  // first touch of every worker's data
  uint64_t ticks = 0;
  const Clock::time_point start = Clock::now();
  do {
    physics.step(actions.data(), ++ticks);
  } while (seconds_since(start) < seconds);
  return static_cast<double>(ticks) * num_envs / seconds_since(start);
}

// What this process may run on.
struct Processors {
  int threads = 0, cores = 0;
};

#if defined(__APPLE__)

int read_number(const char* name) {
  int number = 0;
  size_t bytes = sizeof(number);
  return sysctlbyname(name, &number, &bytes, nullptr, 0) == 0 ? number : 0;
}

Processors available_processors() {
  return {read_number("hw.logicalcpu"), read_number("hw.physicalcpu")};
}

#else

Processors available_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::set<std::string> cores;
  int threads = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      ++threads;
      std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                         "/topology/thread_siblings_list");
      std::string siblings;
      if (!std::getline(file, siblings)) siblings = std::to_string(cpu);
      cores.insert(siblings);
    }
  }
  return {threads, static_cast<int>(cores.size())};
}

#endif

}  // namespace

std::vector<int> thread_candidates() {
  const Processors processors = available_processors();
  const int threads = std::max(processors.threads, 1);
  const int quota = quota_processors();
  const int limit = quota > 0 ? std::min(quota, threads) : threads;
  std::set<int> candidates = {limit, std::min(limit, std::max(1, processors.cores))};
  return {candidates.begin(), candidates.end()};
}

ThreadChoice measure_threads(const SimSpec& spec, int num_envs) {
  const std::vector<int> candidates = thread_candidates();
  ThreadChoice choice = {candidates.front(), {}};
  double best = 0.0;
  for (const int threads : candidates) {
    const int envs = std::min(num_envs, kEnvsPerThread * threads);
    const double rate =
        measure(spec, envs, threads, kMeasureSeconds / static_cast<double>(candidates.size()));
    choice.measured.push_back({threads, rate});
    if (rate > best) {
      best = rate;
      choice.threads = threads;
    }
  }
  return choice;
}

}  // namespace millrace
