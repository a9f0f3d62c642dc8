#include "bench_shapes.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device_workspace.h"
#include "gallery.h"
#include "graph_residency.h"

namespace millrace {

namespace {

constexpr size_t kShapes = 24, kMostGraphs = 8, kUses = 240;
constexpr uint64_t kSeed = 21;
constexpr uint64_t kNever = ~uint64_t{0};

struct Shape {
  GalleryProgramPtr program;
  std::unique_ptr<DeviceWorkspace> device;
};

enum class Policy { kEager, kBlind, kSelected };

class ShapeBench {
 public:
  explicit ShapeBench(const BackendApi& api) : backend_(api), stream_(backend_), passed_(backend_) {
    for (GalleryProgramPtr& program : gallery_shapes(kShapes)) {
      program->workspace.allocate();
      Shape shape{std::move(program), nullptr};
      shape.device = std::make_unique<DeviceWorkspace>(
          backend_, stream_, shape.program->workspace,
          std::vector<const Program*>{&shape.program->program}, Precision::kFp32);
      shape.device->upload();
      shapes_.push_back(std::move(shape));
    }
    for (size_t i = 0; i < kShapes; ++i) {
      run(i, nullptr);  // loads what is loaded lazily
    }
  }

  nlohmann::json measure(const std::vector<size_t>& traffic) {
    nlohmann::json report;
    report["ways"]["eager"] = measure(traffic, Policy::kEager);
    if (backend_.api().has_graphs == 0) return report;
    report["ways"]["graph"] = measure(traffic, Policy::kBlind);
    report["ways"]["scg"] = measure(traffic, Policy::kSelected);
    report["residency"] = residency_;
    return report;
  }

 private:
  nlohmann::json measure(const std::vector<size_t>& traffic, Policy policy) {
    GraphResidency residency({kNever, kMostGraphs, kNever}, steady_clock_ns);
    std::map<size_t, std::unique_ptr<Graph>> graphs;
    std::vector<double> times_us;
    std::vector<size_t> last_used(kShapes, 0);
    size_t captures = 0;
    for (size_t use = 0; use < traffic.size(); ++use) {
      const size_t shape = traffic[use];
      const uint64_t begin_ns = steady_clock_ns();
      const Graph* graph = nullptr;
      if (policy != Policy::kEager) {
        bool may_capture = true;
        if (policy == Policy::kSelected) {
          const GraphResidency::Use answer = residency.use(shape, 1);
          for (const uint64_t gone : answer.gone) graphs.erase(gone);
          may_capture = answer.is_resident || answer.may_capture;
        } else if (graphs.count(shape) == 0 && graphs.size() == kMostGraphs) {
          graphs.erase(least_recently_used(graphs, last_used));
        }
        if (may_capture && graphs.count(shape) == 0) {
          graphs[shape] = capture(shape);
          ++captures;
        }
        if (graphs.count(shape) != 0) graph = graphs[shape].get();
      }
      run(shape, graph);
      last_used[shape] = use + 1;
      times_us.push_back(static_cast<double>(steady_clock_ns() - begin_ns) * 1e-3);
    }
    if (policy == Policy::kSelected) residency_ = residency.describe();
    const std::vector<double> steady(times_us.begin() + static_cast<long>(traffic.size() / 2),
                                     times_us.end());
    const RunTimes times = run_times("", steady);
    return {{"median_us", times.median_us}, {"p99_us", times.p99_us}, {"captures", captures}};
  }

  static size_t least_recently_used(const std::map<size_t, std::unique_ptr<Graph>>& graphs,
                                    const std::vector<size_t>& last_used) {
    size_t oldest = graphs.begin()->first;
    for (const auto& each : graphs) {
      if (last_used[each.first] < last_used[oldest]) oldest = each.first;
    }
    return oldest;
  }

  std::unique_ptr<Graph> capture(size_t shape) {
    return std::make_unique<Graph>(backend_, stream_, [&] { submit(shape); });
  }
  void submit(size_t shape) { shapes_[shape].device->submit(shapes_[shape].program->program); }

  void run(size_t shape, const Graph* graph) {
    Arguments arguments{};
    arguments.seed = kSeed;
    arguments.tick = ++tick_;
    shapes_[shape].device->set_arguments(arguments);
    if (graph != nullptr) {
      stream_.launch(*graph);
    } else {
      submit(shape);
    }
    stream_.record(passed_);
    passed_.wait();
  }

  Backend backend_;
  Stream stream_;
  Event passed_;
  std::vector<Shape> shapes_;
  nlohmann::json residency_;
  uint64_t tick_ = 0;
};

// Nine of ten uses are of four shapes.
std::vector<size_t> few_shapes_often() {
  std::vector<size_t> traffic;
  for (u32 use = 0; use < kUses; ++use) {
    const RandomSource source = random_source(kSeed, kStreamEvent, use, 0);
    const bool is_rare = random_index(source, 0, 10) == 0;
    traffic.push_back(random_index(source, 1, is_rare ? kShapes : 4));
  }
  return traffic;
}

std::vector<size_t> all_in_turn() {
  std::vector<size_t> traffic;
  for (size_t use = 0; use < kUses; ++use) traffic.push_back(use % kShapes);
  return traffic;
}

}  // namespace

nlohmann::json bench_shapes(const BackendApi& api) {
  ShapeBench bench(api);
  nlohmann::json traffic = nlohmann::json::array();
  for (const auto& [name, uses] : {std::pair("few_shapes_often", few_shapes_often()),
                                   std::pair("all_in_turn", all_in_turn())}) {
    nlohmann::json entry = bench.measure(uses);
    entry["name"] = name;
    traffic.push_back(std::move(entry));
  }
  return {{"shapes", kShapes},
          {"most_graphs", kMostGraphs},
          {"uses", kUses},
          {"traffic", std::move(traffic)}};
}

}  // namespace millrace
