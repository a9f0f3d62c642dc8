// BenchPhysics: the worker pool and PhysicsMujoco (with everything a tick does: swapping slabs,
// writing the state fields) against a bare threaded loop of the same mj_steps that owns one mjData
// per environment and extracts nothing. Same model, start states, actions and thread count; the two
// alternate round by round, and their final states are compared bit for bit.
#pragma once

#include <nlohmann/json.hpp>

#include "sim_backend.h"

namespace millrace {

// request: {model_file, envs, ticks, rounds, threads, seed}; all but model_file have defaults.
// Returns {envs, ticks, rounds, threads, substeps, mujoco, ours_ms: […], bare_ms: […] (per round),
// ours_median_ms, bare_median_ms, ratio (median of bare / ours), ours_env_steps_per_s,
// bare_env_steps_per_s, nefc_mean, ncon_mean, identical}.
nlohmann::json bench_physics(const nlohmann::json& request);

}  // namespace millrace
