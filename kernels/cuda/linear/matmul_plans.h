// GEMMs by cuBLASLt. The algorithm is selected by timing, once per MatmulKey.
//
// The first call with a key gets up to kCandidates algorithms from cuBLASLt's heuristic and times
// each on the given operands. The fastest is used until the device is destroyed. Split-K reductions
// are allowed in fp32 only, so that bf16 results are rounded once.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <vector>

#include "kernels/cuda/linear/cublas_lt.h"
#include "kernels/cuda/linear/matmul_choice.h"

namespace tpsim {

// Workspace of cuBLASLt in bytes: the value that its documentation recommends for Hopper.
inline constexpr std::int64_t kMatmulWorkspace = std::int64_t{32} << 20;

struct MatmulCall {
  MatmulKey key;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  float alpha = 1;
  float beta = 0;
  // Scales of 8-bit operands on the GPU, in the layout of MatmulKey::scales.
  const void* scale_a = nullptr;
  const void* scale_b = nullptr;
};

class MatmulPlans {
 public:
  static constexpr int kCandidates = 16;

  explicit MatmulPlans(const CublasLt& lt);
  MatmulPlans(MatmulPlans&&) noexcept;
  MatmulPlans& operator=(MatmulPlans&&) = delete;
  ~MatmulPlans();

  // `workspace` has kMatmulWorkspace bytes. The first call with a key also times the candidates. If
  // the GEMM accumulates, that call temporarily allocates a copy of c.
  void run(const MatmulCall& call, void* workspace, cudaStream_t stream);

  // choices() returns the selected algorithms. use() sets initial choices. A choice that this
  // library or GPU does not support is measured again at first use.
  std::vector<MatmulChoice> choices() const;
  void use(const std::vector<MatmulChoice>& choices);
  std::size_t library_version() const { return lt_.version(); }

 private:
  struct Plan;

  const Plan& plan_for(const MatmulCall& call, void* workspace, cudaStream_t stream);
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(const MatmulKey& key, const Plan& plan);
  std::size_t fastest(const std::vector<cublasLtMatmulHeuristicResult_t>& candidates,
                      const MatmulCall& call, Plan& plan, void* workspace, cudaStream_t stream);
  cublasStatus_t issue(const Plan& plan, const MatmulCall& call, void* d, void* workspace,
                       cudaStream_t stream) const;
  bool adopts(const MatmulChoice& choice, Plan& plan) const;

  const CublasLt& lt_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<MatmulKey, std::unique_ptr<Plan>> plans_;
  std::map<MatmulKey, MatmulChoice> given_;
};

}  // namespace tpsim
