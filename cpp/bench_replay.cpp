#include "bench_replay.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "bench_bandwidth.h"
#include "budget.h"
#include "gather.h"
#include "quantile.h"
#include "replay.h"
#include "streaming_copy.h"

namespace millrace {

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kPatterns = 4;  // slots of different rows, written in turn
constexpr uint64_t kWraps = 3;
constexpr int kUpdates = 4;
constexpr std::chrono::milliseconds kUpdateTime{1};

struct Settings {
  std::string backend, mode;
  Pipeline pipeline;
  BatchLayout batch_layout;
  bool measures_bandwidth;
  RowLayout layout;
  uint64_t envs, capacity_rows, depth, sample_rows, runs, ticks, counted, seed;

  bool is_prefetch() const { return mode == "prefetch"; }
  // Ticks before the timed ones.
  uint64_t untimed_ticks() const {
    const uint64_t needed = (kWraps * capacity_rows + envs - 1) / envs;
    return needed > ticks ? needed - ticks : 0;
  }
};

uint64_t positive(const nlohmann::json& request, const char* key, int64_t default_value) {
  const int64_t value = request.value(key, default_value);
  if (value < 1) throw Failure(Code::kInvalid, std::string(key) + " must be at least 1");
  return static_cast<uint64_t>(value);
}

int dimension(const nlohmann::json& request, const char* key, int64_t default_value) {
  return static_cast<int>(positive(request, key, default_value));
}

Settings read_settings(const nlohmann::json& request) {
  Settings settings{};
  settings.backend = request.value("backend", "cpu");
  settings.mode = request.value("mode", "serial");
  if (settings.mode != "serial" && settings.mode != "prefetch") {
    throw Failure(Code::kInvalid, "mode '" + settings.mode + "' is not serial or prefetch");
  }
  settings.pipeline = pipeline(request.value("pipeline", "device_resident"));
  settings.batch_layout = batch_layout(request.value("layout", "row"));
  settings.measures_bandwidth = request.value("bandwidth", false);
  settings.layout = {dimension(request, "observation_dim", 98),
                     dimension(request, "action_dim", 29), dimension(request, "critic_dim", 101)};
  settings.envs = positive(request, "envs", 512);
  settings.capacity_rows = positive(request, "capacity_rows", 4096);
  settings.depth = positive(request, "depth", 2);
  settings.sample_rows = positive(request, "sample_rows", 2048);
  settings.runs = positive(request, "runs", 5);
  settings.ticks = positive(request, "ticks", 30);
  settings.counted = positive(request, "counted", 20);
  settings.seed = request.value("seed", uint64_t{1});
  if (settings.counted > settings.ticks) {
    throw Failure(Code::kInvalid, "counted must not be above ticks");
  }
  if (settings.capacity_rows < (settings.depth + 1) * settings.envs) {
    throw Failure(Code::kInvalid, "capacity_rows must be at least (depth + 1) x envs");
  }
  return settings;
}

// Ring, slots, batches and the rows that are written, before any of them is allocated.
void check_memory(const Settings& settings, Backend& backend) {
  const bool is_host = settings.backend == "cpu";
  const auto line = [](const char* name, uint64_t rows, uint64_t row_bytes) {
    return BudgetLine{name, rows * row_bytes,
                      grouped(rows) + " rows x " + grouped(row_bytes) + " B"};
  };
  const uint64_t row_bytes = settings.layout.row_bytes();
  const uint64_t stride_bytes = settings.layout.row_stride_bytes();
  const bool is_ring_on_host = is_host || settings.pipeline != Pipeline::kDeviceResident;
  Budget host{{line("rows to write", kPatterns * settings.envs, row_bytes),
               line("ingress slots", settings.depth * settings.envs, row_bytes)},
              available_host_memory().bytes};
  Budget device{{}, is_host ? 0 : backend.memory_free_bytes()};
  (is_ring_on_host ? host : device)
      .lines.push_back(line("ring", settings.capacity_rows, stride_bytes));
  (is_host ? host : device)
      .lines.push_back(line("batches", 2 * settings.sample_rows, stride_bytes));
  require_fits(host, "host");
  if (!is_host) require_fits(device, "device");
}

// What the collector would have written: row r of a run is row r mod (kPatterns * envs) of these.
class Rows {
 public:
  explicit Rows(const Settings& settings)
      : width_(static_cast<uint64_t>(settings.layout.width())),
        slot_floats_(settings.envs * width_),
        values_(kPatterns * slot_floats_) {
    for (uint64_t row = 0; row < kPatterns * settings.envs; ++row) {
      const RandomSource source =
          random_source(settings.seed, kStreamReset, static_cast<u32>(row), 0);
      for (uint64_t i = 0; i < width_; i += 4) {
        const Philox4 block = random_block(source, static_cast<u32>(i / 4));
        for (uint64_t j = i; j < std::min(i + 4, width_); ++j) {
          values_[row * width_ + j] = unit_float(block.word[j - i]);
        }
      }
    }
  }

  // Row by row, the way the update step writes them.
  void fill(uint64_t tick, float* slot) const {
    const float* from = &values_[tick % kPatterns * slot_floats_];
    for (uint64_t at = 0; at < slot_floats_; at += width_) {
      streaming_copy(slot + at, from + at, width_);
    }
    streaming_fence();
  }
  const float* row(uint64_t index) const { return &values_[index * width_ % values_.size()]; }

 private:
  uint64_t width_, slot_floats_;
  std::vector<float> values_;
};

double microseconds(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

using Times = std::map<std::string, std::vector<double>>;  // phase -> µs of every counted tick

nlohmann::json medians_of(const Times& times) {
  nlohmann::json medians;
  for (const auto& [phase, values] : times) medians[phase] = median(values);
  return medians;
}

// One run: a replay of its own, the collector, the learner and the submit thread all on this one.
class Round {
 public:
  Round(const Settings& settings, const Rows& rows, Backend& backend)
      : settings_(settings),
        rows_(rows),
        backend_(backend),
        replay_(backend,
                {settings.layout, settings.envs, settings.capacity_rows,
                 static_cast<int>(settings.depth), settings.sample_rows, settings.seed, 1,
                 settings.pipeline, Place::kDevice, settings.batch_layout},
                first_error_) {}

  void run() {
    uint64_t tick = 0;
    for (uint64_t i = 0; i < settings_.untimed_ticks(); ++i) serial_tick(tick++, false);
    for (uint64_t i = 0; i < settings_.ticks; ++i) {
      const bool is_counted = i + settings_.counted >= settings_.ticks;
      if (settings_.is_prefetch()) {
        prefetch_tick(tick++, is_counted);
      } else {
        serial_tick(tick++, is_counted);
      }
    }
  }

  // Whether the batch that was taken last holds the right rows, read back from the device.
  bool verify() {
    const BatchColumns columns = batch_columns(settings_.layout, settings_.batch_layout);
    const SampleRange range = replay_.taken();
    std::vector<float> batch(settings_.sample_rows * columns.stride);
    Stream stream(backend_);
    Event event(backend_);
    stream.copy(CopyDirection::kDeviceToHost, batch.data(), batch_, batch.size() * sizeof(float));
    stream.record(event);
    event.wait();
    const Gather gather{
        nullptr,    nullptr, settings_.capacity_rows, 0, 0, settings_.seed, range.tick, range.low,
        range.high, columns};
    for (uint64_t i = 0; i < settings_.sample_rows; ++i) {
      if (!is_row(&batch[i * columns.stride], rows_.row(gather_row(gather, i)), columns)) {
        return false;
      }
    }
    return true;
  }

  const Times& times() const { return times_; }
  uint64_t ready_ticks() const { return ready_ticks_; }
  const Replay& replay() const { return replay_; }

 private:
  bool is_row(const float* found, const float* expected, const BatchColumns& columns) const {
    if (columns.segment_count == 0) {
      return std::memcmp(found, expected, settings_.layout.row_bytes()) == 0;
    }
    for (u32 s = 0; s < columns.segment_count; ++s) {
      const ColumnSegment& part = columns.segments[s];
      const size_t bytes = part.count * sizeof(float);
      if (std::memcmp(found + part.to, expected + part.from, bytes) != 0) return false;
    }
    return true;
  }

  void note(bool is_counted, const char* phase, Clock::time_point begin, Clock::time_point end) {
    if (is_counted) times_[phase].push_back(microseconds(begin, end));
  }

  void add(uint64_t tick, bool is_counted) {
    const Clock::time_point begin = Clock::now();
    rows_.fill(tick, replay_.claim());
    note(is_counted, "fill_us", begin, Clock::now());
  }

  void serial_tick(uint64_t tick, bool is_counted) {
    add(tick, is_counted);
    const Clock::time_point begin = Clock::now();
    replay_.publish();
    replay_.progress(false);  // enqueues the copy
    const Clock::time_point submitted = Clock::now();
    replay_.progress(true);
    const Clock::time_point committed = Clock::now();
    replay_.request_newest(tick);
    replay_.progress(true);
    batch_ = replay_.take(tick);
    const Clock::time_point gathered = Clock::now();
    note(is_counted, "submit_us", begin, submitted);
    note(is_counted, "commit_us", submitted, committed);
    note(is_counted, "gather_us", committed, gathered);
    note(is_counted, "total_us", begin, gathered);
  }

  void prefetch_tick(uint64_t tick, bool is_counted) {
    const Clock::time_point begin = Clock::now();
    replay_.request(tick);
    note(is_counted, "request_us", begin, Clock::now());
    add(tick, is_counted);
    replay_.publish();
    double progress_us = 0;
    for (int update = 0; update < kUpdates; ++update) {
      const Clock::time_point start = Clock::now();
      replay_.progress(false);
      const Clock::time_point end = Clock::now();
      progress_us += microseconds(start, end);
      while (Clock::now() < end + kUpdateTime) {
      }
    }
    if (is_counted) {
      times_["progress_us"].push_back(progress_us);
      ready_ticks_ += replay_.ready(tick);
    }
    const Clock::time_point boundary = Clock::now();
    replay_.progress(true);
    batch_ = replay_.take(tick);
    note(is_counted, "boundary_us", boundary, Clock::now());
  }

  const Settings& settings_;
  const Rows& rows_;
  Backend& backend_;
  FirstError first_error_;
  Replay replay_;
  const float* batch_ = nullptr;
  Times times_;
  uint64_t ready_ticks_ = 0;
};

std::string device_text(const std::string& name) {
  for (const BackendInfo& info : backends()) {
    if (info.name == name) return info.device;
  }
  return "";
}

nlohmann::json describe(const Settings& settings) {
  return {{"backend", settings.backend},
          {"device", device_text(settings.backend)},
          {"mode", settings.mode},
          {"pipeline", to_string(settings.pipeline)},
          {"layout", to_string(settings.batch_layout)},
          {"envs", settings.envs},
          {"capacity_rows", settings.capacity_rows},
          {"depth", settings.depth},
          {"sample_rows", settings.sample_rows},
          {"row_width", settings.layout.width()},
          {"row_stride_bytes", settings.layout.row_stride_bytes()},
          {"runs", settings.runs},
          {"ticks", settings.ticks},
          {"counted", settings.counted},
          {"untimed_ticks", settings.untimed_ticks()},
          {"seed", settings.seed}};
}

}  // namespace

nlohmann::json bench_replay(const nlohmann::json& request) {
  const Settings settings = read_settings(request);
  Backend backend(backend_api(settings.backend));
  check_memory(settings, backend);
  const Rows rows(settings);
  nlohmann::json report = describe(settings);
  nlohmann::json rounds = nlohmann::json::array();
  Times all;
  uint64_t ready_ticks = 0;
  bool is_verified = true;
  for (uint64_t i = 0; i < settings.runs; ++i) {
    Round round(settings, rows, backend);
    round.run();
    is_verified = round.verify() && is_verified;
    ready_ticks += round.ready_ticks();
    rounds.push_back(medians_of(round.times()));
    for (const auto& [phase, values] : round.times()) {
      all[phase].insert(all[phase].end(), values.begin(), values.end());
    }
    report["wraps"] = round.replay().counters().wraps;
    report["host_bytes"] = round.replay().host_bytes();
    report["host_batch_bytes"] = round.replay().host_batch_bytes();
    report["device_bytes"] = round.replay().device_bytes();
  }
  nlohmann::json iqr;
  for (const auto& [phase, values] : all) {
    iqr[phase] = interquartile_range(values);
  }
  report["medians"] = medians_of(all);
  report["iqr"] = std::move(iqr);
  if (settings.is_prefetch()) report["ready_ticks"] = ready_ticks;
  report["counted_ticks"] = settings.runs * settings.counted;
  report["verified"] = is_verified;
  report["rounds"] = std::move(rounds);
  if (settings.measures_bandwidth) {
    report["bandwidth"] = bench_bandwidth(
        backend, {settings.layout, settings.batch_layout, settings.envs, settings.capacity_rows,
                  settings.sample_rows, settings.runs, settings.seed});
  }
  return report;
}

}  // namespace millrace
