// Npz: numpy's archives of arrays (a zip of .npy files, stored or deflated), as far as motions need
// them: numbers in C order, read as doubles and written as float32. Files come from users, so every
// count is checked against what is there before it is used. Stateless; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace millrace {

struct NpyArray {
  std::vector<int64_t> shape;  // empty = a single number
  std::vector<double> values;
};

using NpyArrays = std::map<std::string, NpyArray>;

// The arrays of these names that the file has. Throws Failure(kInvalid) naming the file, the array
// and what is wrong.
NpyArrays read_npz(const std::string& path, const std::vector<std::string>& names);

// Replaces the file; nothing is left behind on failure. Throws Failure(kInvalid) naming the file
// and the system's reason.
void write_npz(const std::string& path, const NpyArrays& arrays);

}  // namespace millrace
