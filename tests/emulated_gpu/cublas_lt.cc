// The part of cuBLASLt that tpsim uses, on the host: strided-batched GEMMs. Two algorithms are
// offered, which add in different orders. The second one overwrites the requested workspace.
#include "kernels/cuda/linear/cublas_lt.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tests/emulated_gpu/counts.h"
#include "tests/emulated_gpu/lt_products.h"
#include "tests/emulated_gpu/stream.h"

namespace tpsim {
namespace {

using emulated::at_work;
using emulated::is_8_bits;
using emulated::kWorkspace;
using emulated::LtCall;
using emulated::LtLayout;
using emulated::LtScaling;

struct Product {
  cublasOperation_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
  LtScaling of_first, of_second;
};

std::size_t version() {
  if (emulated::is_played("cublas-12.4")) return 120405;
  return emulated::is_played("cublas-12.8") ? 120803 : CUBLAS_VERSION;
}

LtLayout& layout_of(cublasLtMatrixLayout_t layout) { return *reinterpret_cast<LtLayout*>(layout); }

// cuBLASLt creates its own opaque descriptors.
template <class T, class Handle>
cublasStatus_t make(Handle* handle, const T& value) {
  *handle = reinterpret_cast<Handle>(new T(value));
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t take(T& field, const void* from, std::size_t bytes) {
  if (bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

bool types_fit(cudaDataType_t a, cudaDataType_t b) {
  if (!is_8_bits(a)) return a == b;
  return is_8_bits(b) && (a == CUDA_R_8F_E4M3 || b == CUDA_R_8F_E4M3);
}

bool is_of_128(std::int32_t mode) {
  return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F ||
         mode == CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F;
}

// cuBLASLt's table of scaling modes: required compute capabilities, and valid combinations.
bool scalings_fit(const Product& product) {
  const std::int32_t a = product.of_first.mode, b = product.of_second.mode;
  const int gpu = emulated::compute_capability();
  if (a == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) return a == b && gpu >= 89;
  if (a == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0) return a == b && gpu >= 100;
  return is_of_128(a) && is_of_128(b) && gpu == 90 &&
         (a == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F ||
          b == CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
}

// Scales must be aligned to 16 bytes, as cuBLASLt requires since 12.9. The scale of a whole tensor
// is optional.
bool scales_lie_well(const LtScaling& scaling) {
  if (scaling.scales == nullptr) return scaling.mode == CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F;
  return reinterpret_cast<std::uintptr_t>(scaling.scales) % 16 == 0;
}

// Other requirements of 8-bit GEMMs: sums along both operands' columns (on Ada and Hopper; tpsim
// uses nothing else on Blackwell), and multiples of 16 elements and 16 bytes. Scales of 128
// elements require result dimensions that are multiples of 4. Scales of 32 elements require whole
// blocks along the summed dimension.
bool fits_8_bits(const Product& product, const LtLayout& a, const LtLayout& b, const LtLayout& d) {
  if (!is_8_bits(a.type)) return product.of_first.scales == nullptr;
  const auto on_16 = [](std::uint64_t n) { return n % 16 == 0; };
  const std::uint64_t bytes = d.type == CUDA_R_32F ? 4 : 2;
  const bool of_128 = is_of_128(product.of_first.mode);
  const bool of_32 = product.of_first.mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
  return scalings_fit(product) && scales_lie_well(product.of_first) &&
         scales_lie_well(product.of_second) && (!of_128 || (d.rows % 4 == 0 && d.cols % 4 == 0)) &&
         (!of_32 || a.rows % 32 == 0) && product.first == CUBLAS_OP_T &&
         product.second == CUBLAS_OP_N && on_16(a.rows) && on_16(d.rows) &&
         on_16(static_cast<std::uint64_t>(a.leading)) &&
         on_16(static_cast<std::uint64_t>(b.leading)) &&
         on_16(bytes * static_cast<std::uint64_t>(d.leading)) && d.batch == 1;
}

bool fits(const LtCall& call) {
  const std::uint64_t m = call.a_transposed ? call.a.cols : call.a.rows;
  const std::uint64_t k = call.a_transposed ? call.a.rows : call.a.cols;
  const std::uint64_t k_of_b = call.b_transposed ? call.b.cols : call.b.rows;
  const std::uint64_t n = call.b_transposed ? call.b.rows : call.b.cols;
  bool leads = true;
  for (const LtLayout* x : {&call.a, &call.b, &call.c, &call.d}) {
    leads = leads && x->leading >= static_cast<std::int64_t>(x->rows) && x->batch == call.d.batch;
  }
  return leads && k == k_of_b && call.d.rows == m && call.d.cols == n && call.c.rows == m &&
         call.c.cols == n && types_fit(call.a.type, call.b.type) && call.c.type == call.d.type;
}

cublasStatus_t create(cublasLtHandle_t* handle) { return make(handle, 0); }
cublasStatus_t destroy(cublasLtHandle_t handle) {
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t desc_create(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                           cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return make(desc, Product{});
}
cublasStatus_t desc_destroy(cublasLtMatmulDesc_t desc) {
  delete reinterpret_cast<Product*>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
// Sets a scaling mode that this version supports.
cublasStatus_t take_mode(std::int32_t& mode, const void* from, std::size_t bytes) {
  if (version() < 120800) return CUBLAS_STATUS_INVALID_VALUE;
  const std::int32_t beyond = version() < 120900 ? CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F
                                                 : CUBLASLT_MATMUL_MATRIX_SCALE_END;
  const cublasStatus_t status = take(mode, from, bytes);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return mode >= 0 && mode < beyond ? status : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t desc_set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                        const void* from, std::size_t bytes) {
  auto& product = *reinterpret_cast<Product*>(desc);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(product.first, from, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(product.second, from, bytes);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET: return CUBLAS_STATUS_SUCCESS;  // affects speed only
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER: return take(product.of_first.scales, from, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER: return take(product.of_second.scales, from, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE: return take_mode(product.of_first.mode, from, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE: return take_mode(product.of_second.mode, from, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t layout_create(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                             std::uint64_t cols, std::int64_t leading) {
  return make(layout, LtLayout{type, rows, cols, leading});
}
cublasStatus_t layout_destroy(cublasLtMatrixLayout_t layout) {
  delete &layout_of(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
                          const void* from, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return take(layout_of(layout).batch, from, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return take(layout_of(layout).stride, from, bytes);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t preference_create(cublasLtMatmulPreference_t* preference) {
  return make(preference, 0);
}
cublasStatus_t preference_destroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<int*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_set(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                              const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                         cublasLtMatmulPreference_t, int most,
                         cublasLtMatmulHeuristicResult_t* found, int* count) {
  const auto& product = *reinterpret_cast<const Product*>(desc);
  if (!fits_8_bits(product, layout_of(a), layout_of(b), layout_of(d))) {
    *count = 0;
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const bool is_second = emulated::is_played("other-algorithm");
  *count = std::min(most, is_second || emulated::is_played("one-algorithm") ? 1 : 2);
  for (int i = 0; i < *count; ++i) {
    const int algorithm = is_second ? 1 : i;
    found[i] = {};
    found[i].algo.data[0] = static_cast<std::uint64_t>(algorithm);
    found[i].workspaceSize = algorithm == 0 ? 0 : kWorkspace;
    found[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t check(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                     cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                     const cublasLtMatmulAlgo_t* algorithm,
                     cublasLtMatmulHeuristicResult_t* result) {
  if (algorithm->data[0] > 1) return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {};
  result->algo = *algorithm;
  result->workspaceSize = algorithm->data[0] == 0 ? 0 : kWorkspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                      cublasLtMatrixLayout_t a_layout, const void* b,
                      cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                      cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t* algorithm, void* workspace, std::size_t bytes,
                      cudaStream_t stream) {
  const auto& product = *reinterpret_cast<const Product*>(desc);
  const LtCall call{layout_of(a_layout),
                    layout_of(b_layout),
                    layout_of(c_layout),
                    layout_of(d_layout),
                    product.first == CUBLAS_OP_T,
                    product.second == CUBLAS_OP_T,
                    a,
                    b,
                    c,
                    d,
                    workspace,
                    *static_cast<const float*>(alpha),
                    *static_cast<const float*>(beta),
                    algorithm->data[0] == 1,
                    product.of_first,
                    product.of_second};
  const bool lies_well = !is_8_bits(call.a.type) || ((reinterpret_cast<std::uintptr_t>(a) |
                                                      reinterpret_cast<std::uintptr_t>(b) |
                                                      reinterpret_cast<std::uintptr_t>(d)) %
                                                         16 ==
                                                     0);
  if (!fits(call) || !fits_8_bits(product, call.a, call.b, call.d) || !lies_well ||
      (call.backwards && bytes < kWorkspace))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto lock = at_work();
  emulated::count(&emulated::Counts::products);
  if (!emulated::works()) return CUBLAS_STATUS_SUCCESS;
  emulated::enqueue(stream, [call] {
    emulated::multiply(call);
    return true;
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

const Result<CublasLt>& cublas_lt() {
  static const Result<CublasLt> library = CublasLt{create,
                                                   destroy,
                                                   version,
                                                   matmul,
                                                   heuristic,
                                                   check,
                                                   desc_create,
                                                   desc_destroy,
                                                   desc_set,
                                                   layout_create,
                                                   layout_destroy,
                                                   layout_set,
                                                   preference_create,
                                                   preference_destroy,
                                                   preference_set,
                                                   "emulated"};
  return library;
}

}  // namespace tpsim
