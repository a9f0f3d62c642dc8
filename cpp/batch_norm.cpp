#include "batch_norm.h"

#include <algorithm>
#include <vector>

#include "batch_norm_body.h"
#include "lanes.h"

namespace millrace {
namespace {

constexpr int kSumRows = 128;  // added up in single precision at a time

// What the rows of one group need to know of its columns.
struct Columns {
  const float *mean, *inverse_deviation, *gain, *shift;
  bool has_relu;

  MR_INLINE BatchNormColumn at(int i) const {
    return {mean[i], inverse_deviation[i], gain[i], shift[i]};
  }
};

// The group's, with room for the inverse deviations.
Columns columns_of(const BatchNorm& norm, const CpuFrame& frame, int group,
                   std::vector<float>& inverse_deviation) {
  const size_t first = static_cast<size_t>(group) * norm.width;
  const float* variance = frame.floats(norm.variance) + first;
  inverse_deviation.resize(norm.width);
  for (int i = 0; i < norm.width; ++i) {
    inverse_deviation[i] = batch_norm_inverse_deviation(variance[i]);
  }
  const float* affine = frame.floats(norm.affine) + 2 * first;
  return {frame.floats(norm.mean) + first, inverse_deviation.data(), affine, affine + norm.width,
          norm.has_relu};
}

const float* input_row(const BatchNorm& norm, const CpuFrame& frame, int group, int row) {
  return frame.floats(norm.input) + group * norm.input_distance +
         static_cast<size_t>(row) * norm.input_stride;
}

MR_CLONES void add_row(const float* __restrict x, float* __restrict sums, int width) {
  for (int i = 0; i < width; ++i) sums[i] += x[i];
}

// Distances from a row of them: no difference of large numbers.
MR_CLONES void add_distances(const float* __restrict x, const float* __restrict pivot,
                             float* __restrict sums, float* __restrict squares, int width) {
  for (int i = 0; i < width; ++i) {
    const float distance = x[i] - pivot[i];
    sums[i] += distance;
    squares[i] += distance * distance;
  }
}

MR_CLONES void normalise_row(const float* __restrict x, const Columns& columns,
                             const float* __restrict residual, float* __restrict output,
                             int width) {
  const Columns c = columns;
  for (int i = 0; i < width; ++i) {
    const BatchNormColumn column = c.at(i);
    output[i] = batch_norm_value(column, batch_norm_normalised(column, x[i]), c.has_relu);
  }
  if (residual == nullptr) return;
  for (int i = 0; i < width; ++i) output[i] += residual[i];
}

MR_CLONES void add_gradients(const float* __restrict x, const Columns& columns,
                             const float* __restrict gradient, float* __restrict gradients,
                             float* __restrict slopes, int width) {
  const Columns c = columns;
  for (int i = 0; i < width; ++i) {
    const BatchNormColumn column = c.at(i);
    const float normalised = batch_norm_normalised(column, x[i]);
    const float before_relu = batch_norm_before_relu(column, normalised, gradient[i], c.has_relu);
    gradients[i] += before_relu;
    slopes[i] += before_relu * normalised;
  }
}

MR_CLONES void input_gradient_row(const float* __restrict x, const Columns& columns,
                                  const float* __restrict gradient,
                                  const float* __restrict mean_gradients,
                                  const float* __restrict mean_slopes, float* __restrict result,
                                  int width) {
  const Columns c = columns;
  for (int i = 0; i < width; ++i) {
    const BatchNormColumn column = c.at(i);
    const float normalised = batch_norm_normalised(column, x[i]);
    const float before_relu = batch_norm_before_relu(column, normalised, gradient[i], c.has_relu);
    result[i] = batch_norm_input_gradient(column, normalised, before_relu, mean_gradients[i],
                                          mean_slopes[i]);
  }
}

// means[i] = mean over rows of what add(row, sums) adds to sums[i].
template <class Add>
std::vector<float> mean_of_rows(int rows, int width, const Add& add) {
  std::vector<double> totals(width, 0.0);
  std::vector<float> sums(width);
  for (int first = 0; first < rows; first += kSumRows) {
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (int r = first; r < std::min(first + kSumRows, rows); ++r) add(r, sums.data());
    for (int i = 0; i < width; ++i) totals[i] += sums[i];
  }
  std::vector<float> means(width);
  for (int i = 0; i < width; ++i) means[i] = static_cast<float>(totals[i] / rows);
  return means;
}

void find_statistics(const BatchNorm& norm, const CpuFrame& frame, int group) {
  const int width = norm.width;
  const float* pivot = input_row(norm, frame, group, 0);
  const std::vector<float> means = mean_of_rows(norm.rows, 2 * width, [&](int r, float* sums) {
    add_distances(input_row(norm, frame, group, r), pivot, sums, sums + width, width);
  });
  const size_t first = static_cast<size_t>(group) * width;
  for (int i = 0; i < width; ++i) {
    const float distance = means[i];
    const float variance = means[width + i] - distance * distance;
    frame.floats(norm.mean)[first + i] = pivot[i] + distance;
    frame.floats(norm.variance)[first + i] = variance < 0.0f ? 0.0f : variance;  // NaN stays
  }
}

// Of one group; `sums` are the means over rows of the gradient, then of the slope.
void write_input_gradient(const BatchNormBackwardOp& op, const CpuFrame& frame, int group,
                          const Columns& columns, const std::vector<float>& sums) {
  const BatchNorm& norm = op.norm;
  const int width = norm.width;
  const bool is_shared = norm.input_distance == 0;
  std::vector<float> result(width);  // the gradient may lie where the input's goes
  for (int r = 0; r < norm.rows; ++r) {
    const size_t from = (static_cast<size_t>(r) * norm.groups + group) * width;
    input_gradient_row(input_row(norm, frame, group, r), columns, frame.floats(op.gradient) + from,
                       sums.data(), sums.data() + width, result.data(), width);
    float* to =
        frame.floats(op.input_gradient) + (is_shared ? static_cast<size_t>(r) * width : from);
    if (is_shared && group > 0) {
      add_row(result.data(), to, width);
    } else {
      std::copy(result.begin(), result.end(), to);
    }
  }
}

}  // namespace

void execute(const BatchNormForwardOp& op, const CpuFrame& frame) {
  const BatchNorm& norm = op.norm;
  std::vector<float> inverse_deviation;
  for (int g = 0; g < norm.groups; ++g) {
    if (norm.is_training) find_statistics(norm, frame, g);
    const Columns columns = columns_of(norm, frame, g, inverse_deviation);
    for (int r = 0; r < norm.rows; ++r) {
      const size_t at = (static_cast<size_t>(r) * norm.groups + g) * norm.width;
      normalise_row(input_row(norm, frame, g, r), columns,
                    op.residual.used() ? frame.floats(op.residual) + at : nullptr,
                    frame.floats(op.output) + at, norm.width);
    }
  }
}

void execute(const BatchNormBackwardOp& op, const CpuFrame& frame) {
  const BatchNorm& norm = op.norm;
  const int width = norm.width;
  std::vector<float> inverse_deviation;
  for (int g = 0; g < norm.groups; ++g) {
    const Columns columns = columns_of(norm, frame, g, inverse_deviation);
    std::vector<float> sums(2 * width, 0.0f);
    if (norm.is_training || op.affine_gradient.used()) {
      sums = mean_of_rows(norm.rows, 2 * width, [&](int r, float* both) {
        const float* gradient =
            frame.floats(op.gradient) + (static_cast<size_t>(r) * norm.groups + g) * width;
        add_gradients(input_row(norm, frame, g, r), columns, gradient, both, both + width, width);
      });
    }
    if (op.affine_gradient.used()) {
      float* affine = frame.floats(op.affine_gradient) + static_cast<size_t>(g) * 2 * width;
      for (int i = 0; i < width; ++i) {
        affine[i] = sums[width + i] * static_cast<float>(norm.rows);
        affine[width + i] = sums[i] * static_cast<float>(norm.rows);
      }
    }
    if (!op.input_gradient.used()) continue;
    if (!norm.is_training) std::fill(sums.begin(), sums.end(), 0.0f);
    write_input_gradient(op, frame, g, columns, sums);
  }
}

void execute(const RunningStatisticsOp& op, const CpuFrame& frame) {
  if (frame.scalar(op.finite) != 1.0f) return;
  const float* batch = frame.floats(op.batch);
  float* running = frame.floats(op.running);
  for (uint64_t i = 0; i < 2 * op.count; ++i) {
    const float value = i < op.count ? batch[i] : batch[i] * op.correction;
    running[i] += op.share * (value - running[i]);
  }
}

}  // namespace millrace
