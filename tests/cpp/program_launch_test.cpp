// Tests for cpp/program_launch.h: on every backend each kind of op computes what the CPU's does,
// from random inputs, at widths that fill no vector, warp or tile.
#include "program_launch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "program_trial.h"

namespace millrace {
namespace {

class ProgramLaunchTest : public testing::TestWithParam<std::string> {};

MR_ON_EACH_COMPUTING_BACKEND(ProgramLaunchTest);

struct Product {
  int m, n, k, count;
  int slack;  // of strides
};

// Our own kernel rounds the operands; a library may cut off what TF32 and bf16 have no room for,
// which is twice as far, and adds fp32 up in longer runs.
double tolerance_of(Precision precision, Products products) {
  const double rounded = precision == Precision::kFp32   ? kRounding
                         : precision == Precision::kTf32 ? 6e-4
                                                         : 5e-3;
  return products == Products::kOwnKernel ? rounded : 2.5 * rounded;
}

// Every transposition in every precision, each with what may follow a product.
void check_products(const std::string& backend_name, Products by) {
  const std::vector<Product> products = {
      {7, 5, 9, 1, 0},      {200, 70, 98, 2, 0},   {128, 256, 64, 1, 0}, {130, 36, 44, 3, 4},
      {96, 58, 3001, 2, 2}, {64, 132, 4096, 1, 0}, {1, 1, 1, 1, 0}};
  const uint32_t precisions = test_backend_api(backend_name).precisions;
  for (const Precision precision : {Precision::kFp32, Precision::kTf32, Precision::kBf16}) {
    if ((precisions & precision_bit(precision)) == 0) continue;
    for (const Product& p : products) {
      for (int transposed = 0; transposed < 4; ++transposed) {
        SCOPED_TRACE(std::string(to_string(precision)) + " " + std::to_string(p.m) + "x" +
                     std::to_string(p.n) + "x" + std::to_string(p.k) + " " +
                     std::to_string(transposed));
        Trial trial;
        GemmOp op{};
        op.transpose_a = transposed % 2 != 0;
        op.transpose_b = transposed / 2 != 0;
        op.m = p.m;
        op.n = p.n;
        op.k = p.k;
        op.count = p.count;
        // Products side by side, as the groups of a layer lie.
        const int a_width = op.transpose_a ? p.m : p.k, a_rows = op.transpose_a ? p.k : p.m;
        const int b_width = op.transpose_b ? p.k : p.n, b_rows = op.transpose_b ? p.n : p.k;
        op.a_stride = p.count * a_width + p.slack;
        op.b_stride = b_width + p.slack;
        op.c_stride = p.count * p.n + p.slack;
        op.a_distance = static_cast<uint64_t>(a_width);
        op.b_distance = static_cast<uint64_t>(b_rows) * static_cast<uint64_t>(op.b_stride);
        op.c_distance = static_cast<uint64_t>(p.n);
        op.a = trial.add("a", static_cast<uint64_t>(a_rows) * static_cast<uint64_t>(op.a_stride));
        op.b = trial.add("b", op.b_distance * static_cast<uint64_t>(p.count));
        op.c = trial.add("c", static_cast<uint64_t>(p.m) * static_cast<uint64_t>(op.c_stride), 0);
        if (transposed > 0) {
          op.bias = trial.add("bias", static_cast<uint64_t>(p.count) * static_cast<uint64_t>(p.n));
        }
        op.has_relu = transposed > 1;
        // What is not a number has to be seen behind a ReLU, too.
        const auto spoil = [&op](Workspace& workspace) {
          if (op.has_relu) workspace.floats(op.a)[0] = NAN;
        };
        trial.run(backend_name, op, tolerance_of(precision, by), precision, spoil, by);
      }
    }
  }
}

TEST_P(ProgramLaunchTest, GemmOfTheLibrary) {
  if (GetParam() == cuda_kernels().name) GTEST_SKIP() << "has none";
  check_products(GetParam(), Products::kLibrary);
}

TEST_P(ProgramLaunchTest, GemmOfOurOwnKernel) { check_products(GetParam(), Products::kOwnKernel); }

// Activations times parameters or activations, to an activation or to floats.
TEST_P(ProgramLaunchTest, GemmOfWhatIsStoredInBf16) {
  if ((test_backend_api(GetParam()).precisions & precision_bit(Precision::kBf16)) == 0) return;
  for (const Products by : {Products::kLibrary, Products::kOwnKernel}) {
    for (const bool has_parameters : {true, false}) {
      for (const bool is_to_activation : {true, false}) {
        for (const Product& p : {Product{200, 104, 136, 2, 0}, Product{130, 36, 45, 3, 3},
                                 Product{96, 64, 3001, 2, 0}}) {
          SCOPED_TRACE(std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) +
                       (by == Products::kLibrary ? ", library" : ", own kernel") +
                       (is_to_activation ? ", to bf16" : ", to fp32"));
          Trial trial;
          GemmOp op{};
          op.m = p.m;
          op.n = p.n;
          op.k = p.k;
          op.count = p.count;
          op.transpose_b = has_parameters;
          op.a_stride = p.k + p.slack;
          op.b_stride = (op.transpose_b ? p.k : p.n) + p.slack;
          op.c_stride = p.n + p.slack;
          op.a_distance = static_cast<uint64_t>(p.m) * static_cast<uint64_t>(op.a_stride);
          op.b_distance = static_cast<uint64_t>(op.transpose_b ? p.n : p.k) *
                          static_cast<uint64_t>(op.b_stride);
          op.c_distance = static_cast<uint64_t>(p.m) * static_cast<uint64_t>(op.c_stride);
          const auto all = [&](uint64_t distance) {
            return static_cast<uint64_t>(p.count) * distance;
          };
          op.a = trial.add_activation("a", all(op.a_distance));
          op.b = has_parameters ? trial.add_parameters("b", all(op.b_distance))
                                : trial.add_activation("b", all(op.b_distance));
          op.c = is_to_activation ? trial.add_activation("c", all(op.c_distance))
                                  : trial.add("c", all(op.c_distance));
          if (has_parameters) {
            op.bias = trial.add_parameters(
                "bias", static_cast<uint64_t>(p.count) * static_cast<uint64_t>(p.n));
            op.has_relu = true;
          }
          trial.run(
              GetParam(), op, kBf16Rounding, Precision::kBf16,
              [&](Workspace& workspace) { workspace.floats(op.a)[0] = has_parameters ? NAN : 1; },
              by);
        }
      }
    }
  }
}

TEST_P(ProgramLaunchTest, LayerBackward) {
  in_each_storage(GetParam(), kRounding, [&](Precision precision, double tolerance) {
    for (const bool has_sums : {true, false}) {
      for (const int width : {4, 37, 128, 192, 256, 384, 512, 768, 1024, 2100}) {
        for (const int rows : {5, 301}) {
          Trial trial;
          LayerBackwardOp op{};
          op.rows = rows;
          op.groups = 2;
          op.width = width;
          const uint64_t parameters = 2 * static_cast<uint64_t>(width);
          const uint64_t values = static_cast<uint64_t>(rows) * parameters;
          op.gradient = trial.add_activation("gradient", values);
          op.linear = trial.add_activation("linear", values);
          op.mean = trial.add("mean", static_cast<uint64_t>(rows) * 2, 0.1f);
          op.inverse_deviation =
              trial.add("inverse_deviation", static_cast<uint64_t>(rows) * 2, 0.1f, 1);
          op.bias = trial.add("bias", parameters, 0.3f);
          op.gain = trial.add("gain", parameters, 0.3f, 1);
          op.shift = trial.add("shift", parameters, 0.3f);
          if (has_sums) {
            op.bias_gradient = trial.add("bias_gradient", parameters);
            op.gain_gradient = trial.add("gain_gradient", parameters);
            op.shift_gradient = trial.add("shift_gradient", parameters);
          }
          trial.run(GetParam(), op, tolerance, precision);
        }
      }
    }
  });
}

TEST_P(ProgramLaunchTest, ReluBackward) {
  in_each_storage(GetParam(), kRounding, [&](Precision precision, double tolerance) {
    for (const int width : {1, 37, 512}) {
      for (const int rows : {1, 129, 3001}) {
        Trial trial;
        ReluBackwardOp op{};
        op.rows = rows;
        op.width = width;
        const uint64_t values = static_cast<uint64_t>(rows) * static_cast<uint64_t>(width);
        op.gradient = trial.add_activation("gradient", values);
        op.output = trial.add_activation("output", values);
        trial.run(GetParam(), op, tolerance, precision);
      }
    }
  });
}

TEST_P(ProgramLaunchTest, ColumnSum) {
  in_each_storage(GetParam(), kRounding, [&](Precision precision, double tolerance) {
    for (const int rows : {1, 130, 1001, 9001}) {
      Trial trial;
      ColumnSumOp op{};
      op.rows = rows;
      op.width = 202;
      op.values = trial.add_activation("values", static_cast<uint64_t>(rows) * 202);
      op.sums = trial.add("sums", 202);
      trial.run(GetParam(), op, tolerance, precision);
    }
  });
}

// Vectors of two columns and their ragged ends, at even and odd places; the last part stands behind
// the one before it, in the same rows.
TEST_P(ProgramLaunchTest, UnpackWithMirrorAndNormaliser) {
  constexpr int kSourceRows = 33, kStride = 240;
  struct {
    int column, width;
  } constexpr kParts[] = {{5, 98}, {3, 1}, {103, 97}, {200, 29}};
  in_each_storage(GetParam(), 0, [&](Precision precision, double tolerance) {
    for (const int variety : {0, 1, 2, 3, 4, 5, 6, 7}) {
      const bool has_mirror = variety & 1, has_normaliser = variety & 2;
      const int target_stride = variety & 4 ? 130 : 131;
      Trial trial;
      UnpackOp op{has_mirror ? 2 * kSourceRows : kSourceRows, kSourceRows, {}};
      for (const auto& [column, width] : kParts) {
        const std::string name = std::to_string(op.parts.size());
        const bool is_last = op.parts.size() == 3;
        UnpackPart part{};
        part.column = column;
        part.width = width;
        part.target_stride = target_stride;
        part.target =
            is_last ? op.parts.back().target + op.parts.back().width
                    : trial.add_activation("target" + name, uint64_t(op.rows) * target_stride);
        if (has_mirror) {
          part.mirror_source = trial.add_integers("source" + name, width);
          part.mirror_sign = trial.add("sign" + name, width);
        }
        if (has_normaliser && !is_last) {
          part.mean = trial.add("mean" + name, width);
          part.scale = trial.add("scale" + name, width);
        }
        op.parts.push_back(part);
      }
      trial.batch.resize(kSourceRows * kStride);
      for (size_t i = 0; i < trial.batch.size(); ++i) trial.batch[i] = static_cast<float>(i % 977);
      trial.with.row_stride = kStride;
      trial.run(GetParam(), op, tolerance, precision, [&](Workspace& workspace) {
        for (const UnpackPart& part : op.parts) {
          for (int i = 0; has_mirror && i < part.width; ++i) {
            workspace.integers(part.mirror_source)[i] = part.width - 1 - i;
          }
        }
      });
    }
  });
}

TEST_P(ProgramLaunchTest, SampleAction) {
  in_each_storage(GetParam(), kRounding, [&](Precision precision, double tolerance) {
    for (const bool deterministic : {false, true}) {
      Trial trial;
      SampleActionOp op{};
      op.rows = 301;
      op.actions = 29;
      op.deterministic = deterministic;
      op.stream = kStreamLearnerNoise;
      op.first_normal = 29;
      op.action_stride = 130;
      op.heads_stride = 64;
      op.heads = trial.add("heads", 301 * 64);
      op.bias = trial.add("bias", 58);
      op.action = trial.add_activation("action", 301 * 130);
      op.noise = trial.add("noise", 301 * 29);
      if (!deterministic) op.log_probability = trial.add("log_probability", 301);
      trial.run(GetParam(), op, tolerance, precision);
    }
  });
}

TEST_P(ProgramLaunchTest, ActionGradient) {
  in_each_storage(GetParam(), 1e-5, [&](Precision precision, double tolerance) {
    Trial trial;
    ActionGradientOp op{};
    op.rows = 3001;
    op.actions = 29;
    op.heads_stride = 64;
    op.heads = trial.add("heads", 3001 * 64, 4);  // some means beyond the clamp
    op.bias = trial.add("bias", 58);
    op.noise = trial.add("noise", 3001 * 29);
    op.action_gradient_stride = 40;
    op.action_gradient = trial.add("action_gradient", 3001 * 40);
    op.log_alpha = trial.add("log_alpha", 1, 0, -2);
    op.heads_gradient = trial.add_activation("heads_gradient", 3001 * 64);
    trial.run(GetParam(), op, tolerance, precision);
  });
}

TEST_P(ProgramLaunchTest, MeanDeviation) {
  for (const ActionDensity& density : {kFastSacDensity, kFlashSacDensity}) {
    for (const int rows : {1, 9001}) {
      Trial trial;
      MeanDeviationOp op{};
      op.rows = rows;
      op.actions = 29;
      op.density = density;
      op.heads_stride = 64;
      op.heads = trial.add("heads", 64 * static_cast<uint64_t>(rows), 4);
      op.bias = trial.add("bias", 58);
      op.mean_deviation = trial.add("mean_deviation", 1);
      trial.run(GetParam(), op, 1e-5);
    }
  }
}

AdamWOp add_adamw(Trial& trial, uint64_t count, LearningRate rate, float finite = 1.0f) {
  AdamWOp op{};
  op.count = count;
  op.parameters = trial.add_parameters("parameters", count);
  op.gradient = trial.add("gradient", count);
  op.first_moment = trial.add("first_moment", count, 0.1f);
  op.second_moment = trial.add("second_moment", count);
  op.step = trial.add_counter("step");
  op.loss = trial.add("loss", 1, 0, 2.0f);
  op.max_norm = 0.7f;
  op.norm = trial.add("norm", 1);
  op.clip = trial.add("clip", 1);
  op.finite = trial.add("finite", 1, 0, finite);
  op.constants = {0.9f, 0.95f, 0.01f};
  op.rate = rate;
  if (rate == LearningRate::kCritic) op.target = trial.add_parameters("target", count);
  return op;
}

// A moment that adamw could have left.
void prepare_adamw(const AdamWOp& op, Workspace& workspace) {
  *workspace.counters(op.step) = 6;
  for (uint64_t i = 0; i < op.count; ++i) {
    float& moment = *workspace.floats(op.second_moment + i);
    moment = std::abs(moment);
  }
}

TEST_P(ProgramLaunchTest, AdamW) {
  for (const uint64_t count : {uint64_t{3000}, uint64_t{3001}}) {  // in whole vectors, and not
    for (const float finite : {1.0f, 0.0f}) {
      for (const LearningRate rate : {LearningRate::kActor, LearningRate::kCritic}) {
        Trial trial;
        const AdamWOp op = add_adamw(trial, count, rate, finite);
        trial.run(GetParam(), op, kRounding, Precision::kFp32,
                  [&](Workspace& workspace) { prepare_adamw(op, workspace); });
      }
    }
  }
}

TEST_P(ProgramLaunchTest, VerdictOfAdamW) {
  for (const float loss : {1.0f, NAN}) {
    for (const bool opens : {true, false}) {
      for (const float max_norm : {0.0f, 0.5f}) {
        for (const float gradient : {1.0f, INFINITY}) {
          Trial trial;
          AdamWOp op = add_adamw(trial, 300001, LearningRate::kCritic, opens ? 0.0f : 1.0f);
          op.opens = opens;
          op.max_norm = max_norm;
          trial.run(GetParam(), op, kRounding, Precision::kFp32, [&](Workspace& workspace) {
            prepare_adamw(op, workspace);
            *workspace.floats(op.loss) = loss;
            workspace.floats(op.gradient)[300000] *= gradient;
          });
        }
      }
    }
  }
}

// Rows in whole vectors and not, short and too long for registers, of zeros, and without a length.
TEST_P(ProgramLaunchTest, AdamWOfRows) {
  in_each_storage(GetParam(), kRounding, [&](Precision precision, double tolerance) {
    for (const LearningRate rate : {LearningRate::kActor, LearningRate::kCritic}) {
      for (const int odd : {0, 1}) {
        Trial trial;
        const uint64_t count = 7 * 132 + 2 * 2048 + 12 + 3 * 136 + 1024 + odd;
        AdamWOp op = add_adamw(trial, count, rate);
        op.rows = {{0, 7, 132, 1.0f},
                   {924, 2, 2048, 4.0f},
                   {5020, 1, 12, 0.0f},
                   {5032, 3, 136, 2.0f},
                   {5440, 1, 1024 + odd, 1.0f}};
        trial.run(GetParam(), op, tolerance, precision, [&](Workspace& workspace) {
          prepare_adamw(op, workspace);
          for (const Operand operand : {op.parameters, op.gradient, op.first_moment}) {
            std::fill_n(workspace.floats(operand + 132), 132, 0.0f);  // has no direction
          }
        });
      }
    }
  });
}

// More rows than a device takes at once.
TEST_P(ProgramLaunchTest, AdamWOfManyRows) {
  constexpr int kRows = 700, kWidth = 516;
  Trial trial;
  AdamWOp op = add_adamw(trial, kRows * kWidth, LearningRate::kCritic);
  op.rows = {{0, kRows, kWidth, 1.0f}};
  trial.run(GetParam(), op, kRounding, Precision::kFp32,
            [&](Workspace& workspace) { prepare_adamw(op, workspace); });
}

// Where products read copies of parameters, the step renews them; the target's, too.
TEST_P(ProgramLaunchTest, ProductsReadTheParametersThatAdamWLeft) {
  constexpr int kM = 24, kN = 40, kK = 32;
  in_each_storage(GetParam(), 5e-6, [&](Precision precision, double tolerance) {
    for (const bool of_target : {false, true}) {
      SCOPED_TRACE(of_target ? "target" : "parameters");
      Trial trial;
      trial.with.critic_learning_rate = trial.with.target_rate = 0.5f;  // steps that show
      const AdamWOp step = add_adamw(trial, kK * kN, LearningRate::kCritic);
      GemmOp product{};
      product.m = kM;
      product.n = kN;
      product.k = kK;
      product.count = 1;
      product.a_stride = kK;
      product.b_stride = product.c_stride = kN;
      product.a = trial.add_activation("a", kM * kK);
      product.b = of_target ? step.target : step.parameters;
      product.c = trial.add("c", kM * kN);
      trial.run_all(GetParam(), {step, product}, tolerance, precision,
                    [&](Workspace& workspace) { prepare_adamw(step, workspace); });
    }
  });
}

TEST_P(ProgramLaunchTest, Temperature) {
  for (const float log_probability : {3.0f, INFINITY}) {
    for (const float finite : {1.0f, 0.0f}) {
      Trial trial;
      TemperatureOp op{};
      op.rows = 3001;
      op.log_probability = trial.add("log_probability", 3001, 1, log_probability);
      op.log_alpha = trial.add("log_alpha", 1, 0, -3);
      op.first_moment = trial.add("first_moment", 1);
      op.second_moment = trial.add("second_moment", 1, 0, 0.5f);
      op.step = trial.add_counter("step");
      op.finite = trial.add("finite", 1, 0, finite);
      op.constants = {0.9f, 0.95f, 0};
      op.target_entropy = -4;
      op.loss = trial.add("loss", 1);
      op.alpha = trial.add("alpha", 1);
      op.gradient = trial.add("gradient", 1);
      trial.run(GetParam(), op, kRounding);
    }
  }
}

TEST_P(ProgramLaunchTest, Statistics) {
  for (const float finite : {1.0f, 0.0f}) {
    Trial trial;
    StatisticsOp op;
    for (int i = 0; i < 12; ++i) op.folds.push_back(static_cast<Fold>(i % 3));
    op.scalars = trial.add("scalars", 12);
    op.totals = trial.add("totals", 14);
    op.finite = trial.add("finite", 1, 0, finite);
    trial.run(GetParam(), op, 0);
  }
}

}  // namespace
}  // namespace millrace
