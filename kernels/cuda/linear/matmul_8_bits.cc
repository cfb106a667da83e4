#include "kernels/cuda/linear/matmul_8_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "kernels/cuda/runtime/cuda_check.h"

namespace tpsim {
namespace {

// GPUs that support a recipe, with its scales and padding, from cuBLASLt's table of scaling modes.
struct RecipeRow {
  Precision recipe;
  int first, beyond;  // first <= compute capability < beyond
  const char* where;
  ScalesOf scales, weights;  // of activations and gradients; of weights
  std::int64_t depth;        // the summed dimension is padded to a multiple of this
  std::int64_t rows;         // rows of the first operand are padded to a multiple of this
};
constexpr int kAny = 1000;
// With kVector32 the summed dimension is padded to whole vectors, because the layout has no scale
// for a partial vector. With scales of 128 elements, cuBLASLt requires result dimensions that are
// multiples of 4.
constexpr auto kRecipes = std::to_array<RecipeRow>({
    {Precision::kFp8, 89, kAny, "need 8.9 or newer", ScalesOf::kTensor, ScalesOf::kTensor, 16, 1},
    {Precision::kFp8Current, 89, kAny, "need 8.9 or newer", ScalesOf::kTensor, ScalesOf::kTensor,
     16, 1},
    {Precision::kFp8Block, 90, 91, "need exactly 9.0", ScalesOf::kVector128, ScalesOf::kTile128, 16,
     4},
    {Precision::kMxFp8, 100, kAny, "need 10.0 or newer", ScalesOf::kVector32, ScalesOf::kVector32,
     32, 1},
});
// Recipes that an error message recommends if a GPU lacks the requested one, best first.
constexpr std::array kNearest = {Precision::kFp8Block, Precision::kMxFp8, Precision::kFp8Current};

const RecipeRow* row_of(Precision recipe) {
  const auto* const row = std::find_if(kRecipes.begin(), kRecipes.end(),
                                       [&](const RecipeRow& r) { return r.recipe == recipe; });
  return row == kRecipes.end() ? nullptr : row;
}

bool runs_on(const RecipeRow& row, const NarrowGpu& gpu) {
  const std::size_t least = std::max(least_version(row.scales), least_version(row.weights));
  return row.first <= gpu.capability && gpu.capability < row.beyond && gpu.library_version >= least;
}

std::string nearest_on(const NarrowGpu& gpu) {
  for (const Precision recipe : kNearest) {
    if (runs_on(*row_of(recipe), gpu)) {
      return fmt::format("; the nearest supported recipe is {}", name_of(recipe));
    }
  }
  return "";
}

// "13.0.2" from 130002.
std::string library_version_text(std::size_t version) {
  return fmt::format("{}.{}", version / 10000, version / 100 % 100);
}

// Allocator of a GEMM's scratch memory, aligned to 256 bytes.
struct NarrowScratch {
  std::byte* next;

  void* take(std::int64_t bytes) {
    void* const here = next;
    next += multiple_of(256, bytes);
    return here;
  }
};

constexpr std::int64_t bytes_of_floats(std::int64_t count) {
  return count * static_cast<std::int64_t>(sizeof(float));
}

// op(a), and op(b) transposed, in 8 bits: the summed dimension is contiguous in both. sm_89 and
// sm_90 support no other layout.
struct NarrowOperands {
  NarrowMatrix a, b;
  int* own_amax = nullptr;  // two numbers: amax of a and of b, if this call computes scales
  float* sums = nullptr;    // result of the GEMM if cuBLASLt cannot write c itself
  std::byte* end = nullptr;
};

struct OperandScales {
  ScalesOf a, b;
};

// Whether cuBLASLt can write c directly. Otherwise it writes a padded result, which is then added
// to c.
bool writes_itself(const Matrix& c, const RecipeRow& recipe) {
  const std::int64_t size = size_of(c.tensor.dtype());
  const auto* const begin = static_cast<const std::byte*>(c.tensor.raw()) + c.offset * size;
  return c.cols % kNarrowMultiple == 0 && c.row_stride * size % kNarrowMultiple == 0 &&
         c.rows % recipe.rows == 0 &&
         reinterpret_cast<std::uintptr_t>(begin) % kNarrowMultiple == 0;
}

NarrowOperands operands_in(NarrowScratch scratch, const Matmul& op, const RecipeRow& recipe,
                           const OperandScales& scales) {
  NarrowOperands x;
  const std::int64_t depth = multiple_of(recipe.depth, op.a.transposed ? op.a.rows : op.a.cols);
  const std::int64_t rows = multiple_of(recipe.rows, op.c.rows);
  const std::int64_t cols = multiple_of(kNarrowMultiple, op.c.cols);
  x.own_amax = static_cast<int*>(scratch.take(2 * sizeof(int)));
  const auto take = [&](std::int64_t of, ScalesOf shared) {
    void* const at = scratch.take(scale_bytes(shared, of, depth));
    return NarrowMatrix{static_cast<std::uint8_t*>(scratch.take(of * depth)), of, depth, at};
  };
  x.a = take(rows, scales.a);
  x.b = take(cols, scales.b);
  if (!writes_itself(op.c, recipe)) {
    x.sums = static_cast<float*>(scratch.take(bytes_of_floats(rows * cols)));
  }
  x.end = scratch.next;
  return x;
}

// Returns the quantization of `matrix` to `to`. The result is transposed if the GEMM sums over the
// rows of the matrix as stored.
Narrowing narrowing_of(const Matrix& matrix, bool sums_over_rows, ScalesOf scales,
                       const NarrowMatrix& to) {
  Narrowing narrowing{.from = matrix, .scales = scales, .as_stored = {}, .turned = {}};
  (sums_over_rows ? narrowing.turned : narrowing.as_stored) = to;
  return narrowing;
}

// Returns the scale of an operand: that of earlier steps in `of_steps` (delayed scaling), else
// memory at `own`, to which this call writes the scale.
TensorScale tensor_scale(const OperandRounding& rounding, const Tensor& of_steps, void* own,
                         int* own_amax) {
  if (rounding.recipe != Precision::kFp8) return {static_cast<float*>(own), nullptr, own_amax};
  TPSIM_CHECK(of_steps.defined(), "the GEMM has no scale for its operand");
  auto* const known = of_steps.data<float>();
  if (!rounding.finds_scales) return {known, known + 1, nullptr};
  return {static_cast<float*>(own), known + 1, own_amax};
}

// Returns memory for the transposed copy of a GEMM's first operand, kept for the next GEMM.
NarrowMatrix kept_in(const Matrix& a, const RecipeRow& recipe, CudaState& state) {
  const std::int64_t rows = multiple_of(recipe.rows, a.cols);
  const std::int64_t depth = multiple_of(recipe.depth, a.rows);
  const std::int64_t bytes_of_scales = multiple_of(256, scale_bytes(recipe.scales, rows, depth));
  auto* const at =
      static_cast<std::byte*>(state.kept_scratch.bytes(bytes_of_scales + rows * depth));
  return {reinterpret_cast<std::uint8_t*>(at + bytes_of_scales), rows, depth, at};
}

// Quantizes the first operand, unless the previous GEMM kept a quantized copy of it.
void round_a(const Matmul& op, const RecipeRow& recipe, NarrowOperands& x, CudaState& state) {
  const OperandRounding& rounding = op.rounding;
  KeptOperand& kept = state.kept;
  if (rounding.takes_kept_a && kept.is_of(op.a)) {
    x.a = kept.turned;
    kept = {};
    return;
  }
  Narrowing a = narrowing_of(op.a, op.a.transposed, recipe.scales, x.a);
  const bool by_tensor = recipe.scales == ScalesOf::kTensor;
  a.is_e5m2 = by_tensor && rounding.a_is_gradient;
  kept = {};
  if (rounding.keeps_a) {
    a.turned = kept_in(op.a, recipe, state);
    kept = {KeptOperand::address_of(op.a), op.a.rows, op.a.cols, op.a.row_stride, a.turned};
  }
  if (by_tensor) {
    void* const own = rounding.keeps_a ? a.turned.scales : x.a.scales;
    a.of_tensor = tensor_scale(rounding, rounding.a_scale, own, x.own_amax);
    x.a.scales = kept.turned.scales = a.of_tensor.unit;
  }
  narrow(a, state);
}

void round_b(const Matmul& op, ScalesOf scales, NarrowOperands& x, const CudaState& state) {
  Narrowing b = narrowing_of(op.b, !op.b.transposed, scales, x.b);
  if (scales == ScalesOf::kTensor) {
    b.of_tensor = tensor_scale(op.rounding, op.rounding.b_scale, x.b.scales, x.own_amax + 1);
    x.b.scales = b.of_tensor.unit;
  }
  narrow(b, state);
}

// Returns whether scales are computed from the operands of this call (current scaling, or the first
// step of delayed scaling).
bool finds_scales(const OperandRounding& rounding) {
  return rounding.recipe == Precision::kFp8Current ||
         (rounding.recipe == Precision::kFp8 && rounding.finds_scales);
}

}  // namespace

std::string refusal_reason(Precision recipe, const NarrowGpu& gpu) {
  if (recipe == Precision::kNone) return "";
  const RecipeRow* const row = row_of(recipe);
  if (row == nullptr) return "tpsim can predict this recipe, but cannot run it" + nearest_on(gpu);
  if (runs_on(*row, gpu)) return "";
  const bool has_units = row->first <= gpu.capability && gpu.capability < row->beyond;
  if (!has_units) {
    return fmt::format("{} has compute capability {}.{}, and GEMMs of {} bits by {} {}{}", gpu.name,
                       gpu.capability / 10, gpu.capability % 10, 8, name_of(recipe), row->where,
                       nearest_on(gpu));
  }
  const std::size_t least = std::max(least_version(row->scales), least_version(row->weights));
  const bool is_built = least < std::size_t{1000000};
  return fmt::format(
      "the installed cuBLASLt is {}, {}{}", library_version_text(gpu.library_version),
      is_built ? "but such GEMMs need " + library_version_text(least) + " or newer"
               : "but this tpsim was built with CUDA headers that do not define such GEMMs",
      nearest_on(gpu));
}

void multiply_in_8_bits(const Matmul& op, CudaState& state) {
  const RecipeRow* const recipe = row_of(op.rounding.recipe);
  TPSIM_CHECK(recipe != nullptr, "CUDA does not support the recipe");
  TPSIM_CHECK(op.outer * op.inner == 1 && op.alpha == 1.0F,
              "8-bit GEMMs have one batch and alpha = 1");
  const OperandScales scales{recipe->scales,
                             op.rounding.b_is_weight ? recipe->weights : recipe->scales};
  std::byte* workspace = static_cast<std::byte*>(state.scratch.bytes(kMatmulWorkspace));
  const std::int64_t bytes =
      operands_in({workspace + kMatmulWorkspace}, op, *recipe, scales).end - workspace;
  workspace = static_cast<std::byte*>(state.scratch.bytes(bytes));
  NarrowOperands x = operands_in({workspace + kMatmulWorkspace}, op, *recipe, scales);
  if (finds_scales(op.rounding)) {
    check_cuda(cudaMemsetAsync(x.own_amax, 0, 2 * sizeof(int), state.stream),
               "clearing the amax values");
  }
  round_a(op, *recipe, x, state);
  round_b(op, scales.b, x, state);

  const bool writes_c = x.sums == nullptr;
  MatmulKey key;
  key.dtype = DType::kFloat8;
  key.a_is_e5m2 = scales.a == ScalesOf::kTensor && op.rounding.a_is_gradient;
  key.scales = {scales.a, scales.b};
  key.output = writes_c ? op.c.tensor.dtype() : DType::kFloat32;
  key.transpose_b = true;
  key.accumulates = writes_c && op.beta != 0.0F;
  key.sizes = {1, x.a.rows, x.b.rows, x.a.depth};
  key.row_strides = {x.a.depth, x.b.depth, writes_c ? op.c.row_stride : x.b.rows};
  void* const c = writes_c ? static_cast<std::byte*>(op.c.tensor.raw()) +
                                 op.c.offset * size_of(op.c.tensor.dtype())
                           : static_cast<void*>(x.sums);
  key.alignment = alignment_of(c);
  key.multiprocessors = state.product_multiprocessors();
  MatmulCall call{key, x.a.data, x.b.data, c, 1.0F, writes_c ? op.beta : 0.0F};
  call.scale_a = x.a.scales;
  call.scale_b = x.b.scales;
  state.matmuls.run(call, workspace, state.stream);
  if (!writes_c) add_sums(x.sums, x.b.rows, op.beta, op.c, state);
}

}  // namespace tpsim
