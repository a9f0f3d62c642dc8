#include "bench_bandwidth.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "philox.h"
#include "quantile.h"

namespace millrace {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kGathers = 20;   // in one graph, each of its own tick
constexpr int kCopies = 10;    // between two events
constexpr int kSubmits = 100;  // each waited for
constexpr uint64_t kLargeBytes = uint64_t{256} << 20;

class Bandwidth {
 public:
  Bandwidth(Backend& backend, const BandwidthSpec& spec)
      : spec_(spec),
        columns_(batch_columns(spec.layout, spec.batch_layout)),
        stream_(backend),
        begin_(backend, true),
        end_(backend, true),
        mark_(backend),
        ring_(backend, Memory::Kind::kDevice, spec.capacity_rows * spec.layout.row_stride_bytes()),
        batch_(backend, Memory::Kind::kDevice, batch_bytes()),
        host_(backend, Memory::Kind::kPinnedHost, std::max(slot_bytes(), kLargeBytes)),
        large_(backend, Memory::Kind::kDevice, 2 * kLargeBytes) {
    fill();
    if (backend.api().has_graphs != 0) {
      graph_ = std::make_unique<Graph>(backend, stream_, [this] { gather_all(); });
    }
  }

  std::map<std::string, double> measure() {
    std::map<std::string, double> found;
    const double copy_ns = copies_ns(kLargeBytes, [this] {
      char* memory = reinterpret_cast<char*>(large_.floats());
      stream_.copy(CopyDirection::kDeviceToDevice, memory + kLargeBytes, memory, kLargeBytes);
    });
    found["device_copy_gb_per_s"] = 2 * static_cast<double>(kLargeBytes) / copy_ns;
    const double small_ns = copies_ns(copied_bytes(), [this] {
      stream_.copy(CopyDirection::kDeviceToDevice, batch_.floats(), ring_.floats(), copied_bytes());
    });
    found["device_copy_of_batch_gb_per_s"] = 2 * static_cast<double>(copied_bytes()) / small_ns;
    const double gather_ns = timed_ns([this] {
                               if (graph_ != nullptr) {
                                 stream_.launch(*graph_);
                               } else {
                                 gather_all();
                               }
                             }) /
                             kGathers;
    found["gather_us"] = gather_ns * 1e-3;
    found["gather_gb_per_s"] = 2 * static_cast<double>(batch_bytes()) / gather_ns;
    found["gather_share"] = found["gather_gb_per_s"] / found["device_copy_gb_per_s"];

    const double pinned_ns = copies_ns(kLargeBytes, [this] {
      stream_.copy(CopyDirection::kHostToDevice, large_.floats(), host_.floats(), kLargeBytes);
    });
    found["pinned_copy_gb_per_s"] = static_cast<double>(kLargeBytes) / pinned_ns;
    const double flat_ns = copies_ns(slot_bytes(), [this] {
      stream_.copy(CopyDirection::kHostToDevice, large_.floats(), host_.floats(), slot_bytes());
    });
    found["pinned_copy_of_slot_gb_per_s"] = static_cast<double>(slot_bytes()) / flat_ns;
    const double slot_ns = copies_ns(slot_bytes(), [this] { copy_slot(); });
    found["slot_copy_us"] = slot_ns * 1e-3;
    found["slot_copy_gb_per_s"] = static_cast<double>(slot_bytes()) / slot_ns;
    found["slot_copy_share"] = found["slot_copy_gb_per_s"] / found["pinned_copy_gb_per_s"];
    found["submit_us"] = submit_us();
    return found;
  }

 private:
  uint64_t batch_bytes() const { return spec_.sample_rows * columns_.stride * sizeof(float); }
  uint64_t copied_bytes() const { return std::min(batch_bytes(), ring_.bytes()); }
  uint64_t slot_bytes() const { return spec_.envs * spec_.layout.row_bytes(); }

  // Random bits on both sides: memory full of zeros is moved faster.
  void fill() {
    const RandomSource source = random_source(spec_.seed, kStreamReset, 0, 0);
    const uint64_t floats = host_.bytes() / sizeof(float);
    for (uint64_t i = 0; i + 4 <= floats; i += 4) {
      const Philox4 block = random_block(source, static_cast<u32>(i / 4));
      for (uint64_t j = 0; j < 4; ++j) host_.floats()[i + j] = unit_float(block.word[j]);
    }
    for (Memory* target : {&ring_, &large_}) {
      char* to = reinterpret_cast<char*>(target->floats());
      for (uint64_t done = 0; done < target->bytes(); done += kLargeBytes) {
        const uint64_t piece = std::min(kLargeBytes, target->bytes() - done);
        stream_.copy(CopyDirection::kHostToDevice, to + done, host_.floats(), piece);
      }
    }
    settle();
  }

  void settle() {
    stream_.record(mark_);
    mark_.wait();
  }

  double timed_ns(const std::function<void()>& work) {
    stream_.record(begin_);
    work();
    stream_.record(end_);
    end_.wait();
    return end_.elapsed_ns_since(begin_);
  }

  // Of one copy; the first one, which wakes the engine, is not counted.
  double copies_ns(uint64_t bytes, const std::function<void()>& copy) {
    copy();
    const int copies = bytes < kLargeBytes ? 4 * kCopies : kCopies;
    return timed_ns([&] {
             for (int i = 0; i < copies; ++i) copy();
           }) /
           copies;
  }

  void copy_slot() {
    stream_.copy_rows(CopyDirection::kHostToDevice, ring_.floats(), spec_.layout.row_stride_bytes(),
                      host_.floats(), spec_.layout.row_bytes(), spec_.layout.row_bytes(),
                      std::min(spec_.envs, spec_.capacity_rows));
  }

  void gather_all() {
    for (int tick = 0; tick < kGathers; ++tick) {
      stream_.gather({batch_.floats(), ring_.floats(), spec_.capacity_rows,
                      static_cast<uint64_t>(spec_.layout.row_stride()), spec_.sample_rows,
                      spec_.seed, static_cast<uint64_t>(tick), 0, spec_.capacity_rows, columns_});
    }
  }

  // The host's part of one tick: the copy of a slot and its event.
  double submit_us() {
    std::vector<double> times;
    for (int i = 0; i < kSubmits; ++i) {
      const Clock::time_point begin = Clock::now();
      copy_slot();
      stream_.record(mark_);
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
      mark_.wait();
    }
    return median(times);
  }

  const BandwidthSpec& spec_;
  const BatchColumns columns_;
  Stream stream_;
  Event begin_, end_, mark_;
  Memory ring_, batch_, host_, large_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace

nlohmann::json bench_bandwidth(Backend& backend, const BandwidthSpec& spec) {
  Bandwidth bandwidth(backend, spec);
  bandwidth.measure();  // warms up clocks and caches
  std::map<std::string, std::vector<double>> all;
  nlohmann::json rounds = nlohmann::json::array();
  for (uint64_t run = 0; run < spec.runs; ++run) {
    const std::map<std::string, double> found = bandwidth.measure();
    rounds.push_back(found);
    for (const auto& [name, value] : found) all[name].push_back(value);
  }
  nlohmann::json medians, iqr;
  for (const auto& [name, values] : all) {
    medians[name] = median(values);
    iqr[name] = interquartile_range(values);
  }
  return {{"medians", std::move(medians)},
          {"iqr", std::move(iqr)},
          {"rounds", std::move(rounds)},
          {"gathers", kGathers},
          {"gathers_in_a_graph", backend.api().has_graphs != 0}};
}

}  // namespace millrace
