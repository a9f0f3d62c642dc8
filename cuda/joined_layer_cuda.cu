// A row is the work of a cluster: each of its blocks computes a fourth of the columns, keeps the
// weights for them in shared memory as long as it lives, and takes one tile of 64 rows after the
// other. Two teams of eight warps take turns, so that one computes while the other waits: for its
// rows, for the products, for the other blocks' sums of its rows, for its results to be stored. One
// more warp fetches rows ahead.
//
// A team's tile: products into registers; linear values, rounded, out; sums of values and squares
// to all blocks of the cluster; mean and deviation from theirs; the activation out.
#include "dense_layer_body.h"
#include "hopper.cuh"
#include "joined_layer.cuh"
#include "kernel_launch.cuh"
#include "stored.cuh"

namespace millrace {
namespace {

constexpr int kParts = 4;  // blocks of a cluster
constexpr int kTileRows = 64;
constexpr int kTeams = 2, kTeamThreads = 256, kTeamWarps = kTeamThreads / kWarp;
constexpr int kThreads = kTeams * kTeamThreads + kWarp;
constexpr int kGroupWarps = 4;  // that multiply together; a team's two groups share its columns
constexpr int kGroups = kTeamWarps / kGroupWarps;
constexpr int kGroupColumns = 96, kColumns = kGroups * kGroupColumns;  // of a group, of a block
constexpr int kWidth = kParts * kColumns;
constexpr int kStages = 3;  // tiles of rows in shared memory
constexpr int kStepInputs = 16;
// Inputs lie in boxes of 64 and one of 16 columns, zero where there are no more.
constexpr int kBoxes = 2, kBoxInputs = 64, kMostInputs = kBoxes * kBoxInputs + kStepInputs;
// Results go out in boxes of 32 columns, so that two groups of warps share none.
constexpr int kResultBox = 32;
constexpr int kStatistics = kParts * kGroups;  // of a row: sums of so many parts
// With fewer, few blocks have several tiles, and the weights do not pay for their way.
constexpr int kLeastTilesOfACluster = 6;

// A block's shared memory. What the bulk engine swizzles lies at multiples of 1,024 bytes.
struct Shared {
  template <int kRows>
  struct Inputs {
    Bf16 boxes[kBoxes][kRows][kBoxInputs];
    Bf16 last[kRows][kStepInputs];
  };
  struct Results {
    Bf16 boxes[kColumns / kResultBox][kTileRows][kResultBox];
  };

  Inputs<kColumns> weights;
  Inputs<kTileRows> rows[kStages];
  Results linear[kTeams], output[kTeams];
  // Of a tile's rows, in turns: sum and squares of row r of a warp and of row r + 8.
  float4 statistics[kTeams][2][kStatistics][kTileRows / 2];
  float4 affine[kColumns / 2];  // half of gain, gain, shift, shift: of two columns
  float2 bias[kColumns / 2];
  u64 has_rows[kStages], has_room[kStages], has_weights;
  u64 has_multiplied[kTeams];
  u64 has_statistics[kTeams][2][kGroupWarps];
};

struct Maps {
  CUtensorMap rows, last_of_rows, weights, last_of_weights, linear, output;
};

struct Joined {
  int rows, groups, keeps_linear;
  const float *bias, *gain, *shift;
  float *mean, *inverse_deviation;
};

// Which tiles of which network this block's cluster computes.
struct Share {
  int group, first, apart, tiles, first_column;

  explicit __device__ Share(const Joined& layer) {
    const int cluster = static_cast<int>(blockIdx.x) / kParts;
    const int clusters = static_cast<int>(gridDim.x) / kParts;
    group = cluster % layer.groups;
    first = cluster / layer.groups;
    apart = clusters / layer.groups;
    tiles = (layer.rows + kTileRows - 1) / kTileRows;
    first_column = static_cast<int>(rank_in_cluster()) * kColumns;
  }
};

template <class Inputs>
__device__ void fetch(Inputs& to, const CUtensorMap& boxes, const CUtensorMap& last, u64* barrier,
                      int second, int third) {
  barrier_expect(barrier, sizeof(Inputs));
  for (int i = 0; i < kBoxes; ++i) {
    load_box(to.boxes[i], boxes, barrier, i * kBoxInputs, second, third);
  }
  load_box(to.last, last, barrier, kBoxes * kBoxInputs, second, third);
}

// By one thread.
__device__ void fetch_all(Shared& shared, const Maps& maps, const Share& share) {
  fetch(shared.weights, maps.weights, maps.last_of_weights, &shared.has_weights, share.first_column,
        share.group);
  int turn = 0;
  for (int tile = share.first; tile < share.tiles; tile += share.apart, ++turn) {
    const int stage = turn % kStages;
    if (turn >= kStages) barrier_wait(&shared.has_room[stage], (turn / kStages - 1) % 2);
    fetch(shared.rows[stage], maps.rows, maps.last_of_rows, &shared.has_rows[stage], 0,
          tile * kTileRows);
  }
}

// One thread of a team.
class Worker {
 public:
  static constexpr int kSums = kGroupColumns / 2;  // of a thread: two rows, a fourth of the columns

  __device__ Worker(Shared& shared, int team)
      : shared_(shared),
        team_(team),
        // Of a warp, to the compiler's knowledge: it then computes addresses once for all lanes.
        group_(__shfl_sync(
            ~0u, static_cast<int>(threadIdx.x) % kTeamThreads / (kWarp * kGroupWarps), 0)),
        warp_(static_cast<int>(threadIdx.x) / kWarp % kGroupWarps),
        lane_(static_cast<int>(threadIdx.x) % kWarp) {
    const int column = group_ * kGroupColumns + lane_ % 4 * 2;
    bias_ = shared.bias + column / 2;
    affine_ = shared.affine + column / 2;
    // As store_matrices wants it: lane i has the address of a row of the i / 8th matrix. Pieces of
    // 16 bytes trade places within a row of 64, by every second row.
    const int row = warp_ * 16 + lane_ / 8 % 2 * 8 + lane_ % 8;
    const u32 piece = static_cast<u32>(lane_ / 16 ^ (row / 2 % 4));
    place_ = static_cast<u32>(group_ * (kGroupColumns / kResultBox) * kTileRows + row) *
                 (kResultBox * sizeof(Bf16)) +
             piece * 16;
    const auto own_columns = [&](auto& rows) {
      return shared_address(rows[group_ * kGroupColumns]);
    };
    weights_ = matrix_of(own_columns(shared.weights.boxes[0]), Swizzle::k128);
    last_weights_ = matrix_of(own_columns(shared.weights.last), Swizzle::k32);
    rows_ = matrix_of(shared_address(shared.rows[0].boxes), Swizzle::k128);
    last_rows_ = matrix_of(shared_address(shared.rows[0].last), Swizzle::k32);
  }

  __device__ void compute_all(const Maps& maps, const Joined& layer, const Share& share) {
    barrier_wait(&shared_.has_weights, 0);
    int turn = team_;
    for (int tile = share.first + team_ * share.apart; tile < share.tiles;
         tile += kTeams * share.apart, turn += kTeams) {
      compute(maps, layer, share, tile, turn);
    }
    if (leads()) wait_for_stores();
  }

 private:
  __device__ bool leads() const { return threadIdx.x % kTeamThreads == 0; }
  __device__ void sync_team() const { sync_threads(1 + team_, kTeamThreads); }

  __device__ void compute(const Maps& maps, const Joined& layer, const Share& share, int tile,
                          int turn) {
    const int own_turn = turn / kTeams;  // of the team
    float sums[kSums];
    // In order of turns, so that has_rows is never two phases from the one that is waited for.
    if (turn > 0) barrier_wait(&shared_.has_multiplied[1 - team_], (turn - 1) / kTeams % 2);
    multiply(turn % kStages, turn / kStages % 2, sums);
    if (lane_ == 0) barrier_arrive(&shared_.has_multiplied[team_]);
    if (leads()) wait_for_stores_read();
    sync_team();
    float2 upper{}, lower{};  // of row lane / 4 of the warp's, and of the one 8 further on
    keep_linear(sums, layer.keeps_linear != 0, &upper, &lower);
    send(own_turn % 2, upper, lower);
    if (layer.keeps_linear) store(shared_.linear[team_], maps.linear, share, tile);
    receive(own_turn, &upper, &lower);
    const LayerNorm above = norm_of(upper), below = norm_of(lower);
    if (rank_in_cluster() == 0 && group_ == 0 && lane_ % 4 == 0) {
      const int row = tile * kTileRows + warp_ * 16 + lane_ / 4;
      put(layer, share.group, row, above);
      put(layer, share.group, row + 8, below);
    }
    activate(sums, above, below);
    store(shared_.output[team_], maps.output, share, tile);
  }

  __device__ void multiply(int stage, int parity, float (&sums)[kSums]) {
    barrier_wait(&shared_.has_rows[stage], static_cast<u32>(parity));
    const u32 further = static_cast<u32>(stage) * sizeof(shared_.rows[0]);
    begin_products();
#pragma unroll
    for (int input = 0; input < kBoxes * kBoxInputs; input += kStepInputs) {
      const u32 box = input / kBoxInputs, within = input % kBoxInputs * sizeof(Bf16);
      add_products(sums, moved(rows_, further + box * sizeof(shared_.rows[0].boxes[0]) + within),
                   moved(weights_, box * sizeof(shared_.weights.boxes[0]) + within), input > 0);
    }
    add_products(sums, moved(last_rows_, further), last_weights_, true);
    finish_products();
    if (lane_ == 0) barrier_arrive(&shared_.has_room[stage]);
  }

  // Rounds the linear values into shared memory, adds the bias to them here, and sums.
  __device__ void keep_linear(float (&sums)[kSums], bool keeps, float2* upper, float2* lower) {
    const u32 place = shared_address(&shared_.linear[team_]) + place_;
#pragma unroll
    for (int at = 0; at < kSums; at += 8) {  // sixteen columns
      u32 pairs[4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float* const v = sums + at + 4 * half;
        pairs[2 * half] = pair_of(v[0], v[1]);
        pairs[2 * half + 1] = pair_of(v[2], v[3]);
        const float2 bias = bias_[at + 4 * half];
        v[0] += bias.x, v[1] += bias.y, v[2] += bias.x, v[3] += bias.y;
        upper->x += v[0] + v[1];
        upper->y += v[0] * v[0];
        upper->y += v[1] * v[1];
        lower->x += v[2] + v[3];
        lower->y += v[2] * v[2];
        lower->y += v[3] * v[3];
      }
      if (keeps) store_matrices(place_of(place, at), pairs);
    }
  }

  __device__ void activate(const float (&sums)[kSums], const LayerNorm& above,
                           const LayerNorm& below) {
    const u32 place = shared_address(&shared_.output[team_]) + place_;
    const float upper_offset = -above.mean * above.inverse_deviation;
    const float lower_offset = -below.mean * below.inverse_deviation;
#pragma unroll
    for (int at = 0; at < kSums; at += 8) {
      u32 pairs[4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* const v = sums + at + 4 * half;
        const float4 affine = affine_[at + 4 * half];
        const auto output = [&](float value, float scale, float offset, float gain, float shift) {
          return layer_rough_silu((value * scale + offset) * gain + shift);
        };
        const auto row = [&](const float* values, float scale, float offset) {
          return pair_of(output(values[0], scale, offset, affine.x, affine.z),
                         output(values[1], scale, offset, affine.y, affine.w));
        };
        pairs[2 * half] = row(v, above.inverse_deviation, upper_offset);
        pairs[2 * half + 1] = row(v + 2, below.inverse_deviation, lower_offset);
      }
      store_matrices(place_of(place, at), pairs);
    }
  }

  __device__ static u32 pair_of(float first, float second) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<const u32*>(&pair);
  }

  // Of sixteen columns of this group of warps: half a row of a box.
  __device__ static u32 place_of(u32 first, int at) {
    constexpr u32 kBoxBytes = kTileRows * kResultBox * sizeof(Bf16);
    return (at % 16 == 0 ? first : first ^ 32) + static_cast<u32>(at / 16) * kBoxBytes;
  }

  // A row's sums over this group's columns to all blocks; a phase for every second turn, since
  // another block may be one turn ahead.
  __device__ void send(int phase, float2 upper, float2 lower) {
    for (int apart = 1; apart < 4; apart *= 2) {
      for (float* sum : {&upper.x, &upper.y, &lower.x, &lower.y}) {
        *sum += __shfl_xor_sync(~0u, *sum, apart);
      }
    }
    u64* const barrier = &shared_.has_statistics[team_][phase][warp_];
    if (group_ == 0 && lane_ == 0) {
      barrier_expect(barrier, kStatistics * (kWarp / 4) * sizeof(float4));
    }
    const int part = static_cast<int>(rank_in_cluster()) * kGroups + group_;
    put_at_peer(static_cast<u32>(lane_ % kParts),
                &shared_.statistics[team_][phase][part][own_row()], barrier,
                {upper.x, upper.y, lower.x, lower.y});
  }

  __device__ void receive(int own_turn, float2* upper, float2* lower) {
    const int phase = own_turn % 2;
    barrier_wait(&shared_.has_statistics[team_][phase][warp_], static_cast<u32>(own_turn / 2 % 2));
    *upper = *lower = {};
#pragma unroll
    for (int part = 0; part < kStatistics; ++part) {
      const float4 sums = shared_.statistics[team_][phase][part][own_row()];
      upper->x += sums.x;
      upper->y += sums.y;
      lower->x += sums.z;
      lower->y += sums.w;
    }
  }

  __device__ int own_row() const { return warp_ * (kWarp / 4) + lane_ / 4; }

  __device__ static LayerNorm norm_of(float2 sums) {
    return layer_rough_norm(sums.x, sums.y, 1.0f / kWidth);
  }

  __device__ static void put(const Joined& layer, int group, int row, const LayerNorm& norm) {
    if (row >= layer.rows) return;
    const u64 at = static_cast<u64>(row) * layer.groups + group;
    layer.mean[at] = norm.mean;
    layer.inverse_deviation[at] = norm.inverse_deviation;
  }

  // The tile of the whole team.
  __device__ void store(const Shared::Results& results, const CUtensorMap& map, const Share& share,
                        int tile) {
    fence_for_engine();
    sync_team();
    if (!leads()) return;
    int column = share.first_column;
    for (const auto& box : results.boxes) {
      store_box(map, box, column, share.group, tile * kTileRows);
      column += kResultBox;
    }
    end_stores();
  }

  Shared& shared_;
  const int team_, group_, warp_, lane_;
  const float2* bias_;
  const float4* affine_;
  u32 place_;
  u64 weights_, last_weights_, rows_, last_rows_;
};

__global__ void __launch_bounds__(kThreads, 1)
    join_layer(const __grid_constant__ Maps maps, const Joined layer) {
  wait_for_kernels_before();
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const Share share(layer);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      barrier_init(&shared.has_rows[i], 1);
      barrier_init(&shared.has_room[i], kTeamWarps);
    }
    barrier_init(&shared.has_weights, 1);
    for (u64& barrier : shared.has_multiplied) barrier_init(&barrier, kTeamWarps);
    for (auto& of_team : shared.has_statistics) {
      for (auto& of_phase : of_team) {
        for (u64& barrier : of_phase) barrier_init(&barrier, 1);
      }
    }
    barriers_are_made();
  }
  for (int i = static_cast<int>(threadIdx.x); i < kColumns / 2; i += kThreads) {
    const int at = share.group * kWidth + share.first_column + 2 * i;
    shared.bias[i] = {layer.bias[at], layer.bias[at + 1]};
    shared.affine[i] = {0.5f * layer.gain[at], 0.5f * layer.gain[at + 1], 0.5f * layer.shift[at],
                        0.5f * layer.shift[at + 1]};
  }
  __syncthreads();
  sync_cluster();  // no block writes to one whose barriers are not made
  const int team = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / kTeamThreads, 0);
  if (team < kTeams) {
    Worker(shared, team).compute_all(maps, layer, share);
  } else if (threadIdx.x == kTeams * kTeamThreads) {
    fetch_all(shared, maps, share);
  }
  __syncwarp();
  sync_cluster();  // nor to one that has ended
}

// ---- of the host ----

using Encode = decltype(&cuTensorMapEncodeTiled);

// Null where the driver has none.
Encode encoder() {
  static const Encode found = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const bool is_found =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                         cudaEnableDefault, &result) == cudaSuccess &&
        result == cudaDriverEntryPointSuccess;
    return is_found ? reinterpret_cast<Encode>(function) : nullptr;
  }();
  return found;
}

// A matrix of bf16: [third][second][first], and the box that is copied at once.
struct Matrix {
  const void* address;
  int first, second, third;
  u64 second_distance, third_distance;  // elements
  int box_first, box_second, box_third;
  CUtensorMapSwizzle swizzle;
};

bool encode(const Matrix& matrix, CUtensorMap* map) {
  const auto wide = [](int extent) { return static_cast<cuuint64_t>(extent); };
  const auto narrow = [](int extent) { return static_cast<cuuint32_t>(extent); };
  const cuuint64_t extents[] = {wide(matrix.first), wide(matrix.second), wide(matrix.third)};
  const cuuint64_t distances[] = {matrix.second_distance * sizeof(Bf16),
                                  matrix.third_distance * sizeof(Bf16)};
  const cuuint32_t box[] = {narrow(matrix.box_first), narrow(matrix.box_second),
                            narrow(matrix.box_third)};
  const cuuint32_t steps[] = {1, 1, 1};
  return encoder()(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<void*>(matrix.address),
                   extents, distances, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, matrix.swizzle,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

struct Places {
  const Bf16 *input, *weights, *linear, *output;
};

bool encode_all(const DenseForwardOp& op, const Places& places, Maps* maps) {
  const GemmOp& product = op.product;
  const LayerForwardOp& layer = op.layer;
  const u64 stride = static_cast<u64>(product.a_stride);
  const auto rows = [&](int columns, CUtensorMapSwizzle swizzle) {
    return Matrix{places.input, product.k, 1, layer.rows, stride,
                  stride,       columns,   1, kTileRows,  swizzle};
  };
  const auto weights = [&](int columns, CUtensorMapSwizzle swizzle) {
    return Matrix{places.weights,
                  product.k,
                  layer.width,
                  layer.groups,
                  static_cast<u64>(product.k),
                  static_cast<u64>(layer.width) * product.k,
                  columns,
                  kColumns,
                  1,
                  swizzle};
  };
  const auto results = [&](const Bf16* address) {
    return Matrix{address,
                  layer.width,
                  layer.groups,
                  layer.rows,
                  static_cast<u64>(layer.width),
                  static_cast<u64>(layer.groups) * layer.width,
                  kResultBox,
                  1,
                  kTileRows,
                  CU_TENSOR_MAP_SWIZZLE_64B};
  };
  return encode(rows(kBoxInputs, CU_TENSOR_MAP_SWIZZLE_128B), &maps->rows) &&
         encode(rows(kStepInputs, CU_TENSOR_MAP_SWIZZLE_32B), &maps->last_of_rows) &&
         encode(weights(kBoxInputs, CU_TENSOR_MAP_SWIZZLE_128B), &maps->weights) &&
         encode(weights(kStepInputs, CU_TENSOR_MAP_SWIZZLE_32B), &maps->last_of_weights) &&
         encode(results(places.linear), &maps->linear) &&
         encode(results(places.output), &maps->output);
}

cudaError_t launch(const CudaFrame& frame, const DenseForwardOp& op, const Places& places) {
  constexpr size_t kBytes = sizeof(Shared);
  cudaLaunchAttribute attributes[2]{};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {kParts, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kParts);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kBytes;
  config.stream = frame.stream;
  config.attrs = attributes;
  config.numAttrs = 1;
  static const int clusters = [&] {
    int found = 0;
    const bool is_known =
        cudaFuncSetAttribute(join_layer, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(kBytes)) == cudaSuccess &&
        cudaOccupancyMaxActiveClusters(&found, join_layer, &config) == cudaSuccess;
    return is_known ? found : 0;
  }();
  const LayerForwardOp& layer = op.layer;
  const int of_a_group = clusters / layer.groups;
  const int tiles = (layer.rows + kTileRows - 1) / kTileRows;
  if (of_a_group == 0 || tiles < kLeastTilesOfACluster * of_a_group) return cudaErrorNotSupported;
  Maps maps;
  if (!encode_all(op, places, &maps)) return cudaErrorNotSupported;
  config.gridDim = dim3(static_cast<unsigned>(kParts * layer.groups * of_a_group));
  config.numAttrs = 2;
  const Joined joined = {layer.rows,
                         layer.groups,
                         places.linear != places.output ? 1 : 0,
                         frame.floats(layer.bias),
                         frame.floats(layer.gain),
                         frame.floats(layer.shift),
                         frame.floats(layer.mean),
                         frame.floats(layer.inverse_deviation)};
  return cudaLaunchKernelEx(&config, join_layer, maps, joined);
}

// All networks read the same rows of few inputs, as the first layer's do, and their weights lie
// side by side.
bool is_first_layer(const DenseForwardOp& op) {
  const GemmOp& product = op.product;
  const u64 weights = static_cast<u64>(op.layer.width) * static_cast<u64>(product.k);
  const bool is_one_product = product.count == 1 && product.n == op.layer.groups * op.layer.width;
  const bool are_several = product.count == op.layer.groups && product.n == op.layer.width &&
                           product.a_distance == 0 && product.b_distance == weights;
  return (is_one_product || are_several) && !product.transpose_a && product.transpose_b &&
         product.k <= kMostInputs && product.b_stride == product.k;
}

}  // namespace

bool can_join_layers() {
  static const bool answer = [] {
    int device = 0, major = 0, minor = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) ==
               cudaSuccess &&
           major == 9 && minor == 0 && encoder() != nullptr;
  }();
  return answer;
}

cudaError_t launch_joined_layer(const CudaFrame& frame, const DenseForwardOp& op) {
  constexpr size_t kEngineBytes = 16;  // of addresses and distances
  const GemmOp& product = op.product;
  if (!frame.is_bf16(product.a) || !frame.is_bf16(product.c) || !frame.is_bf16(op.layer.output) ||
      op.layer.width != kWidth || !is_first_layer(op)) {
    return cudaErrorNotSupported;
  }
  const Places places = {frame.at<Bf16>(product.a), frame.product_copy(product.b),
                         frame.at<Bf16>(product.c), frame.at<Bf16>(op.layer.output)};
  if (places.weights == nullptr ||
      !are_aligned({places.input, places.weights, places.linear, places.output}, kEngineBytes) ||
      product.a_stride * sizeof(Bf16) % kEngineBytes != 0 ||
      product.k * sizeof(Bf16) % kEngineBytes != 0) {
    return cudaErrorNotSupported;
  }
  return launch(frame, op, places);
}

}  // namespace millrace
