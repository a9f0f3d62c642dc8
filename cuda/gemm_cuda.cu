// Matrix products, by the vendor's library or, without it or where it knows no way, by our own
// kernel: a block computes one 128 x 128 tile of one product, 32 of k at
// a time through two buffers in shared memory; the next piece is on its way to registers while the
// tensor cores (or multiply-adds) work on this one. Few tiles with a long k, as weight gradients
// have, are split along k; the pieces are added up in order.
#include <algorithm>

#include "gemm_math.cuh"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"
#include "stored.cuh"

namespace millrace {
namespace {

constexpr int kWantedBlocks = 264;  // two for each multiprocessor of the largest cards
constexpr int kLeastKTiles = 8;     // of a piece; below, adding the pieces up costs more
constexpr int kAddThreads = 256;

struct Product {
  int m, n, k;
  FloatSource a, b;  // of floats, or both of bf16
  void* c;
  int is_c_bf16, accumulates, has_relu;
  const float* bias;  // or null
  int a_stride, b_stride, c_stride;
  u64 a_distance, b_distance, c_distance;
  int pieces, k_of_a_piece;  // k_of_a_piece is a multiple of kTileK
  int is_a_aligned, is_b_aligned;

  template <class Stored>
  __device__ void put(Stored* place, float value) const {
    *place = static_cast<Stored>(accumulates ? to_float(*place) + value : value);
  }
  __device__ void put(int product, int row, int column, float value) const {
    if (bias != nullptr) value += bias[product * n + column];
    if (has_relu && value < 0.0f) value = 0.0f;
    const u64 at = product * c_distance + static_cast<u64>(row) * c_stride + column;
    if (is_c_bf16) {
      put(static_cast<Bf16*>(c) + at, value);
    } else {
      put(static_cast<float*>(c) + at, value);
    }
  }
};

// One tile on its way from a row-major matrix to shared memory, through registers, where it is
// rounded. Elements outside the matrix are zero.
template <class Math, class Source, int kOuter, int kInner, int kStride>
class TileTransfer {
 public:
  // `outer` and `inner` are what is left of the matrix from the tile's corner.
  __device__ void fetch(const Source* from, int stride, int outer, int inner, bool is_aligned) {
    is_aligned_ = is_aligned;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      Pack pack{};
      if (is_aligned) {
        const int at = (i * kGemmThreads + static_cast<int>(threadIdx.x)) * kVector;
        const int row = at / kInner, column = at % kInner;
        if (row < outer && column < inner) {
          pack = *reinterpret_cast<const Pack*>(from + static_cast<u64>(row) * stride + column);
        }
      } else {
#pragma unroll
        for (int j = 0; j < kVector; ++j) {
          const int at = (i * kVector + j) * kGemmThreads + static_cast<int>(threadIdx.x);
          const int row = at / kInner, column = at % kInner;
          if (row < outer && column < inner) {
            pack.values[j] = from[static_cast<u64>(row) * stride + column];
          }
        }
      }
      packs_[i] = pack;
    }
  }

  __device__ void store(typename Math::Stored* to) const {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
#pragma unroll
      for (int j = 0; j < kVector; ++j) {
        const int aligned = (i * kGemmThreads + static_cast<int>(threadIdx.x)) * kVector + j;
        const int single = (i * kVector + j) * kGemmThreads + static_cast<int>(threadIdx.x);
        const int at = is_aligned_ ? aligned : single;
        to[at / kInner * kStride + at % kInner] = Math::stored(to_float(packs_[i].values[j]));
      }
    }
  }

 private:
  static constexpr int kVector = 16 / sizeof(Source);
  static constexpr int kPacks = kOuter * kInner / kGemmThreads / kVector;
  using Pack = Packed<Source, kVector>;
  Pack packs_[kPacks];
  bool is_aligned_;
};

template <class Math, class Source, bool kTransposeA, bool kTransposeB>
struct Tiles {
  static constexpr int kOuterA = kTransposeA ? kTileK : kTileM;
  static constexpr int kInnerA = kTransposeA ? kTileM : kTileK;
  static constexpr int kOuterB = kTransposeB ? kTileN : kTileK;
  static constexpr int kInnerB = kTransposeB ? kTileK : kTileN;
  static constexpr int kFloatsA = kOuterA * stride_a<Math, kTransposeA>();
  static constexpr int kFloatsB = kOuterB * stride_b<Math, kTransposeB>();
  using TransferA = TileTransfer<Math, Source, kOuterA, kInnerA, stride_a<Math, kTransposeA>()>;
  using TransferB = TileTransfer<Math, Source, kOuterB, kInnerB, stride_b<Math, kTransposeB>()>;
  // Two buffers of both.
  static constexpr size_t kBytes = 2 * (kFloatsA + kFloatsB) * sizeof(typename Math::Stored);
};

// Block (tile of n, tile of m, product and piece).
template <class Math, class Source, bool kTransposeA, bool kTransposeB>
__global__ void __launch_bounds__(kGemmThreads) multiply(const Product p, float* pieces) {
  wait_for_kernels_before();
  using Shape = Tiles<Math, Source, kTransposeA, kTransposeB>;
  using Stored = typename Math::Stored;
  extern __shared__ float4 shared[];
  Stored* const a_tiles = reinterpret_cast<Stored*>(shared);
  Stored* const b_tiles = a_tiles + 2 * Shape::kFloatsA;
  const int first_n = static_cast<int>(blockIdx.x) * kTileN;
  const int first_m = static_cast<int>(blockIdx.y) * kTileM;
  const int product = static_cast<int>(blockIdx.z) / p.pieces;
  const int piece = static_cast<int>(blockIdx.z) % p.pieces;
  const int first_k = piece * p.k_of_a_piece;
  const int last_k = min(first_k + p.k_of_a_piece, p.k);
  const Source* a = reinterpret_cast<const Source*>(p.a.get()) + product * p.a_distance;
  const Source* b = reinterpret_cast<const Source*>(p.b.get()) + product * p.b_distance;

  typename Shape::TransferA transfer_a;
  typename Shape::TransferB transfer_b;
  const auto fetch = [&](int k) {
    const int m_left = p.m - first_m, n_left = p.n - first_n, k_left = last_k - k;
    if (kTransposeA) {
      transfer_a.fetch(a + static_cast<u64>(k) * p.a_stride + first_m, p.a_stride, k_left, m_left,
                       p.is_a_aligned);
    } else {
      transfer_a.fetch(a + static_cast<u64>(first_m) * p.a_stride + k, p.a_stride, m_left, k_left,
                       p.is_a_aligned);
    }
    if (kTransposeB) {
      transfer_b.fetch(b + static_cast<u64>(first_n) * p.b_stride + k, p.b_stride, n_left, k_left,
                       p.is_b_aligned);
    } else {
      transfer_b.fetch(b + static_cast<u64>(k) * p.b_stride + first_n, p.b_stride, k_left, n_left,
                       p.is_b_aligned);
    }
  };
  const auto store = [&](int buffer) {
    transfer_a.store(a_tiles + buffer * Shape::kFloatsA);
    transfer_b.store(b_tiles + buffer * Shape::kFloatsB);
  };

  Math math;
  fetch(first_k);
  store(0);
  __syncthreads();
  int buffer = 0;
  for (int k = first_k; k < last_k; k += kTileK) {
    const bool has_next = k + kTileK < last_k;
    if (has_next) fetch(k + kTileK);
    math.template multiply<kTransposeA, kTransposeB>(a_tiles + buffer * Shape::kFloatsA,
                                                     b_tiles + buffer * Shape::kFloatsB);
    buffer = 1 - buffer;
    if (has_next) store(buffer);
    __syncthreads();
  }

  const bool is_whole = p.pieces == 1;
  pieces += static_cast<u64>(blockIdx.z) * p.m * p.n;
  math.visit([&](int row, int column, float value) {
    const int m = first_m + row, n = first_n + column;
    if (m >= p.m || n >= p.n) return;
    if (is_whole) {
      p.put(product, m, n, value);
    } else {
      pieces[static_cast<u64>(m) * p.n + n] = value;
    }
  });
}

// Block (elements, product).
__global__ void __launch_bounds__(kAddThreads) add_pieces(const Product p, const float* pieces) {
  wait_for_kernels_before();
  const u64 size = static_cast<u64>(p.m) * p.n;
  const u64 i = static_cast<u64>(blockIdx.x) * kAddThreads + threadIdx.x;
  if (i >= size) return;
  pieces += blockIdx.y * p.pieces * size + i;
  float sum = 0.0f;
  for (int piece = 0; piece < p.pieces; ++piece) sum += pieces[piece * size];
  p.put(static_cast<int>(blockIdx.y), static_cast<int>(i / p.n), static_cast<int>(i % p.n), sum);
}

int tiles_of(int extent, int tile) { return (extent + tile - 1) / tile; }

struct Split {
  int pieces, k_of_a_piece;
};

Split split_of(const GemmOp& op) {
  const int tiles = tiles_of(op.m, kTileM) * tiles_of(op.n, kTileN) * op.count;
  const int k_tiles = tiles_of(op.k, kTileK);
  int pieces = std::min(kWantedBlocks / tiles, k_tiles / kLeastKTiles);
  pieces = std::max(pieces, 1);
  const int k_tiles_of_a_piece = tiles_of(k_tiles, pieces);
  return {tiles_of(k_tiles, k_tiles_of_a_piece), k_tiles_of_a_piece * kTileK};
}

// Whether every row of every tile begins at a multiple of 16 bytes and is read in whole vectors.
// An input does wherever it lies, if its offset does (host_inputs.h).
bool is_aligned(const FloatSource& first, int stride, u64 distance, int inner, int vector) {
  const u64 elements = static_cast<u64>(vector);
  return reinterpret_cast<uintptr_t>(first.known) % 16 == 0 && first.offset % elements == 0 &&
         stride % vector == 0 && distance % elements == 0 && inner % vector == 0;
}

template <class Math, class Source, bool kTransposeA, bool kTransposeB>
cudaError_t launch_product(const CudaFrame& frame, const GemmOp& op, const Product& product) {
  const dim3 grid(static_cast<unsigned>(tiles_of(op.n, kTileN)),
                  static_cast<unsigned>(tiles_of(op.m, kTileM)),
                  static_cast<unsigned>(op.count * product.pieces));
  const cudaError_t code = launch_kernel(
      frame.stream, grid, kGemmThreads, Tiles<Math, Source, kTransposeA, kTransposeB>::kBytes,
      multiply<Math, Source, kTransposeA, kTransposeB>, product, frame.scratch);
  if (code != cudaSuccess || product.pieces == 1) return code;
  const u64 size = static_cast<u64>(op.m) * op.n;
  return launch_kernel(frame.stream,
                       dim3(blocks_for(size, kAddThreads), static_cast<unsigned>(op.count)),
                       kAddThreads, 0, add_pieces, product, frame.scratch);
}

template <class Math, class Source>
cudaError_t launch_product(const CudaFrame& frame, const GemmOp& op, Product product) {
  constexpr int kVector = 16 / sizeof(Source);
  product.is_a_aligned =
      is_aligned(product.a, op.a_stride, op.a_distance, op.transpose_a ? op.m : op.k, kVector);
  product.is_b_aligned =
      is_aligned(product.b, op.b_stride, op.b_distance, op.transpose_b ? op.k : op.n, kVector);
  if (op.transpose_a) {
    return op.transpose_b ? launch_product<Math, Source, true, true>(frame, op, product)
                          : launch_product<Math, Source, true, false>(frame, op, product);
  }
  return op.transpose_b ? launch_product<Math, Source, false, true>(frame, op, product)
                        : launch_product<Math, Source, false, false>(frame, op, product);
}

FloatSource known(const void* address) { return {static_cast<const float*>(address), nullptr, 0}; }

// Two operands that are, or have a copy, in bf16 are read so; else both are read as floats.
ProductOperands operands_of(const CudaFrame& frame, const GemmOp& op) {
  const auto narrow = [&](Operand operand) -> const void* {
    return frame.is_bf16(operand) ? frame.at<Bf16>(operand) : frame.product_copy(operand);
  };
  const void *a = narrow(op.a), *b = narrow(op.b);
  const bool is_narrow = a != nullptr && b != nullptr;
  return {is_narrow ? a : frame.floats(op.a),
          is_narrow ? b : frame.floats(op.b),
          frame.is_bf16(op.c) ? static_cast<void*>(frame.at<Bf16>(op.c)) : frame.floats(op.c),
          is_narrow,
          frame.is_bf16(op.c),
          frame.is_bf16(op.c) ? static_cast<const void*>(frame.product_copy(op.bias))
                              : frame.floats(op.bias)};
}

// Whether the library finds the bias, if there is one, as it wants it.
bool has_bias_for_library(const GemmOp& op, const ProductOperands& operands) {
  constexpr size_t kBiasBytes = 16;
  return !op.bias.used() || (operands.bias != nullptr && are_aligned({operands.bias}, kBiasBytes));
}

}  // namespace

u64 scratch_floats(const GemmOp& op) {
  const int pieces = split_of(op).pieces;
  const u64 own = pieces == 1 ? 0 : static_cast<u64>(op.m) * op.n * op.count * pieces;
  return std::max<u64>(own, CublasLt::kWorkspaceBytes / sizeof(float));
}

cudaError_t launch_op(const CudaFrame& frame, const GemmOp& op) {
  // A library keeps the address that it was given; and what computes a product must not depend on
  // how its operands are found.
  const bool has_input = op.a.is_input() || op.b.is_input();
  const ProductOperands operands = has_input ? ProductOperands{} : operands_of(frame, op);
  if (!has_input && !operands.are_bf16 && (frame.is_bf16(op.a) || frame.is_bf16(op.b))) {
    return cudaErrorInvalidValue;  // bf16 times floats
  }
  if (frame.library != nullptr && !has_input && has_bias_for_library(op, operands)) {
    const cudaError_t code =
        frame.library->multiply(frame.stream, op, frame.precision, operands, frame.scratch);
    if (code != cudaErrorNotSupported) return code;
  }
  const Split split = split_of(op);
  Product product{};
  product.m = op.m;
  product.n = op.n;
  product.k = op.k;
  product.a = has_input ? frame.source(op.a) : known(operands.a);
  product.b = has_input ? frame.source(op.b) : known(operands.b);
  product.c = has_input ? frame.floats(op.c) : operands.c;
  product.is_c_bf16 = operands.is_result_bf16 ? 1 : 0;
  product.a_stride = op.a_stride;
  product.b_stride = op.b_stride;
  product.c_stride = op.c_stride;
  product.a_distance = op.a_distance;
  product.b_distance = op.b_distance;
  product.c_distance = op.c_distance;
  product.accumulates = op.accumulates ? 1 : 0;
  product.has_relu = op.has_relu ? 1 : 0;
  product.bias = frame.floats(op.bias);
  product.pieces = split.pieces;
  product.k_of_a_piece = split.k_of_a_piece;
  switch (frame.precision) {
    case Precision::kFp32:
      return launch_product<Fp32Math, float>(frame, op, product);
    case Precision::kTf32:
      return launch_product<Tf32Math, float>(frame, op, product);
    case Precision::kBf16:
      return operands.are_bf16 ? launch_product<Bf16Math, Bf16>(frame, op, product)
                               : launch_product<Bf16Math, float>(frame, op, product);
  }
  return cudaErrorInvalidValue;
}

}  // namespace millrace
