// State shared by the CUDA ops: stream, GPU properties and working memory.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "kernels/block_cache.h"
#include "kernels/cuda/linear/matmul_plans.h"
#include "kernels/cuda/linear/narrow_matrix.h"
#include "kernels/cuda/runtime/cuda_memory.h"

namespace tpsim {

// GPU properties that kernel launches depend on.
struct GpuLimits {
  int multiprocessors = 1;
  std::int64_t shared_memory = 48 << 10;  // maximum per block, in bytes
  int capability = 80;                    // compute capability, 90 for 9.0
  bool uses_warpgroups = false;           // attention uses the sm_90a kernels
};

// Working memory of ops, which grows as needed and never shrinks. All ops share one buffer, because
// they run in order on one stream.
class CudaScratch {
 public:
  explicit CudaScratch(BlockCache& memory) : memory_(memory) {}
  ~CudaScratch() { release(); }
  CudaScratch(const CudaScratch&) = delete;
  CudaScratch& operator=(const CudaScratch&) = delete;

  // Number of times that the memory was reallocated.
  std::int64_t moves() const { return moves_; }
  // Returns uninitialized memory, valid until the next call. Throws OutOfDeviceMemory.
  void* bytes(std::int64_t count);
  template <class T>
  T* array(std::int64_t count) {
    return static_cast<T*>(bytes(count * static_cast<std::int64_t>(sizeof(T))));
  }

 private:
  void release();

  BlockCache& memory_;
  void* data_ = nullptr;
  std::int64_t size_ = 0;
  std::int64_t moves_ = 0;
};

// Cosines and sines on the device for positions 0 .. positions - 1.
struct RotaryTable {
  float* data = nullptr;
  std::int64_t positions = 0;
};

struct CudaState {
  CudaState(cudaStream_t work_stream, GpuLimits gpu_limits, MatmulPlans matmul_plans)
      : stream(work_stream), limits(gpu_limits), matmuls(std::move(matmul_plans)) {}

  // Returns the number of SMs that a GEMM may occupy; 0: all.
  int product_multiprocessors() const {
    return spared > 0 ? std::max(limits.multiprocessors - spared, 1) : 0;
  }

  cudaStream_t stream;
  GpuLimits limits;
  int spared = 0;  // SMs reserved for collectives on other streams
  CudaSegments segments;
  BlockCache memory{segments};
  CudaScratch scratch{memory};
  CudaScratch kept_scratch{memory};  // memory of `kept`
  KeptOperand kept;
  MatmulPlans matmuls;
  std::map<std::pair<float, std::int64_t>, RotaryTable> rotary_tables;  // by theta and head_dim
};

}  // namespace tpsim
