// Matrix products, by the vendor's library or, without it or where it knows no way, by our own
// kernel: a block computes one 128 x 128 tile of one product, 32 of k at
// a time through two buffers in shared memory; the next piece is on its way to registers while the
// tensor cores (or multiply-adds) work on this one. Few tiles with a long k, as weight gradients
// have, are split along k; the pieces are added up in order.
#include <algorithm>

#include "gemm_math.cuh"
#include "kernel_launch.cuh"
#include "program_cuda.cuh"

namespace millrace {
namespace {

constexpr int kVector = 4;          // floats of one wide load
constexpr int kWantedBlocks = 264;  // two for each multiprocessor of the largest cards
constexpr int kLeastKTiles = 8;     // of a piece; below, adding the pieces up costs more
constexpr int kAddThreads = 256;

struct Product {
  int m, n, k;
  FloatSource a, b;
  float* c;
  int a_stride, b_stride, c_stride;
  u64 a_distance, b_distance, c_distance;
  int pieces, k_of_a_piece;  // k_of_a_piece is a multiple of kTileK
  int is_a_aligned, is_b_aligned;
};

// One tile on its way from a row-major matrix to shared memory, through registers, where it is
// rounded. Elements outside the matrix are zero.
template <class Math, int kOuter, int kInner, int kStride>
class TileTransfer {
 public:
  // `outer` and `inner` are what is left of the matrix from the tile's corner.
  __device__ void fetch(const float* from, int stride, int outer, int inner, bool is_aligned) {
    is_aligned_ = is_aligned;
    if (is_aligned) {
#pragma unroll
      for (int i = 0; i < kOwn / kVector; ++i) {
        const int at = (i * kGemmThreads + static_cast<int>(threadIdx.x)) * kVector;
        const int row = at / kInner, column = at % kInner;
        float4 piece = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row < outer && column < inner) {
          piece = *reinterpret_cast<const float4*>(from + static_cast<u64>(row) * stride + column);
        }
        values_[i * kVector] = piece.x;
        values_[i * kVector + 1] = piece.y;
        values_[i * kVector + 2] = piece.z;
        values_[i * kVector + 3] = piece.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const int at = i * kGemmThreads + static_cast<int>(threadIdx.x);
        const int row = at / kInner, column = at % kInner;
        values_[i] =
            row < outer && column < inner ? from[static_cast<u64>(row) * stride + column] : 0.0f;
      }
    }
  }

  __device__ void store(typename Math::Stored* to) const {
    if (is_aligned_) {
#pragma unroll
      for (int i = 0; i < kOwn / kVector; ++i) {
        const int at = (i * kGemmThreads + static_cast<int>(threadIdx.x)) * kVector;
        typename Math::Stored* place = to + at / kInner * kStride + at % kInner;
#pragma unroll
        for (int j = 0; j < kVector; ++j) place[j] = Math::stored(values_[i * kVector + j]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const int at = i * kGemmThreads + static_cast<int>(threadIdx.x);
        to[at / kInner * kStride + at % kInner] = Math::stored(values_[i]);
      }
    }
  }

 private:
  static constexpr int kOwn = kOuter * kInner / kGemmThreads;
  float values_[kOwn];
  bool is_aligned_;
};

template <class Math, bool kTransposeA, bool kTransposeB>
struct Tiles {
  static constexpr int kOuterA = kTransposeA ? kTileK : kTileM;
  static constexpr int kInnerA = kTransposeA ? kTileM : kTileK;
  static constexpr int kOuterB = kTransposeB ? kTileN : kTileK;
  static constexpr int kInnerB = kTransposeB ? kTileK : kTileN;
  static constexpr int kFloatsA = kOuterA * stride_a<Math, kTransposeA>();
  static constexpr int kFloatsB = kOuterB * stride_b<Math, kTransposeB>();
  using TransferA = TileTransfer<Math, kOuterA, kInnerA, stride_a<Math, kTransposeA>()>;
  using TransferB = TileTransfer<Math, kOuterB, kInnerB, stride_b<Math, kTransposeB>()>;
  // Two buffers of both.
  static constexpr size_t kBytes = 2 * (kFloatsA + kFloatsB) * sizeof(typename Math::Stored);
};

// Block (tile of n, tile of m, product and piece).
template <class Math, bool kTransposeA, bool kTransposeB>
__global__ void __launch_bounds__(kGemmThreads) multiply(const Product p, float* pieces) {
  using Shape = Tiles<Math, kTransposeA, kTransposeB>;
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
  const float* a = p.a.get() + product * p.a_distance;
  const float* b = p.b.get() + product * p.b_distance;

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
  float* c =
      is_whole ? p.c + product * p.c_distance : pieces + static_cast<u64>(blockIdx.z) * p.m * p.n;
  const int stride = is_whole ? p.c_stride : p.n;
  math.visit([&](int row, int column, float value) {
    const int m = first_m + row, n = first_n + column;
    if (m < p.m && n < p.n) c[static_cast<u64>(m) * stride + n] = value;
  });
}

// Block (elements, product).
__global__ void __launch_bounds__(kAddThreads) add_pieces(const Product p, const float* pieces) {
  const u64 size = static_cast<u64>(p.m) * p.n;
  const u64 i = static_cast<u64>(blockIdx.x) * kAddThreads + threadIdx.x;
  if (i >= size) return;
  pieces += blockIdx.y * p.pieces * size + i;
  float sum = 0.0f;
  for (int piece = 0; piece < p.pieces; ++piece) sum += pieces[piece * size];
  p.c[blockIdx.y * p.c_distance + i / p.n * p.c_stride + i % p.n] = sum;
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
bool is_aligned(const FloatSource& first, int stride, u64 distance, int inner) {
  return reinterpret_cast<uintptr_t>(first.known) % sizeof(float4) == 0 &&
         first.offset % kVector == 0 && stride % kVector == 0 && distance % kVector == 0 &&
         inner % kVector == 0;
}

template <class Math, bool kTransposeA, bool kTransposeB>
cudaError_t launch_product(const CudaFrame& frame, const GemmOp& op, const Product& product) {
  const dim3 grid(static_cast<unsigned>(tiles_of(op.n, kTileN)),
                  static_cast<unsigned>(tiles_of(op.m, kTileM)),
                  static_cast<unsigned>(op.count * product.pieces));
  const cudaError_t code =
      launch_kernel(frame.stream, grid, kGemmThreads, Tiles<Math, kTransposeA, kTransposeB>::kBytes,
                    multiply<Math, kTransposeA, kTransposeB>, product, frame.scratch);
  if (code != cudaSuccess || product.pieces == 1) return code;
  const u64 size = static_cast<u64>(op.m) * op.n;
  return launch_kernel(frame.stream,
                       dim3(blocks_for(size, kAddThreads), static_cast<unsigned>(op.count)),
                       kAddThreads, 0, add_pieces, product, frame.scratch);
}

template <class Math>
cudaError_t launch_product(const CudaFrame& frame, const GemmOp& op, const Product& product) {
  if (op.transpose_a) {
    return op.transpose_b ? launch_product<Math, true, true>(frame, op, product)
                          : launch_product<Math, true, false>(frame, op, product);
  }
  return op.transpose_b ? launch_product<Math, false, true>(frame, op, product)
                        : launch_product<Math, false, false>(frame, op, product);
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
  if (frame.library != nullptr && !has_input) {
    const cudaError_t code =
        frame.library->multiply(frame.stream, op, frame.precision, frame.floats(op.a),
                                frame.floats(op.b), frame.floats(op.c), frame.scratch);
    if (code != cudaErrorNotSupported) return code;
  }
  const Split split = split_of(op);
  Product product{};
  product.m = op.m;
  product.n = op.n;
  product.k = op.k;
  product.a = frame.source(op.a);
  product.b = frame.source(op.b);
  product.c = frame.floats(op.c);
  product.a_stride = op.a_stride;
  product.b_stride = op.b_stride;
  product.c_stride = op.c_stride;
  product.a_distance = op.a_distance;
  product.b_distance = op.b_distance;
  product.c_distance = op.c_distance;
  product.pieces = split.pieces;
  product.k_of_a_piece = split.k_of_a_piece;
  product.is_a_aligned =
      is_aligned(product.a, op.a_stride, op.a_distance, op.transpose_a ? op.m : op.k);
  product.is_b_aligned =
      is_aligned(product.b, op.b_stride, op.b_distance, op.transpose_b ? op.k : op.n);
  switch (frame.precision) {
    case Precision::kFp32:
      return launch_product<Fp32Math>(frame, op, product);
    case Precision::kTf32:
      return launch_product<Tf32Math>(frame, op, product);
    case Precision::kBf16:
      return launch_product<Bf16Math>(frame, op, product);
  }
  return cudaErrorInvalidValue;
}

}  // namespace millrace
