#include "bench_physics.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "budget.h"
#include "philox.h"
#include "physics_mujoco.h"
#include "quantile.h"
#include "worker_pool.h"

namespace millrace {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSubsteps = 3;
constexpr float kActionHalfWidth = 0.1f;

struct Settings {
  SimSpec spec;
  int envs, ticks, rounds, threads;
  uint64_t seed;
};

int positive(const nlohmann::json& request, const char* key, int default_value) {
  const int value = request.value(key, default_value);
  if (value < 1) throw Failure(Code::kInvalid, std::string(key) + " must be at least 1");
  return value;
}

Settings read_settings(const nlohmann::json& request) {
  Settings settings = {};
  settings.spec.model_path = request.at("model_file").get<std::string>();
  settings.spec.substeps = kSubsteps;
  settings.spec.tick_seconds = 0.02;
  settings.spec.action_scale = 1.0;
  settings.spec.is_legged = true;
  settings.spec.torso_body = "torso_link";
  settings.spec.pelvis_imu_site = "imu_in_pelvis";
  settings.spec.torso_imu_site = "imu_in_torso";
  settings.spec.foot_sites = {"left_foot", "right_foot"};
  settings.envs = positive(request, "envs", 256);
  settings.ticks = positive(request, "ticks", 20);
  settings.rounds = positive(request, "rounds", 7);
  settings.threads = positive(request, "threads",
                              static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  if (settings.threads > WorkerPool::kMostWorkers) {
    throw Failure(Code::kInvalid,
                  "threads must be at most " + std::to_string(WorkerPool::kMostWorkers));
  }
  settings.seed = request.value("seed", uint64_t{1});
  return settings;
}

// The yardstick's simulation data and all actions, before any of them is allocated.
void check_memory(const Settings& settings, uint64_t actions) {
  const auto envs = static_cast<uint64_t>(settings.envs);
  const auto ticks = static_cast<uint64_t>(settings.ticks);
  const DataPtr data = make_data(*load_model(settings.spec.model_path));
  const auto data_bytes = static_cast<uint64_t>(data->nbuffer);
  const uint64_t tick_bytes = envs * actions * sizeof(float);
  require_fits(
      {{{"simulation data", envs * data_bytes,
         grouped(envs) + " robots x " + grouped(data_bytes) + " B"},
        {"actions", ticks * tick_bytes, grouped(ticks) + " ticks x " + grouped(tick_bytes) + " B"}},
       available_host_memory().bytes},
      "host");
}

// Perturbed stands and small random actions, the same for both sides.
struct Scenario {
  Scenario(const SimModel& model, const Settings& settings)
      : nq(static_cast<size_t>(model.nq)),
        nv(static_cast<size_t>(model.nv)),
        nu(static_cast<size_t>(model.num_actions)),
        gains(static_cast<size_t>(settings.envs) * 2, 1.0),
        everyone(static_cast<size_t>(settings.envs), 1) {
    for (int env = 0; env < settings.envs; ++env) {
      const RandomSource source =
          random_source(settings.seed, kStreamReset, static_cast<u32>(env), 0);
      u32 draw = 0;
      std::vector<double> pose = model.default_qpos;
      const double yaw = random_uniform(source, draw++, -3.14f, 3.14f);
      pose[3] = std::cos(yaw / 2);
      pose[6] = std::sin(yaw / 2);
      for (size_t i = 7; i < nq; ++i) pose[i] += random_uniform(source, draw++, -0.05f, 0.05f);
      qpos.insert(qpos.end(), pose.begin(), pose.end());
      for (size_t i = 0; i < nv; ++i) qvel.push_back(random_uniform(source, draw++, -0.5f, 0.5f));
    }
    for (int tick = 0; tick < settings.ticks; ++tick) {
      for (int env = 0; env < settings.envs; ++env) {
        const RandomSource source = random_source(settings.seed, kStreamExploration,
                                                  static_cast<u32>(env), static_cast<u64>(tick));
        for (u32 i = 0; i < nu; ++i) {
          actions.push_back(random_uniform(source, i, -kActionHalfWidth, kActionHalfWidth));
        }
      }
    }
  }
  const float* actions_of(int tick) const {
    return &actions[static_cast<size_t>(tick) * everyone.size() * nu];
  }

  size_t nq, nv, nu;
  std::vector<double> qpos, qvel, gains;
  std::vector<float> actions;
  std::vector<uint8_t> everyone;
};

// The yardstick: persistent threads that take environments from one shared counter.
class BareLoop {
 public:
  BareLoop(const Settings& settings, const Scenario& scenario)
      : scenario_(scenario),
        threads_(settings.threads),
        model_(load_model(settings.spec.model_path)),
        controls_(default_controls(*model_,
                                   describe_model(*model_, index_model(*model_, settings.spec)))) {
    for (int env = 0; env < settings.envs; ++env) data_.push_back(make_data(*model_));
    for (int i = 1; i < threads_; ++i) helpers_.emplace_back([this] { serve(); });
  }
  ~BareLoop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& helper : helpers_) helper.join();
  }

  void start() {
    for (size_t env = 0; env < data_.size(); ++env) {
      mj_resetData(model_.get(), data_[env].get());
      std::copy_n(&scenario_.qpos[env * scenario_.nq], scenario_.nq, data_[env]->qpos);
      std::copy_n(&scenario_.qvel[env * scenario_.nv], scenario_.nv, data_[env]->qvel);
    }
  }
  void tick(const float* actions) {
    actions_ = actions;
    next_.store(0);
    busy_.store(threads_);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++number_;
    }
    wake_.notify_all();
    take_environments();
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_.load() == 0; });
  }
  const mjData& data(size_t env) const { return *data_[env]; }

 private:
  void serve() {
    uint64_t seen = 0;
    for (;;) {
      {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || number_ != seen; });
        if (stopping_) return;
        seen = number_;
      }
      take_environments();
    }
  }
  void take_environments() {
    for (size_t env; (env = next_.fetch_add(1)) < data_.size();) {
      mjData* data = data_[env].get();
      for (size_t i = 0; i < scenario_.nu; ++i) {
        data->ctrl[i] = controls_[i] + static_cast<double>(actions_[env * scenario_.nu + i]);
      }
      for (int substep = 0; substep < kSubsteps; ++substep) mj_step(model_.get(), data);
    }
    if (busy_.fetch_sub(1) == 1) {
      std::lock_guard<std::mutex> lock(mutex_);
      done_.notify_one();
    }
  }

  const Scenario& scenario_;
  int threads_;
  ModelPtr model_;
  std::vector<double> controls_;
  std::vector<DataPtr> data_;
  const float* actions_ = nullptr;
  std::atomic<size_t> next_{0};
  std::atomic<int> busy_{0};
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  uint64_t number_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> helpers_;
};

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double time_ours(PhysicsMujoco& physics, const Scenario& scenario, int ticks) {
  physics.reset(scenario.everyone.data(), scenario.qpos.data(), scenario.qvel.data(),
                scenario.gains.data());
  const Clock::time_point start = Clock::now();
  for (int tick = 0; tick < ticks; ++tick) {
    physics.step(scenario.actions_of(tick), static_cast<uint64_t>(tick));
  }
  return ms_since(start);
}

double time_bare(BareLoop& bare, const Scenario& scenario, int ticks) {
  bare.start();
  const Clock::time_point start = Clock::now();
  for (int tick = 0; tick < ticks; ++tick) bare.tick(scenario.actions_of(tick));
  return ms_since(start);
}

bool is_identical(const PhysicsMujoco& physics, const BareLoop& bare, const Scenario& scenario) {
  for (size_t env = 0; env < scenario.everyone.size(); ++env) {
    const mjData& data = bare.data(env);
    if (!std::equal(data.qpos, data.qpos + scenario.nq, physics.qpos(static_cast<int>(env))) ||
        !std::equal(data.qvel, data.qvel + scenario.nv, physics.qvel(static_cast<int>(env)))) {
      return false;
    }
  }
  return true;
}

// Constraint rows and contacts per step, from one more, untimed, pass.
void count_constraints(BareLoop& bare, const Scenario& scenario, int ticks,
                       nlohmann::json& report) {
  double rows = 0.0, contacts = 0.0;
  bare.start();
  for (int tick = 0; tick < ticks; ++tick) {
    bare.tick(scenario.actions_of(tick));
    for (size_t env = 0; env < scenario.everyone.size(); ++env) {
      rows += bare.data(env).nefc;
      contacts += bare.data(env).ncon;
    }
  }
  const double samples = static_cast<double>(scenario.everyone.size()) * ticks;
  report["nefc_mean"] = rows / samples;
  report["ncon_mean"] = contacts / samples;
}

}  // namespace

nlohmann::json bench_physics(const nlohmann::json& request) {
  const Settings settings = read_settings(request);
  WorkerPool pool(settings.threads);
  PhysicsMujoco physics(settings.spec, settings.envs, pool);
  check_memory(settings, static_cast<uint64_t>(physics.model().num_actions));
  const Scenario scenario(physics.model(), settings);
  BareLoop bare(settings, scenario);

  time_ours(physics, scenario, 1);
  time_bare(bare, scenario, 1);
  std::vector<double> ours_ms, bare_ms, ratios;
  for (int round = 0; round < settings.rounds; ++round) {
    const bool ours_first = round % 2 == 0;
    if (ours_first) ours_ms.push_back(time_ours(physics, scenario, settings.ticks));
    bare_ms.push_back(time_bare(bare, scenario, settings.ticks));
    if (!ours_first) ours_ms.push_back(time_ours(physics, scenario, settings.ticks));
    ratios.push_back(bare_ms.back() / ours_ms.back());
  }

  const double env_steps = static_cast<double>(settings.envs) * settings.ticks;
  nlohmann::json report = {{"envs", settings.envs},
                           {"ticks", settings.ticks},
                           {"rounds", settings.rounds},
                           {"threads", settings.threads},
                           {"substeps", kSubsteps},
                           {"mujoco", physics.model().mujoco_version},
                           {"ours_ms", ours_ms},
                           {"bare_ms", bare_ms},
                           {"ours_median_ms", median(ours_ms)},
                           {"bare_median_ms", median(bare_ms)},
                           {"ratio", median(ratios)},
                           {"ours_env_steps_per_s", 1e3 * env_steps / median(ours_ms)},
                           {"bare_env_steps_per_s", 1e3 * env_steps / median(bare_ms)},
                           {"identical", is_identical(physics, bare, scenario)}};
  count_constraints(bare, scenario, settings.ticks, report);
  return report;
}

}  // namespace millrace
