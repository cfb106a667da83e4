#include "kernels/cuda/linear/matmul_plans.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "kernels/cuda/runtime/cuda_check.h"
#include "kernels/cuda/runtime/cuda_memory.h"

namespace tpsim {
namespace {

void check_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CudaFailure(fmt::format("{}: cuBLASLt returned {}", what, static_cast<int>(status)));
}

cudaDataType_t type_of(DType dtype, bool is_e5m2 = false) {
  switch (dtype) {
    case DType::kFloat8: return is_e5m2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
    case DType::kBFloat16: return CUDA_R_16BF;
    case DType::kFloat16: return CUDA_R_16F;
    case DType::kFloat32: return CUDA_R_32F;
    default: break;
  }
  TPSIM_CHECK(false, "cuBLASLt has no GEMM for " + std::string(name_of(dtype)));
}

// A timer of CUDA events, in milliseconds.
class StopWatch {
 public:
  explicit StopWatch(cudaStream_t stream) : stream_(stream) {
    check_cuda(cudaEventCreate(&start_), "cudaEventCreate");
    check_cuda(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  ~StopWatch() {
    static_cast<void>(cudaEventDestroy(start_));
    static_cast<void>(cudaEventDestroy(stop_));
  }
  StopWatch(const StopWatch&) = delete;
  StopWatch& operator=(const StopWatch&) = delete;

  template <class Work>
  float time_of(Work work) {
    check_cuda(cudaEventRecord(start_, stream_), "cudaEventRecord");
    work();
    check_cuda(cudaEventRecord(stop_, stream_), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(stop_), "timing a GEMM");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
    return milliseconds;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

// Memory for the result of a timing run that must not change c; null if out of memory.
class TrialOutput {
 public:
  explicit TrialOutput(const MatmulKey& key) {
    const auto [batch, m, n, k] = key.sizes;
    bytes_ = ((batch - 1) * key.batch_strides[2] + (m - 1) * key.row_strides[2] + n) *
             size_of(key.output);
    if (key.accumulates) data_ = segments_.acquire_segment(bytes_);
  }
  ~TrialOutput() {
    if (data_ != nullptr) segments_.release_segment(data_, bytes_);
  }
  TrialOutput(const TrialOutput&) = delete;
  TrialOutput& operator=(const TrialOutput&) = delete;
  void* data() const { return data_; }

 private:
  CudaSegments segments_;
  std::int64_t bytes_ = 0;
  void* data_ = nullptr;
};

}  // namespace

// A GEMM as cuBLASLt describes it. cuBLASLt is column-major, so it computes the transpose: c' =
// op(b)' op(a)'. `first` is therefore b and `second` is a.
struct MatmulPlans::Plan {
  explicit Plan(const CublasLt& library) : lt(library) {}
  ~Plan() {
    if (desc != nullptr) lt.desc_destroy(desc);
    for (cublasLtMatrixLayout_t layout : {first, second, result}) {
      if (layout != nullptr) lt.layout_destroy(layout);
    }
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void describe(const MatmulKey& key);
  // Sets the granularity and the addresses of the scales of 8-bit operands.
  void set_scale_modes(const MatmulKey& key);
  void set_scales(const MatmulCall& call) const;
  cublasLtMatrixLayout_t layout_of(cudaDataType_t type, std::int64_t rows, std::int64_t cols,
                                   const MatmulKey& key, std::size_t operand) const;

  const CublasLt& lt;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace = 0;
};

cublasLtMatrixLayout_t MatmulPlans::Plan::layout_of(cudaDataType_t type, std::int64_t rows,
                                                    std::int64_t cols, const MatmulKey& key,
                                                    std::size_t operand) const {
  cublasLtMatrixLayout_t layout = nullptr;
  // `rows` and `cols` are row-major; the column-major layout swaps them.
  check_cublas(lt.layout_create(&layout, type, static_cast<std::uint64_t>(cols),
                                static_cast<std::uint64_t>(rows), key.row_strides[operand]),
               "a matrix's layout");
  const auto batch = static_cast<std::int32_t>(key.sizes[0]);
  const std::int64_t stride = key.batch_strides[operand];
  check_cublas(lt.layout_set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
               "a batch's size");
  check_cublas(
      lt.layout_set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
      "a batch's stride");
  return layout;
}

void MatmulPlans::Plan::describe(const MatmulKey& key) {
  check_cublas(lt.desc_create(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "creating a GEMM descriptor");
  const auto set_transpose = [&](cublasLtMatmulDescAttributes_t attribute, bool transposed) {
    const cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_cublas(lt.desc_set(desc, attribute, &operation, sizeof operation), "a transpose");
  };
  set_transpose(CUBLASLT_MATMUL_DESC_TRANSA, key.transpose_b);
  set_transpose(CUBLASLT_MATMUL_DESC_TRANSB, key.transpose_a);
  const auto [batch, m, n, k] = key.sizes;
  first = layout_of(type_of(key.dtype), key.transpose_b ? n : k, key.transpose_b ? k : n, key, 1);
  second = layout_of(type_of(key.dtype, key.a_is_e5m2), key.transpose_a ? k : m,
                     key.transpose_a ? m : k, key, 0);
  result = layout_of(type_of(key.output), m, n, key, 2);
  set_scale_modes(key);
  if (key.multiprocessors > 0) {
    const std::int32_t target = key.multiprocessors;
    check_cublas(lt.desc_set(desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &target, sizeof target),
                 "limiting the multiprocessors of a GEMM");
  }
}

void MatmulPlans::Plan::set_scale_modes(const MatmulKey& key) {
#if CUBLAS_VERSION >= 120800
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, ScalesOf scales) {
    if (scales == ScalesOf::kTensor) return;  // the only mode in older libraries
    const auto mode = static_cast<std::int32_t>(scales);
    check_cublas(lt.desc_set(desc, attribute, &mode, sizeof mode),
                 "setting the scale mode of a GEMM");
  };
  set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, key.scales[1]);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, key.scales[0]);
#else
  TPSIM_CHECK(key.scales == MatmulKey().scales,
              "the cuBLASLt of this build does not have these scales");
#endif
}

// Sets the addresses of the scales, which differ from call to call.
void MatmulPlans::Plan::set_scales(const MatmulCall& call) const {
  if (call.key.dtype != DType::kFloat8) return;
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const void* scales) {
    check_cublas(lt.desc_set(desc, attribute, &scales, sizeof scales), "a scale");
  };
  set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, call.scale_b);
  set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, call.scale_a);
}

MatmulPlans::MatmulPlans(const CublasLt& lt) : lt_(lt) {
  check_cublas(lt_.create(&handle_), "starting cuBLASLt");
}

MatmulPlans::MatmulPlans(MatmulPlans&& other) noexcept
    : lt_(other.lt_),
      handle_(std::exchange(other.handle_, nullptr)),
      plans_(std::move(other.plans_)),
      given_(std::move(other.given_)) {}

MatmulPlans::~MatmulPlans() {
  plans_.clear();
  if (handle_ != nullptr) lt_.destroy(handle_);
}

cublasStatus_t MatmulPlans::issue(const Plan& plan, const MatmulCall& call, void* d,
                                  void* workspace, cudaStream_t stream) const {
  plan.set_scales(call);
  return lt_.matmul(handle_, plan.desc, &call.alpha, call.b, plan.first, call.a, plan.second,
                    &call.beta, call.c, plan.result, d, plan.result, &plan.algorithm, workspace,
                    plan.workspace, stream);
}

void MatmulPlans::run(const MatmulCall& call, void* workspace, cudaStream_t stream) {
  const Plan& plan = plan_for(call, workspace, stream);
  const cublasStatus_t status = issue(plan, call, call.c, workspace, stream);
  // Creates the text of the key only after an error, because it takes longer than the call.
  if (status != CUBLAS_STATUS_SUCCESS) check_cublas(status, to_string(call.key).c_str());
}

const MatmulPlans::Plan& MatmulPlans::plan_for(const MatmulCall& call, void* workspace,
                                               cudaStream_t stream) {
  if (const auto known = plans_.find(call.key); known != plans_.end()) return *known->second;
  auto fresh = std::make_unique<Plan>(lt_);
  fresh->describe(call.key);
  fresh->set_scales(call);  // without scales cuBLASLt finds no algorithm for block scaling
  const auto given = given_.find(call.key);
  if (given == given_.end() || !adopts(given->second, *fresh)) {
    const auto found = candidates(call.key, *fresh);
    if (found.empty()) throw CudaFailure("cuBLASLt has no algorithm for " + to_string(call.key));
    const std::size_t best = fastest(found, call, *fresh, workspace, stream);
    fresh->algorithm = found[best].algo;
    fresh->workspace = found[best].workspaceSize;
  }
  // Failed plans are not inserted, since choices() lists all plans.
  return *plans_.emplace(call.key, std::move(fresh)).first->second;
}

std::vector<cublasLtMatmulHeuristicResult_t> MatmulPlans::candidates(const MatmulKey& key,
                                                                     const Plan& plan) {
  cublasLtMatmulPreference_t preference = nullptr;
  check_cublas(lt_.preference_create(&preference), "cuBLASLt's preferences");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check_cublas(lt_.preference_set(preference, attribute, &value, sizeof value),
                 "cuBLASLt's preferences");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(kMatmulWorkspace));
  // Split-K partial sums stay fp32 and are added in a fixed order.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const auto alignment = static_cast<std::uint32_t>(key.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> found(kCandidates);
  int count = 0;
  const cublasStatus_t status =
      lt_.heuristic(handle_, plan.desc, plan.first, plan.second, plan.result, plan.result,
                    preference, kCandidates, found.data(), &count);
  lt_.preference_destroy(preference);
  found.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
  std::erase_if(found, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
  return found;
}

// Times each candidate a few times and returns the index of the one with the shortest run.
std::size_t MatmulPlans::fastest(const std::vector<cublasLtMatmulHeuristicResult_t>& candidates,
                                 const MatmulCall& call, Plan& plan, void* workspace,
                                 cudaStream_t stream) {
  constexpr int kRuns = 3;
  const TrialOutput trial(call.key);
  if (call.key.accumulates && trial.data() == nullptr) return 0;
  void* const d = call.key.accumulates ? trial.data() : call.c;
  StopWatch watch(stream);
  std::size_t best = 0;
  float best_time = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    plan.algorithm = candidates[i].algo;
    plan.workspace = candidates[i].workspaceSize;
    // The first run loads the kernel and is not timed.
    if (issue(plan, call, d, workspace, stream) != CUBLAS_STATUS_SUCCESS) continue;
    for (int run = 0; run < kRuns; ++run) {
      const float time = watch.time_of(
          [&] { check_cublas(issue(plan, call, d, workspace, stream), "timing a GEMM"); });
      if (time >= best_time) continue;
      best_time = time;
      best = i;
    }
  }
  return best;
}

bool MatmulPlans::adopts(const MatmulChoice& choice, Plan& plan) const {
  static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof choice.algorithm);
  std::memcpy(&plan.algorithm, choice.algorithm.data(), sizeof plan.algorithm);
  cublasLtMatmulHeuristicResult_t checked{};
  const cublasStatus_t status = lt_.check(handle_, plan.desc, plan.first, plan.second, plan.result,
                                          plan.result, &plan.algorithm, &checked);
  plan.workspace = checked.workspaceSize;
  return status == CUBLAS_STATUS_SUCCESS &&
         checked.workspaceSize <= static_cast<std::size_t>(kMatmulWorkspace);
}

std::vector<MatmulChoice> MatmulPlans::choices() const {
  std::vector<MatmulChoice> all;
  for (const auto& [key, plan] : plans_) {
    MatmulChoice choice{key, {}, plan->workspace};
    std::memcpy(choice.algorithm.data(), &plan->algorithm, sizeof plan->algorithm);
    all.push_back(choice);
  }
  return all;
}

void MatmulPlans::use(const std::vector<MatmulChoice>& choices) {
  for (const MatmulChoice& choice : choices) given_.insert_or_assign(choice.key, choice);
}

}  // namespace tpsim
