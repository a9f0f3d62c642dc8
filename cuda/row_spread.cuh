// Rows spread over teams of lanes: a warp, or half of one, keeps a row in registers. A block's
// teams compute the rows of one chunk, team by team; sums over rows add up in a fixed order, each
// team's, then the block's teams'.
#pragma once

#include <algorithm>

#include "stored.cuh"
#include "warp_team.cuh"

namespace millrace {

constexpr int kRowWarps = 4;  // of a block
constexpr int kRowThreads = kRowWarps * kWarp;
constexpr int kHalfWarp = kWarp / 2;
// Of a launch: as many as a large card's multiprocessors hold at once, since those behind them
// would begin anew.
constexpr int kForwardWarps = 4096, kBackwardWarps = 2112;

// How a row is spread over kLanes lanes. kIsExact: it fills the lanes' columns, in whole vectors.
template <int kOwnColumns, int kVectorColumns, bool kIsExactFit, int kTeamLanes = kWarp>
struct Spread {
  static constexpr int kOwn = kOwnColumns, kVector = kVectorColumns, kLanes = kTeamLanes;
  static constexpr bool kIsExact = kIsExactFit;
  static constexpr int kTeamsOfAWarp = kWarp / kLanes, kTeams = kRowThreads / kLanes;
  using Team = TeamOf<kLanes>;
  template <class Stored>
  using Own = OwnRow<Stored, kOwn, kVector, kLanes>;
  __host__ __device__ static constexpr int width(int width) {
    return kIsExact ? kOwn * kLanes : width;
  }
  __device__ static int team_of_block() { return static_cast<int>(threadIdx.x) / kLanes; }
  __device__ static int team_of_warp() { return team_of_block() % kTeamsOfAWarp; }
};

// A team's rows of the block's chunk: row(first) for every `first` from `begin`, kTeams further on
// each time, which is its warp's first one. Teams of a warp do everything together, so one that is
// past the end stays with the last row, and leaves nothing of it.
template <class Row>
struct TeamRows {
  int begin, end;

  __device__ TeamRows(int rows, int rows_of_a_chunk) {
    const int chunk = static_cast<int>(blockIdx.x) * rows_of_a_chunk;
    begin = chunk + Row::team_of_block() - Row::team_of_warp();
    end = min(chunk + rows_of_a_chunk, rows);
  }
  __device__ bool has_row(int first) const {
    return Row::kTeamsOfAWarp == 1 || first + Row::team_of_warp() < end;
  }
  __device__ int row(int first) const {
    return Row::kTeamsOfAWarp == 1 ? first : min(first + Row::team_of_warp(), end - 1);
  }
};

// A gradient that no row has adds nothing to sums.
template <int kOwn>
__device__ void forget(float (&gradient)[kOwn]) {
#pragma unroll(kOwn <= 32 ? kOwn : 1)
  for (int i = 0; i < kOwn; ++i) gradient[i] = 0.0f;
}

// Of one kind of sums, over the block's teams, that share; `room` holds a row per team.
template <class Row>
__device__ void add_teams(const float (&own)[Row::kOwn], float share, float* room, int width,
                          float* sums) {
  float* const row = room + Row::team_of_block() * width;
  __syncthreads();  // the room is free
  each_own_column<Row::kOwn, Row::kVector>(typename Row::Team(), width,
                                           [&](int at, int column) { row[column] = own[at]; });
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kRowThreads) {
    float sum = room[i];
    for (int other = 1; other < Row::kTeams; ++other) sum += room[other * width + i];
    sums[i] = share * sum;
  }
}

// Calls launch(spread) for rows of this width: exact ones for the widths of common networks.
template <class Launch>
cudaError_t with_spread(int width, const Launch& launch) {
  switch (width) {
    case 24 * kWarp:
      return launch(Spread<24, 4, true>());
    case 16 * kWarp:
      return launch(Spread<16, 4, true>());
    case 12 * kWarp:
      return launch(Spread<12, 4, true>());
    case 16 * kHalfWarp:
      return launch(Spread<16, 4, true, kHalfWarp>());
    case 12 * kHalfWarp:
      return launch(Spread<12, 4, true, kHalfWarp>());
    case 8 * kHalfWarp:
      return launch(Spread<8, 4, true, kHalfWarp>());
    default:
      break;
  }
  if (width <= 8 * kWarp) return launch(Spread<8, 1, false>());
  if (width <= 32 * kWarp) return launch(Spread<32, 1, false>());
  if (width <= 128 * kWarp) return launch(Spread<128, 1, false>());
  return cudaErrorInvalidValue;
}

// A chunk of fewer rows would not pay for its parameters.
constexpr int kLeastRowsOfAChunk = 8;

struct Chunks {
  int count, rows_of_each;
};

// For chunks of `warps`, over all groups, of a launch of about `wanted`.
inline Chunks row_chunks(int rows, int warps, int wanted) {
  const int most = std::max(wanted / warps, 1);
  const int rows_of_each = std::max((rows + most - 1) / most, kLeastRowsOfAChunk);
  return {(rows + rows_of_each - 1) / rows_of_each, rows_of_each};
}

}  // namespace millrace
