#include "bench_learner.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "blas_threads.h"
#include "learner_sac.h"
#include "quantile.h"
#include "row_mirror.h"
#include "run_plan.h"
#include "sim_parts.h"

namespace millrace {

namespace {

Precision precision_named(const std::string& name) {
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    if (name == to_string(precision)) return precision;
  }
  throw Failure(Code::kInvalid, "precision: '" + name + "' is not one of fp32, tf32, bf16");
}

constexpr const char* kNothing = "nothing";  // no kind of op

class LearnerBench {
 public:
  LearnerBench(const nlohmann::json& config, Backend& backend, Precision precision, int launches)
      : plan_(parse_plan(config)),
        launches_(launches),
        parts_(config, 1, 1, plan_.seed),
        backend_(backend),
        stream_(backend),
        begin_(backend, true),
        end_(backend, true),
        stride_(static_cast<uint64_t>(task().layout.row_stride())),
        rows_(backend, Memory::Kind::kDevice,
              static_cast<uint64_t>(plan_.learner.gathered_rows()) * stride_ * sizeof(float)),
        learner_(SacPrograms::make(plan_.learner, task().layout), row_mirror_of(task()), plan_.seed,
                 backend, stream_, precision) {
    fill_rows();
    set_arguments();
    if (backend.api().has_graphs != 0) {
      critic_graph_ = graph_of([this] { learner_.submit(false); });
      update_graph_ = graph_of([this] { learner_.submit(true); });
      make_one_by_one();
    }
  }

  std::map<std::string, double> measure() {
    std::map<std::string, double> found;
    const SacPrograms& programs = learner_.programs();
    found["eager_us"] = per_update_us([&](bool with_actor) { learner_.submit(with_actor); });
    if (update_graph_ != nullptr) {
      found["graph_us"] = per_update_us(
          [&](bool with_actor) { stream_.launch(with_actor ? *update_graph_ : *critic_graph_); });
      found["one_by_one_us"] = per_update_us([&](bool with_actor) {
        stream_.launch(with_actor ? *one_by_one_update_ : *one_by_one_critic_);
      });
    }
    found["critic_us"] = per_launch_us([this] { learner_.submit(false); });
    found["whole_us"] = per_launch_us([this] { learner_.submit(true); });
    found["arguments_us"] = per_launch_us([this] { set_arguments(); });
    const int period = plan_.learner.policy_frequency;
    const double flops = ((period - 1) * programs.critic_program->gemm_flops() +
                          programs.whole_program->gemm_flops()) /
                         period;
    const double best = update_graph_ != nullptr ? std::min(found["eager_us"], found["graph_us"])
                                                 : found["eager_us"];
    found["tflop_per_s"] = flops / best * 1e-6;
    return found;
  }

  // Every op of the programs by itself, a number of times in a row and, where there are graphs, as
  // one: launches then cost little beside the work.
  nlohmann::json measure_ops() {
    std::vector<nlohmann::json> ops;
    const SacPrograms& programs = learner_.programs();
    for (const Program* program : programs.all()) {
      const bool is_run =
          program == programs.whole_program.get() || plan_.learner.policy_frequency > 1;
      if (!is_run) continue;
      for (const Program::Record& record : program->records()) {
        Program alone("op", programs.workspace);
        alone.record(record.op, record.site);
        const double us = op_us(alone);
        nlohmann::json op = {{"program", program->name()},
                             {"kind", kind_of(record.op)},
                             {"line", record.site.line},
                             {"us", us},
                             {"bytes", operand_bytes(record.op)}};
        if (const GemmOp* gemm = product_of(record.op)) {
          op["shape"] = std::string(gemm->transpose_a ? "T" : "N") +
                        (gemm->transpose_b ? "T " : "N ") + std::to_string(gemm->m) + "x" +
                        std::to_string(gemm->n) + "x" + std::to_string(gemm->k) + " *" +
                        std::to_string(gemm->count);
          op["tflop_per_s"] = alone.gemm_flops() / us * 1e-6;
        }
        ops.push_back(std::move(op));
      }
    }
    std::stable_sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) {
      return a["us"].template get<double>() > b["us"].template get<double>();
    });
    return ops;
  }

  // The update without all ops of a kind, for every kind, the shortest first: what it is shorter by
  // is what they cost beside the others; and without kNothing, measured like them. What it computes
  // means nothing, so every kind begins with the carriers as they were.
  nlohmann::json measure_without_each(int runs) {
    const SacPrograms& programs = learner_.programs();
    std::set<std::string> kinds = {kNothing};
    for (const Program::Record& record : programs.whole_program->records()) {
      kinds.insert(kind_of(record.op));
    }
    std::vector<nlohmann::json> found;
    for (const std::string& kind : kinds) {
      learner_.device()->upload();
      set_arguments();
      found.push_back({{"kind", kind},
                       {"us", median_us(without(*programs.critic_program, kind),
                                        without(*programs.whole_program, kind), runs)}});
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return a["us"].template get<double>() < b["us"].template get<double>();
    });
    return found;
  }

  const LearnerSpec& spec() const { return plan_.learner; }
  const Task& task() const { return *parts_.task; }
  uint64_t device_bytes() { return learner_.device()->bytes(); }

 private:
  Program without(const Program& program, const std::string& kind) {
    Program rest(program.name(), learner_.programs().workspace);
    for (const Program::Record& record : program.records()) {
      if (kind_of(record.op) != kind) rest.append(record);
    }
    return rest;
  }

  // Of an update by these programs, as a graph where there are any.
  double median_us(const Program& critic, const Program& whole, int runs) {
    const auto submit = [&](bool with_actor) {
      learner_.device()->submit(with_actor ? whole : critic);
    };
    std::unique_ptr<Graph> graphs[2];
    if (backend_.api().has_graphs != 0) {
      for (const bool with_actor : {false, true}) {
        graphs[with_actor] = graph_of([&] { submit(with_actor); });
      }
    }
    std::vector<double> us;
    for (int run = 0; run < runs; ++run) {
      us.push_back(per_update_us([&](bool with_actor) {
        if (graphs[with_actor] != nullptr) {
          stream_.launch(*graphs[with_actor]);
        } else {
          submit(with_actor);
        }
      }));
    }
    return median(us);
  }

  // Of all operands as the device stores them, each once.
  uint64_t operand_bytes(const Op& op) {
    const std::vector<Workspace::Carrier>& carriers = learner_.programs().workspace.carriers();
    const bool is_bf16 = learner_.device()->precision() == Precision::kBf16;
    uint64_t bytes = 0;
    for (const Extent& extent : extents_of(op)) {
      const Workspace::Carrier& carrier = carriers[static_cast<size_t>(extent.operand.carrier)];
      const bool is_narrow = is_bf16 && carrier.role == Workspace::Carrier::kActivation;
      bytes += extent.count * (is_narrow ? sizeof(uint16_t) : bytes_of(carrier.dtype));
    }
    return bytes;
  }

  void fill_rows() {
    const RowLayout& layout = task().layout;
    std::vector<float> rows(rows_.bytes() / sizeof(float));
    for (uint64_t r = 0; r < static_cast<uint64_t>(plan_.learner.gathered_rows()); ++r) {
      const RandomSource source = random_source(plan_.seed, kStreamEvent, static_cast<u32>(r), 0);
      float* row = rows.data() + r * stride_;
      for (int i = 0; i < layout.width(); ++i) row[i] = random_normal(source, static_cast<u32>(i));
      for (int i = 0; i < layout.action_dim; ++i) {
        row[layout.action() + i] = mr_tanh(row[layout.action() + i]);
      }
      row[layout.done()] = r % 100 == 99 ? 1.0f : 0.0f;
      row[layout.truncated()] = 0.0f;
    }
    stream_.copy(CopyDirection::kHostToDevice, rows_.floats(), rows.data(), rows_.bytes());
    stream_.record(end_);
    end_.wait();
  }

  void set_arguments() {
    learner_.device()->set_arguments(
        learner_.arguments(rows_.floats(), static_cast<int>(stride_), tick_++));
  }

  // Graphs of the same programs over carriers of their own, whose ops wait for each other.
  void make_one_by_one() {
    const SacPrograms& programs = learner_.programs();
    one_by_one_ = std::make_unique<DeviceWorkspace>(backend_, stream_, programs.workspace,
                                                    programs.all(), learner_.device()->precision(),
                                                    Products::kLibrary, Order::kOneByOne);
    one_by_one_->upload();
    one_by_one_->set_arguments(
        learner_.arguments(rows_.floats(), static_cast<int>(stride_), tick_));
    one_by_one_critic_ = graph_of([&] { one_by_one_->submit(*programs.critic_program); });
    one_by_one_update_ = graph_of([&] { one_by_one_->submit(*programs.whole_program); });
  }

  std::unique_ptr<Graph> graph_of(const std::function<void()>& body) {
    return std::make_unique<Graph>(backend_, stream_, body);
  }

  double op_us(const Program& alone) {
    const auto submit_all = [&] {
      for (int i = 0; i < launches_; ++i) learner_.device()->submit(alone);
    };
    if (backend_.api().has_graphs == 0) return timed_us(submit_all) / launches_;
    const std::unique_ptr<Graph> graph = graph_of(submit_all);
    stream_.launch(*graph);
    return timed_us([&] { stream_.launch(*graph); }) / launches_;
  }

  // Of one period's updates, the last with the actor's.
  double per_update_us(const std::function<void(bool)>& update) {
    const int period = plan_.learner.policy_frequency;
    const double us = per_launch_us([&] {
      for (int i = 1; i <= period; ++i) update(i == period);
    });
    return us / period;
  }

  double per_launch_us(const std::function<void()>& launch) {
    launch();  // loads what is loaded lazily
    return timed_us([&] {
             for (int i = 0; i < launches_; ++i) launch();
           }) /
           launches_;
  }

  double timed_us(const std::function<void()>& work) {
    stream_.record(begin_);
    work();
    stream_.record(end_);
    end_.wait();
    return end_.elapsed_ns_since(begin_) * 1e-3;
  }

  const RunPlan plan_;
  const int launches_;
  SimParts parts_;
  Backend& backend_;
  Stream stream_;
  Event begin_, end_;
  const uint64_t stride_;
  Memory rows_;
  LearnerSac learner_;
  uint64_t tick_ = 0;
  std::unique_ptr<Graph> critic_graph_, update_graph_;
  std::unique_ptr<DeviceWorkspace> one_by_one_;
  std::unique_ptr<Graph> one_by_one_critic_, one_by_one_update_;
};

}  // namespace

nlohmann::json bench_learner(const nlohmann::json& request) {
  const auto at_least_one = [&request](const char* key, int default_value) {
    const int value = request.value(key, default_value);
    if (value < 1) throw Failure(Code::kInvalid, std::string(key) + " must be at least 1");
    return value;
  };
  const int runs = at_least_one("runs", 5);
  const int launches = at_least_one("launches", 20);
  const Precision precision = precision_named(request.value("precision", "fp32"));
  const std::string name = request.value("backend", "cpu");
  set_blas_threads(parse_plan(request.at("config")).learner.threads);
  Backend backend(backend_api(name));
  LearnerBench bench(request.at("config"), backend, precision, launches);
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
  nlohmann::json report = {{"backend", name},
                           {"precision", to_string(precision)},
                           {"products", backend.facts().products},
                           {"task", bench.task().definition.name},
                           {"algo", to_string(bench.spec().algorithm)},
                           {"batch", bench.spec().batch},
                           {"policy_frequency", bench.spec().policy_frequency},
                           {"runs", runs},
                           {"launches", launches},
                           {"device_bytes", bench.device_bytes()},
                           {"medians", std::move(medians)},
                           {"iqr", std::move(iqr)},
                           {"rounds", std::move(rounds)}};
  if (request.value("ops", false)) report["ops"] = bench.measure_ops();
  if (request.value("without", false)) report["without"] = bench.measure_without_each(runs);
  return report;
}

}  // namespace millrace
