#include <dlfcn.h>
#include <library_types.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cublaslt_library.cuh"
#include "relaxed_capture.cuh"

namespace millrace {

// The library's interface as far as it is used here. Its objects are pointers, its enumerations
// integers, and all functions return a status that is zero for success.
constexpr int kSuccess = 0;
constexpr int kInvalidValue = 7, kArchitectureMismatch = 8, kNotSupported = 15;
constexpr int kComputeFp32 = 68, kComputeBf16 = 75, kComputeTf32 = 77;
constexpr int kDescriptionTransposeA = 3, kDescriptionTransposeB = 4;
constexpr int kDescriptionEpilogue = 7, kDescriptionBias = 8, kDescriptionBiasDistance = 10;
constexpr int kEpilogueRelu = 2, kEpilogueBias = 4, kEpilogueReluBias = 6;
constexpr int kDescriptionMultiprocessors = 15;
constexpr int kLayoutBatchCount = 5, kLayoutBatchDistance = 6;
constexpr int kPreferenceWorkspaceBytes = 1, kPreferenceReductionSchemes = 3;
constexpr int kPreferenceAlignmentA = 5;  // then B, C, D
constexpr int kMatrices = 4;
constexpr int kCandidates = 8;
constexpr uint32_t kReductionInComputeType = 2;  // partial sums in the workspace, added in order

struct Algorithm {
  uint64_t opaque[8];
};

struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

struct CublasLtApi {
  size_t (*version)();
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*create_description)(void** description, int compute_type, int scale_type);
  int (*destroy_description)(void* description);
  int (*set_description)(void* description, int attribute, const void* value, size_t bytes);
  int (*create_layout)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t stride);
  int (*destroy_layout)(void* layout);
  int (*set_layout)(void* layout, int attribute, const void* value, size_t bytes);
  int (*create_preference)(void** preference);
  int (*destroy_preference)(void* preference);
  int (*set_preference)(void* preference, int attribute, const void* value, size_t bytes);
  int (*find_algorithms)(void* handle, void* description, void* a, void* b, void* c, void* d,
                         void* preference, int wanted, Heuristic* found, int* count);
  int (*multiply)(void* handle, void* description, const void* alpha, const void* a, void* a_layout,
                  const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                  void* d, void* d_layout, const Algorithm* algorithm, void* workspace,
                  size_t workspace_bytes, cudaStream_t stream);
};

namespace {

// Where the loader looks, and where toolkits put it without telling the loader.
void* open_library() {
  for (const char* path : {"libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13",
                           "/usr/local/cuda/targets/x86_64-linux/lib/libcublasLt.so.13",
                           "libcublasLt.so.12", "/usr/local/cuda/lib64/libcublasLt.so.12",
                           "/usr/local/cuda/targets/x86_64-linux/lib/libcublasLt.so.12"}) {
    if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
  return *function != nullptr;
}

// Null where a function is missing.
const CublasLtApi* load() {
  static CublasLtApi api;
  void* library = open_library();
  const bool is_whole =
      library != nullptr && find(library, "cublasLtGetVersion", &api.version) &&
      find(library, "cublasLtCreate", &api.create) &&
      find(library, "cublasLtDestroy", &api.destroy) &&
      find(library, "cublasLtMatmulDescCreate", &api.create_description) &&
      find(library, "cublasLtMatmulDescDestroy", &api.destroy_description) &&
      find(library, "cublasLtMatmulDescSetAttribute", &api.set_description) &&
      find(library, "cublasLtMatrixLayoutCreate", &api.create_layout) &&
      find(library, "cublasLtMatrixLayoutDestroy", &api.destroy_layout) &&
      find(library, "cublasLtMatrixLayoutSetAttribute", &api.set_layout) &&
      find(library, "cublasLtMatmulPreferenceCreate", &api.create_preference) &&
      find(library, "cublasLtMatmulPreferenceDestroy", &api.destroy_preference) &&
      find(library, "cublasLtMatmulPreferenceSetAttribute", &api.set_preference) &&
      find(library, "cublasLtMatmulAlgoGetHeuristic", &api.find_algorithms) &&
      find(library, "cublasLtMatmul", &api.multiply);
  return is_whole ? &api : nullptr;
}

const CublasLtApi* loaded() {
  static const CublasLtApi* const api = load();
  return api;
}

int compute_type_of(Precision precision) {
  return precision == Precision::kFp32   ? kComputeFp32
         : precision == Precision::kTf32 ? kComputeTf32
                                         : kComputeBf16;
}

// Whether the library would not have it, as against: tried and failed.
bool is_refusal(int status) {
  return status == kInvalidValue || status == kArchitectureMismatch || status == kNotSupported;
}

// Of an address, in bytes, as far as algorithms care.
uint32_t alignment_of(const void* address) {
  constexpr uintptr_t kMost = 256;
  const uintptr_t bits = reinterpret_cast<uintptr_t>(address) | kMost;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

int multiprocessors_of_device() {
  static const int found = [] {
    int device = 0, count = 1;
    const bool is_known =
        cudaGetDevice(&device) == cudaSuccess &&
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess;
    return is_known ? count : 1;
  }();
  return found;
}

}  // namespace

// The library reads matrices column by column, so it sees ours transposed: it multiplies b' a' to
// c', its first matrix is our b.
struct ProductPlan {
  const CublasLtApi& api;
  void *description = nullptr, *first = nullptr, *second = nullptr, *result = nullptr;
  Heuristic choice{};

  explicit ProductPlan(const CublasLtApi& api) : api(api) {}
  ~ProductPlan() {
    if (description != nullptr) api.destroy_description(description);
    for (void* layout : {first, second, result}) {
      if (layout != nullptr) api.destroy_layout(layout);
    }
  }
  ProductPlan(const ProductPlan&) = delete;
  ProductPlan& operator=(const ProductPlan&) = delete;

  bool lay_out(void** layout, bool is_bf16, int rows, int columns, int stride, u64 distance,
               int count) const {
    const int64_t elements = static_cast<int64_t>(distance);
    return api.create_layout(layout, is_bf16 ? CUDA_R_16BF : CUDA_R_32F,
                             static_cast<uint64_t>(columns), static_cast<uint64_t>(rows),
                             stride) == kSuccess &&
           api.set_layout(*layout, kLayoutBatchCount, &count, sizeof(count)) == kSuccess &&
           api.set_layout(*layout, kLayoutBatchDistance, &elements, sizeof(elements)) == kSuccess;
  }

  // A bias lies in what the library calls columns: one number for each of our columns.
  bool describe_epilogue(const GemmOp& op) {
    if (!op.bias.used() && !op.has_relu) return true;
    const int epilogue = !op.bias.used() ? kEpilogueRelu
                         : op.has_relu   ? kEpilogueReluBias
                                         : kEpilogueBias;
    const int64_t distance = op.n;
    return api.set_description(description, kDescriptionEpilogue, &epilogue, sizeof(epilogue)) ==
               kSuccess &&
           (!op.bias.used() || op.count == 1 ||
            api.set_description(description, kDescriptionBiasDistance, &distance,
                                sizeof(distance)) == kSuccess);
  }

  bool point_to_bias(const void* bias) const {
    return bias == nullptr ||
           api.set_description(description, kDescriptionBias, &bias, sizeof(bias)) == kSuccess;
  }

  bool describe(const GemmOp& op, Precision precision, const ProductOperands& operands) {
    const int compute_type = operands.are_bf16 ? kComputeFp32 : compute_type_of(precision);
    const int transpose_first = op.transpose_b ? 1 : 0, transpose_second = op.transpose_a ? 1 : 0;
    const int a_rows = op.transpose_a ? op.k : op.m, a_columns = op.transpose_a ? op.m : op.k;
    const int b_rows = op.transpose_b ? op.n : op.k, b_columns = op.transpose_b ? op.k : op.n;
    return api.create_description(&description, compute_type, CUDA_R_32F) == kSuccess &&
           api.set_description(description, kDescriptionTransposeA, &transpose_first,
                               sizeof(transpose_first)) == kSuccess &&
           api.set_description(description, kDescriptionTransposeB, &transpose_second,
                               sizeof(transpose_second)) == kSuccess &&
           leave_room(op) && describe_epilogue(op) && point_to_bias(operands.bias) &&
           lay_out(&first, operands.are_bf16, b_rows, b_columns, op.b_stride, op.b_distance,
                   op.count) &&
           lay_out(&second, operands.are_bf16, a_rows, a_columns, op.a_stride, op.a_distance,
                   op.count) &&
           lay_out(&result, operands.is_result_bf16, op.m, op.n, op.c_stride, op.c_distance,
                   op.count);
  }

  // Small products come in numbers, of networks side by side and of weights beside inputs; each
  // takes about as long on half of the device, and then two run at once. (Longer ones did not
  // gain.)
  bool leave_room(const GemmOp& op) {
    constexpr int kTile = 64, kLongestSide = 1024;
    const int multiprocessors = multiprocessors_of_device();
    const auto tiles = [](int extent) { return (extent + kTile - 1) / kTile; };
    const bool is_small = std::max({op.m, op.n, op.k}) <= kLongestSide &&
                          tiles(op.m) * tiles(op.n) * op.count <= multiprocessors;
    const int wanted = multiprocessors / 2;
    return !is_small || api.set_description(description, kDescriptionMultiprocessors, &wanted,
                                            sizeof(wanted)) == kSuccess;
  }

  // Whether what is not a number stays one: some of the library's kernels take the larger of it and
  // zero, which is zero, and then no loss would show it.
  bool relu_keeps_nan(void* handle, const GemmOp& op, const ProductOperands& operands) const;

  // The algorithms that the heuristic names, the best first.
  std::vector<Heuristic> candidates(void* handle, const uint32_t (&alignments)[kMatrices]) const {
    void* preference = nullptr;
    if (api.create_preference(&preference) != kSuccess) return {};
    const uint64_t workspace_bytes = CublasLt::kWorkspaceBytes;
    bool is_set =
        api.set_preference(preference, kPreferenceWorkspaceBytes, &workspace_bytes,
                           sizeof(workspace_bytes)) == kSuccess &&
        api.set_preference(preference, kPreferenceReductionSchemes, &kReductionInComputeType,
                           sizeof(kReductionInComputeType)) == kSuccess;
    for (int i = 0; i < kMatrices; ++i) {
      is_set = is_set && api.set_preference(preference, kPreferenceAlignmentA + i, &alignments[i],
                                            sizeof(alignments[i])) == kSuccess;
    }
    std::vector<Heuristic> found(kCandidates);
    int count = 0;
    const bool is_found =
        is_set && api.find_algorithms(handle, description, first, second, result, result,
                                      preference, kCandidates, found.data(), &count) == kSuccess;
    api.destroy_preference(preference);
    found.resize(is_found ? static_cast<size_t>(count) : 0);
    return found;
  }

  // The first one that can be used.
  bool choose(void* handle, const GemmOp& op, const ProductOperands& operands,
              const uint32_t (&alignments)[kMatrices]) {
    for (const Heuristic& candidate : candidates(handle, alignments)) {
      choice = candidate;
      if (choice.status == kSuccess && (!op.has_relu || relu_keeps_nan(handle, op, operands))) {
        return true;
      }
    }
    return false;
  }
};

namespace {

// Zeroed memory of a trial, and the stream that it runs on.
class TrialMemory {
 public:
  TrialMemory() {
    is_good_ = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess;
  }
  ~TrialMemory() {
    for (void* block : blocks_) cudaFree(block);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;

  void* zeros(size_t bytes) {
    void* block = nullptr;
    is_good_ = is_good_ && cudaMalloc(&block, bytes) == cudaSuccess;
    if (!is_good_) return nullptr;
    blocks_.push_back(block);
    is_good_ = cudaMemsetAsync(block, 0, bytes, stream_) == cudaSuccess;
    return block;
  }
  bool copy(void* to, const void* from, size_t bytes) {
    is_good_ = is_good_ &&
               cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_) == cudaSuccess &&
               cudaStreamSynchronize(stream_) == cudaSuccess;
    return is_good_;
  }
  cudaStream_t stream() const { return stream_; }
  bool is_good() const { return is_good_; }

 private:
  cudaStream_t stream_ = nullptr;
  std::vector<void*> blocks_;
  bool is_good_ = false;
};

constexpr uint32_t kNanBits = 0x7FC07FC0u;  // of a float, and of two bf16

bool is_nan(const void* bits, bool is_bf16) {
  uint32_t word = 0;
  std::memcpy(&word, bits, is_bf16 ? sizeof(uint16_t) : sizeof(uint32_t));
  if (is_bf16) word <<= 16;
  return (word & 0x7FFFFFFFu) > 0x7F800000u;
}

}  // namespace

// Zeros but for one element of a, which is not a number.
bool ProductPlan::relu_keeps_nan(void* handle, const GemmOp& op,
                                 const ProductOperands& operands) const {
  const auto elements = [&op](int rows, int stride, u64 distance) {
    return static_cast<u64>(rows) * stride + static_cast<u64>(op.count - 1) * distance;
  };
  const size_t source = operands.are_bf16 ? sizeof(uint16_t) : sizeof(float);
  const size_t result_bytes = operands.is_result_bf16 ? sizeof(uint16_t) : sizeof(float);
  TrialMemory memory;
  void* a =
      memory.zeros(source * elements(op.transpose_a ? op.k : op.m, op.a_stride, op.a_distance));
  void* b =
      memory.zeros(source * elements(op.transpose_b ? op.n : op.k, op.b_stride, op.b_distance));
  void* c = memory.zeros(result_bytes * elements(op.m, op.c_stride, op.c_distance));
  void* bias = memory.zeros(result_bytes * static_cast<size_t>(op.n) * op.count);
  void* workspace = memory.zeros(CublasLt::kWorkspaceBytes);
  if (!memory.is_good() || !memory.copy(a, &kNanBits, source)) return false;
  if (!point_to_bias(op.bias.used() ? bias : nullptr)) return false;
  const float one = 1.0f, zero = 0.0f;
  uint32_t found = 0;
  return api.multiply(handle, description, &one, b, first, a, second, &zero, c, result, c, result,
                      &choice.algorithm, workspace, CublasLt::kWorkspaceBytes,
                      memory.stream()) == kSuccess &&
         memory.copy(&found, c, result_bytes) && is_nan(&found, operands.is_result_bf16);
}

const char* CublasLt::describe() {
  static const std::string text = [] {
    const CublasLtApi* const api = loaded();
    if (api == nullptr) {
      return std::string(
          "our own kernel: no libcublasLt.so.13 or .12 with what is needed was found");
    }
    const size_t version = api->version();  // 10000 * major + 100 * minor + patch
    return "cuBLASLt " + std::to_string(version / 10000) + "." +
           std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  }();
  return text.c_str();
}

std::unique_ptr<CublasLt> CublasLt::open() {
  const CublasLtApi* const api = loaded();
  if (api == nullptr) return nullptr;
  const RelaxedCapture relaxed;
  void* handle = nullptr;
  if (api->create(&handle) != kSuccess) return nullptr;
  return std::make_unique<CublasLt>(*api, handle);
}

CublasLt::CublasLt(const CublasLtApi& api, void* handle) : api_(api), handle_(handle) {}

CublasLt::~CublasLt() {
  plans_.clear();
  api_.destroy(handle_);
}

cudaError_t CublasLt::multiply(cudaStream_t stream, const GemmOp& op, Precision precision,
                               const ProductOperands& operands, void* workspace) {
  const void *a = operands.a, *b = operands.b;
  void* c = operands.c;
  const uint32_t alignments[kMatrices] = {alignment_of(b), alignment_of(a), alignment_of(c),
                                          alignment_of(c)};
  const auto word = [](auto value) { return static_cast<u64>(value); };
  Key key = {word(precision),
             word(op.transpose_a),
             word(op.transpose_b),
             word(op.m),
             word(op.n),
             word(op.k),
             word(op.count),
             word(op.a_stride),
             word(op.b_stride),
             word(op.c_stride),
             op.a_distance,
             op.b_distance,
             op.c_distance,
             alignments[0],
             alignments[1],
             alignments[2],
             word(operands.are_bf16),
             word(operands.is_result_bf16),
             word(op.bias.used()),
             word(op.has_relu)};
  auto place = plans_.find(key);
  std::unique_ptr<RelaxedCapture> relaxed;  // also for the first launch: it loads the kernel
  if (place == plans_.end()) {
    relaxed = std::make_unique<RelaxedCapture>();
    auto plan = std::make_unique<ProductPlan>(api_);
    if (!plan->describe(op, precision, operands) ||
        !plan->choose(handle_, op, operands, alignments)) {
      plan = nullptr;
    }
    place = plans_.emplace(std::move(key), std::move(plan)).first;
  }
  const ProductPlan* plan = place->second.get();
  if (plan == nullptr || !plan->point_to_bias(operands.bias)) return cudaErrorNotSupported;
  const float one = 1.0f, of_before = op.accumulates ? 1.0f : 0.0f;
  const int status = api_.multiply(handle_, plan->description, &one, b, plan->first, a,
                                   plan->second, &of_before, c, plan->result, c, plan->result,
                                   &plan->choice.algorithm, workspace, kWorkspaceBytes, stream);
  if (is_refusal(status)) {
    place->second = nullptr;
    return cudaErrorNotSupported;
  }
  return status == kSuccess ? cudaSuccess : cudaErrorUnknown;
}

}  // namespace millrace
