// Matrix products by cuBLASLt, with the algorithm measured once per kind of product.
//
// The first time a product is met, the library is asked for up to kCandidates algorithms; each is
// timed on the operands at hand, and the fastest is kept for the life of the device. Reductions
// across slices of k are allowed in fp32 only, so that bf16 results are rounded once.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <vector>

#include "kernels/cuda/linear/cublas_lt.h"
#include "kernels/cuda/linear/matmul_choice.h"

namespace tpsim {

// What cuBLASLt may use besides its operands; its documentation's figure for Hopper.
inline constexpr std::int64_t kMatmulWorkspace = std::int64_t{32} << 20;

struct MatmulCall {
  MatmulKey key;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  float alpha = 1;
  float beta = 0;
  // Of operands in 8 bits: on the GPU, what units of each stand for, as MatmulKey::scales says.
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

  // `workspace` holds kMatmulWorkspace bytes. The first call with a key takes the time of trying
  // the candidates, and of memory as much as c for a moment when the product accumulates.
  void run(const MatmulCall& call, void* workspace, cudaStream_t stream);

  // The choices so far, and choices to start from: one that this library or GPU does not support is
  // measured anew when it is met.
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
