#include "bench_update.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device_update.h"
#include "quantile.h"
#include "run_plan.h"
#include "sim_parts.h"

namespace millrace {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kStepsBefore = 3;                  // so that states are no longer the start's
constexpr uint64_t kCopyBytes = uint64_t{256} << 20;  // of the bandwidth that the floor takes
constexpr int kGrain = 16;                            // environments of a worker's piece

class UpdateBench {
 public:
  UpdateBench(const nlohmann::json& config, Backend& backend, int envs, int threads, int launches)
      : backend_(backend),
        plan_(parse_plan(config)),
        envs_(envs),
        launches_(launches),
        parts_(config, envs, threads, plan_.seed, &backend),
        stream_(backend),
        begin_(backend, true),
        end_(backend, true),
        stride_(static_cast<uint64_t>(parts_.task->layout.row_stride())),
        rows_(backend, Memory::Kind::kDevice,
              static_cast<uint64_t>(envs) * stride_ * sizeof(float)),
        copy_(backend, Memory::Kind::kDevice, 2 * kCopyBytes),
        host_rows_(static_cast<size_t>(envs) * static_cast<size_t>(parts_.task->layout.width())) {
    parts_.update->start_episodes(*parts_.physics, true);
    for (tick_ = 0; tick_ < kStepsBefore; ++tick_) {
      act();
      parts_.physics->step(parts_.update->actions(), tick_);
      host_update();
      parts_.update->reset(tick_, *parts_.physics);
    }
    act();
    device_ = std::make_unique<DeviceUpdate>(
        backend, stream_, *parts_.task,
        HostState{parts_.update->state(), parts_.physics->state_memory(), parts_.update->memory(),
                  parts_.update->outcomes()},
        envs);
    device_->upload_inputs();
    set_arguments();
    if (backend.api().has_graphs != 0) {
      graph_ = std::make_unique<Graph>(backend, stream_, [this] { submit(); });
    }
  }

  std::map<std::string, double> measure() {
    std::map<std::string, double> found;
    found["eager_us"] = per_launch_us([this] { submit(); });
    if (graph_ != nullptr) found["graph_us"] = per_launch_us([this] { stream_.launch(*graph_); });
    found["arguments_us"] = per_launch_us([this] { set_arguments(); });
    time_ticks("eager", [this] { submit(); });
    if (graph_ != nullptr) time_ticks("graph", [this] { stream_.launch(*graph_); });
    const Clock::time_point begin = Clock::now();
    host_update();
    found["host_us"] = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    const double copy_us = per_launch_us([this] {
      char* memory = reinterpret_cast<char*>(copy_.floats());
      stream_.copy(CopyDirection::kDeviceToDevice, memory + kCopyBytes, memory, kCopyBytes);
    });
    const double bytes = static_cast<double>(device_->least_bytes(stride_));
    found["floor_us"] = copy_us * bytes / (2.0 * static_cast<double>(kCopyBytes));
    const double best =
        graph_ != nullptr ? std::min(found["eager_us"], found["graph_us"]) : found["eager_us"];
    found["floor_ratio"] = best / found["floor_us"];
    return found;
  }

  // {eager: {median_us, p99_us, ticks}, graph: {…}} of single ticks, argument block included.
  nlohmann::json ticks() const {
    nlohmann::json report;
    for (const auto& [mode, times] : tick_us_) {
      report[mode] = {
          {"median_us", median(times)}, {"p99_us", quantile(times, 0.99)}, {"ticks", times.size()}};
    }
    return report;
  }

  uint64_t least_bytes() const { return device_->least_bytes(stride_); }
  uint64_t device_bytes() const { return device_->device_bytes() + rows_.bytes(); }
  const Task& task() const { return *parts_.task; }
  int workers() const { return parts_.pool->workers(); }

 private:
  void act() {
    const int actions = envs_ * parts_.task->layout.action_dim;
    for (int i = 0; i < actions; ++i) {
      const RandomSource source =
          random_source(plan_.seed, kStreamExploration, static_cast<u32>(i), tick_);
      parts_.update->actions()[i] = random_uniform(source, 0, -1.0f, 1.0f);
    }
  }
  void host_update() {
    parts_.pool->run(envs_, kGrain, [this](int, int begin, int end) {
      parts_.update->update(tick_, begin, end, host_rows_.data());
    });
  }
  void submit() { device_->submit(); }
  void set_arguments() {
    device_->set_block({plan_.seed, tick_++, parts_.update->curriculum().scale()}, rows_.floats(),
                       stride_);
  }

  void time_ticks(const char* mode, const std::function<void()>& launch) {
    while (marks_.size() < 2 * static_cast<size_t>(launches_)) {
      marks_.push_back(std::make_unique<Event>(backend_, true));
    }
    for (size_t i = 0; i < marks_.size(); i += 2) {
      stream_.record(*marks_[i]);
      set_arguments();
      launch();
      stream_.record(*marks_[i + 1]);
    }
    marks_.back()->wait();
    for (size_t i = 0; i < marks_.size(); i += 2) {
      tick_us_[mode].push_back(marks_[i + 1]->elapsed_ns_since(*marks_[i]) * 1e-3);
    }
  }

  double per_launch_us(const std::function<void()>& launch) {
    launch();  // loads what is loaded lazily
    stream_.record(begin_);
    for (int i = 0; i < launches_; ++i) launch();
    stream_.record(end_);
    end_.wait();
    return end_.elapsed_ns_since(begin_) * 1e-3 / launches_;
  }

  Backend& backend_;
  const RunPlan plan_;
  const int envs_, launches_;
  SimParts parts_;
  Stream stream_;
  Event begin_, end_;
  const uint64_t stride_;
  Memory rows_, copy_;
  std::vector<std::unique_ptr<Event>> marks_;
  std::map<std::string, std::vector<double>> tick_us_;
  std::vector<float> host_rows_;
  uint64_t tick_ = 0;
  std::unique_ptr<DeviceUpdate> device_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace

nlohmann::json bench_update(const nlohmann::json& request) {
  const auto at_least_one = [&request](const char* key, int default_value) {
    const int value = request.value(key, default_value);
    if (value < 1) throw Failure(Code::kInvalid, std::string(key) + " must be at least 1");
    return value;
  };
  const int envs = at_least_one("envs", 4096);
  const int runs = at_least_one("runs", 5);
  const int launches = at_least_one("launches", 50);
  const std::string name = request.value("backend", "cpu");
  Backend backend(backend_api(name));
  UpdateBench bench(request.at("config"), backend, envs, request.value("threads", 0), launches);
  bench.measure();
  std::map<std::string, std::vector<double>> all;
  nlohmann::json rounds = nlohmann::json::array();
  for (int run = 0; run < runs; ++run) {
    const std::map<std::string, double> found = bench.measure();
    rounds.push_back(found);
    for (const auto& [phase, value] : found) all[phase].push_back(value);
  }
  nlohmann::json medians, iqr;
  for (const auto& [phase, values] : all) {
    medians[phase] = median(values);
    iqr[phase] = interquartile_range(values);
  }
  return {{"backend", name},
          {"task", bench.task().definition.name},
          {"envs", envs},
          {"runs", runs},
          {"launches", launches},
          {"workers", bench.workers()},
          {"row_width", bench.task().layout.width()},
          {"least_bytes", bench.least_bytes()},
          {"device_bytes", bench.device_bytes()},
          {"medians", std::move(medians)},
          {"iqr", std::move(iqr)},
          {"ticks", bench.ticks()},
          {"rounds", std::move(rounds)}};
}

}  // namespace millrace
