#include "bench_graphs.h"

#include <algorithm>
#include <map>

#include "bench_shapes.h"
#include "budget.h"
#include "gallery_runner.h"
#include "graph_preflight.h"

namespace millrace {

namespace {

constexpr uint64_t kComparedRuns = 6;     // two warm ones, a capture, replays
constexpr double kBudgetMs = 20000;       // of measuring one case
constexpr const char* kSelected = "scg";  // the way that was selected

struct Settings {
  size_t rounds;
  GalleryScale scale;
  std::vector<Way> ways;
};

// All programs of a case, run one after the other in each way.
class CaseBench {
 public:
  CaseBench(const BackendApi& api, GalleryCase& gallery, const Settings& settings)
      : settings_(settings), case_(gallery), backend_(api), stream_(backend_) {
    for (GalleryProgramPtr& program : gallery.programs) {
      runners_.push_back(
          std::make_unique<GalleryRunner>(backend_, stream_, *program, settings.ways));
    }
    for (const auto& runner : runners_) runner->prepare();
    compare();
    for (const auto& runner : runners_) selections_.push_back(runner->select_way({}));
  }

  nlohmann::json measure() {
    std::vector<ProfiledWay> ways;
    for (const Way way : settings_.ways) {
      ways.push_back({to_string(way), [this, way] { run_all([way](size_t) { return way; }); },
                      [this] { wait(); }});
    }
    ways.push_back({kSelected, [this] { run_all([this](size_t i) { return selected(i); }); },
                    [this] { wait(); }});
    const Profile found = profile(ways, {settings_.rounds, kBudgetMs, 1}, steady_clock_ns);
    nlohmann::json report = {{"name", case_.name},
                             {"about", case_.about},
                             {"programs", runners_.size()},
                             {"runs_of_a_sample", found.runs_of_a_sample},
                             {"selections", selection_list()}};
    for (size_t i = 0; i < ways.size(); ++i) {
      const bool is_selected = i == settings_.ways.size();
      const auto way_of = [&](size_t program) {
        return is_selected ? selected(program) : settings_.ways[i];
      };
      report["ways"][ways[i].name] = facts_of(found.times[i], way_of);
    }
    if (runners_.size() == 1 && settings_.ways.size() > 1) {
      report["transform"] = runners_[0]->runner(Way::kTransformedIndirect).describe()["transform"];
    }
    return report;
  }

 private:
  void compare() {
    for (const auto& runner : runners_) {
      const uint64_t expected = runner->digest_after(Way::kEager, kComparedRuns);
      for (const Way way : settings_.ways) {
        if (runner->digest_after(way, kComparedRuns) == expected) continue;
        throw Failure(Code::kDevice, "program " + runner->name() + " gives other bits as " +
                                         to_string(way) + " than as eager");
      }
    }
  }

  template <class WayOf>
  void run_all(WayOf way_of) {
    for (size_t i = 0; i < runners_.size(); ++i) runners_[i]->run(way_of(i));
  }
  void wait() {
    for (const auto& runner : runners_) runner->wait();
  }
  Way selected(size_t program) const {
    for (const Way way : settings_.ways) {
      if (selections_[program].way == to_string(way)) return way;
    }
    return Way::kEager;
  }

  template <class WayOf>
  nlohmann::json facts_of(const RunTimes& times, WayOf way_of) {
    double coverage = 0, setup_ms = 0;
    uint64_t copied = 0, bytes = 0;
    std::string reason;
    for (size_t i = 0; i < runners_.size(); ++i) {
      const Way way = way_of(i);
      ProgramRunner& runner = runners_[i]->runner(way);
      coverage += runner.coverage() / static_cast<double>(runners_.size());
      copied += runner.copied_bytes_per_run();
      setup_ms += runners_[i]->setup_ms(way);
      bytes += runners_[i]->graph_bytes(way) + runner.input_bytes();
      if (reason.empty()) reason = runner.obstacle();
    }
    if (times.way == kSelected && runners_.size() == 1) reason = selections_[0].reason;
    return {
        {"median_us", times.median_us}, {"p99_us", times.p99_us}, {"mad_us", times.deviation_us},
        {"rounds", times.rounds},       {"coverage", coverage},   {"copied_bytes_per_run", copied},
        {"setup_ms", setup_ms},         {"device_bytes", bytes},  {"reason", reason}};
  }

  nlohmann::json selection_list() const {
    nlohmann::json list = nlohmann::json::array();
    for (size_t i = 0; i < runners_.size(); ++i) {
      nlohmann::json entry = to_json(selections_[i]);
      entry["program"] = runners_[i]->name();
      list.push_back(std::move(entry));
    }
    return list;
  }

  const Settings& settings_;
  const GalleryCase& case_;
  Backend backend_;
  Stream stream_;
  std::vector<std::unique_ptr<GalleryRunner>> runners_;
  std::vector<Selection> selections_;
};

// From which size on reading through the block is faster than copying.
nlohmann::json measure_break_even(const BackendApi& api, const Settings& settings) {
  constexpr uint64_t kSmallest = 16 << 10, kLargest = 64 << 20;
  nlohmann::json sizes = nlohmann::json::array();
  nlohmann::json break_even_bytes = nullptr;
  for (uint64_t bytes = kSmallest; bytes <= kLargest; bytes *= 4) {
    Backend backend(api);
    Stream stream(backend);
    const GalleryProgramPtr program = gallery_of_one_input(bytes / sizeof(float), settings.scale);
    GalleryRunner runner(backend, stream, *program, {Way::kTransformed, Way::kTransformedIndirect});
    runner.prepare();
    std::vector<ProfiledWay> ways;
    for (const Way way : {Way::kTransformed, Way::kTransformedIndirect}) {
      ways.push_back(
          {to_string(way), [&runner, way] { runner.run(way); }, [&runner] { runner.wait(); }});
    }
    const Profile found = profile(ways, {settings.rounds, kBudgetMs, 1}, steady_clock_ns);
    const RunTimes &copied = found.times[0], &indirect = found.times[1];
    const bool gains = select(found.times, 0).way == indirect.way;
    if (gains && break_even_bytes.is_null()) break_even_bytes = bytes;
    if (!gains) break_even_bytes = nullptr;
    sizes.push_back({{"input_bytes", bytes},
                     {"copied_us", copied.median_us},
                     {"indirect_us", indirect.median_us},
                     {"indirect_gains", gains}});
  }
  return {{"sizes", std::move(sizes)}, {"from_bytes", std::move(break_even_bytes)}};
}

// What an option asked for, before it is allocated: inputs lie in one place and are copied to
// another.
void check_inputs(const BackendApi& api, uint64_t input_bytes) {
  require_fits({{{"inputs", 2 * input_bytes, "2 x " + grouped(input_bytes) + " B"}},
                Backend(api).memory_free_bytes()},
               api.name);
}

std::vector<std::string> all_cases() {
  std::vector<std::string> names = gallery_names();
  names.push_back("many_shapes");
  names.push_back("break_even");
  return names;
}

}  // namespace

nlohmann::json bench_graphs(const nlohmann::json& request) {
  return bench_graphs(request, backend_api(request.value("backend", "cpu")));
}

nlohmann::json bench_graphs(const nlohmann::json& request, const BackendApi& api) {
  const int rounds = request.value("rounds", 30);
  if (rounds < static_cast<int>(kLeastRounds)) {
    throw Failure(Code::kInvalid, "rounds must be at least " + std::to_string(kLeastRounds));
  }
  const bool has_graphs = api.has_graphs != 0;
  Settings settings{static_cast<size_t>(rounds), {}, {Way::kEager}};
  if (has_graphs) settings.ways.assign(std::begin(kAllWays), std::end(kAllWays));
  if (!has_graphs || request.value("small", false)) settings.scale = {1024, 1 << 14, 4 << 20};
  if (request.contains("input_mib")) {
    settings.scale.input_bytes = request["input_mib"].get<uint64_t>() << 20;
    check_inputs(api, settings.scale.input_bytes);
  }
  const std::string only = request.value("case", "");
  const std::vector<std::string> names = all_cases();
  if (!only.empty() && std::find(names.begin(), names.end(), only) == names.end()) {
    std::string allowed;
    for (const std::string& name : names) allowed += (allowed.empty() ? "" : ", ") + name;
    throw Failure(Code::kInvalid, "case: '" + only + "' is not one of " + allowed);
  }
  if (only == "break_even" && !has_graphs) {
    throw Failure(Code::kInvalid,
                  std::string("case: break_even compares two ways of a graph, and the ") +
                      api.name + " backend launches programs eagerly");
  }
  nlohmann::json report = {
      {"backend", api.name},
      {"graphs", has_graphs ? "yes" : "the backend launches programs eagerly: eager alone"},
      {"rounds", rounds},
      {"cases", nlohmann::json::array()}};
  for (const std::string& name : gallery_names()) {
    if (!only.empty() && name != only) continue;
    GalleryCase gallery = gallery_case(name, settings.scale);
    report["cases"].push_back(CaseBench(api, gallery, settings).measure());
  }
  if (only.empty() || only == "many_shapes") report["many_shapes"] = bench_shapes(api);
  if (has_graphs && (only.empty() || only == "break_even")) {
    report["break_even"] = measure_break_even(api, settings);
  }
  return report;
}

}  // namespace millrace
