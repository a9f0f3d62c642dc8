// Tests for npz.h: an archive made by numpy, round trips, damage.
#include "npz.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "hex_bytes.h"
#include "status.h"
#include "temporary_folder.h"

namespace millrace {
namespace {

using Bytes = std::vector<uint8_t>;

// numpy 2.4: savez_compressed(fps=50, table=[[1, 2, 3], [-4, 5.5, 6]], floats=float32 0..3,
// halves=two float16 zeros, fortran=a 2 x 3 array in Fortran order)
constexpr const char* kNumpy =
    "504b03042d0000000800000021003ae5dda1ffffffffffffffff070014006670732e6e707901001000880000"
    "000000000046000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a1aea3a09e965f"
    "54529498179f5f94920a12774bcc294e058a17672416a402f91a9a3a0ab50a14012e2306080000504b03042d"
    "000000080000002100ec6a7064ffffffffffffffff090014007461626c652e6e707901001000b00000000000"
    "00005b000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a1aea3a09e965f545294"
    "98179f5f94920a12774bcc294e058a17672416a402f91a463a0ac69a3a0ab50a64032e0630f8600fa1191c20"
    "140794163800a1c5a07c090700504b03042d000000080000002100523313fbffffffffffffffff0a00140066"
    "6c6f6174732e6e70790100100090000000000000004e000000000000009bec17ea1b10c9c850c650ad9e925a"
    "9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91a263a"
    "9a3a0ab50a14002e063068b007120e40e40000504b03042d00000008000000210099cb13b9ffffffffffffff"
    "ff0a00140068616c7665732e6e707901001000840000000000000047000000000000009bec17ea1b10c9c850"
    "c650ad9e925a9c5ca46ea5a06e9366a4aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416"
    "a402f91a463a9a3a0ab50a14002e06200000504b03042d000000080000002100e4c80660ffffffffffffffff"
    "0b001400666f727472616e2e6e707901001000b00000000000000057000000000000009bec17ea1b10c9c850"
    "c650ad9e925a9c5ca46ea5a06e9366a1aea3a09e965f54529498179f5f94920a120f292a4d050a17672416a4"
    "02b91a463a0ac69a3a0ab50ae4032e0614c0e100a13fd8436801289f014a8b380000504b01022d032d000000"
    "0800000021003ae5dda146000000880000000700000000000000000000008001000000006670732e6e707950"
    "4b01022d032d000000080000002100ec6a70645b000000b000000009000000000000000000000080017f0000"
    "007461626c652e6e7079504b01022d032d000000080000002100523313fb4e000000900000000a0000000000"
    "000000000000800115010000666c6f6174732e6e7079504b01022d032d00000008000000210099cb13b94700"
    "0000840000000a000000000000000000000080019f01000068616c7665732e6e7079504b01022d032d000000"
    "080000002100e4c8066057000000b00000000b0000000000000000000000800122020000666f727472616e2e"
    "6e7079504b0506000000000500050015010000b60200000000";

// A file of this test's own, gone afterwards.
struct TemporaryFile {
  TemporaryFolder folder;
  std::string path = folder / "test.npz";

  explicit TemporaryFile(const Bytes& bytes = {}) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
};

std::string error_of(const std::string& path, const std::vector<std::string>& names) {
  try {
    read_npz(path, names);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), Code::kInvalid);
    const std::string text = failure.what();
    const std::string start = "motion file '" + path + "': ";
    EXPECT_EQ(text.find(start), 0u) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text.substr(start.size());
  }
  return "no error";
}

TEST(Npz, ReadsWhatNumpyWrote) {
  const TemporaryFile file(from_hex(kNumpy));
  const NpyArrays arrays = read_npz(file.path, {"fps", "table", "floats", "missing"});
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_TRUE(arrays.at("fps").shape.empty());
  EXPECT_EQ(arrays.at("fps").values, (std::vector<double>{50}));
  EXPECT_EQ(arrays.at("table").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(arrays.at("table").values, (std::vector<double>{1, 2, 3, -4, 5.5, 6}));
  EXPECT_EQ(arrays.at("floats").values, (std::vector<double>{0, 1, 2, 3}));
}

TEST(Npz, SaysWhatItCannotRead) {
  const TemporaryFile file(from_hex(kNumpy));
  EXPECT_EQ(error_of(file.path, {"halves"}),
            "array halves: its type '<f2' is not one of <f4, <f8, <i4, <i8");
  EXPECT_EQ(error_of(file.path, {"fortran"}),
            "array fortran: it is in Fortran order; save numpy.ascontiguousarray of it");
  EXPECT_EQ(error_of("/nowhere/a.npz", {"fps"}), "is not there or is no regular file");
  EXPECT_EQ(error_of(testing::TempDir(), {"fps"}), "is not there or is no regular file");
  const TemporaryFile empty;
  EXPECT_EQ(error_of(empty.path, {"fps"}), "it is no npz archive");
  const TemporaryFile text(Bytes(500, 'x'));
  EXPECT_EQ(error_of(text.path, {"fps"}), "it is no npz archive");
}

TEST(Npz, WritesWhatItReads) {
  const TemporaryFile file;
  const NpyArrays arrays = {{"fps", {{}, {50}}},
                            {"joint_pos", {{2, 3}, {1, -2, 0.25, 4, 5, 6}}},
                            {"long_name_of_an_array", {{1, 1, 1, 1}, {-1e-20f}}}};
  write_npz(file.path, arrays);
  const NpyArrays read = read_npz(file.path, {"fps", "joint_pos", "long_name_of_an_array"});
  ASSERT_EQ(read.size(), 3u);
  for (const auto& [name, array] : arrays) {
    EXPECT_EQ(read.at(name).shape, array.shape) << name;
    EXPECT_EQ(read.at(name).values, array.values) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(file.path + ".part"));
}

TEST(Npz, SaysWhyItCannotWrite) {
  const auto error_of = [](const std::string& path) -> std::string {
    try {
      write_npz(path, {{"fps", {{}, {50}}}});
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), Code::kInvalid);
      return failure.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of("/nowhere/a.npz"),
            "'/nowhere/a.npz' cannot be written: No such file or directory");
  const TemporaryFolder folder;
  const std::string taken = folder / "taken.npz";
  std::filesystem::create_directory(taken);
  EXPECT_EQ(error_of(taken), "'" + taken + "' cannot be written: Is a directory");
  EXPECT_FALSE(std::filesystem::exists(taken + ".part"));
}

// Truncated or with one byte changed, a file is read right or refused, never anything else.
TEST(Npz, SurvivesDamage) {
  const Bytes whole = from_hex(kNumpy);
  const std::vector<std::string> names = {"fps", "table", "floats"};
  int refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    Bytes changed = whole;
    changed[at] = static_cast<uint8_t>(changed[at] ^ 0x55);
    for (const Bytes& bytes : {changed, Bytes(whole.begin(), whole.begin() + long(at))}) {
      const TemporaryFile file(bytes);
      try {
        const NpyArrays arrays = read_npz(file.path, names);
        if (arrays.count("table")) {
          EXPECT_EQ(arrays.at("table").values[3], -4) << "at byte " << at;
        }
      } catch (const Failure& failure) {
        EXPECT_EQ(failure.code(), Code::kInvalid);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace millrace
