#include "sim/captured/kernel_work.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/text.h"

namespace tpsim {
namespace {

constexpr std::string_view kInductor = "inductor.";  // before names of fused kernels
// Ops without operands that they read.
constexpr auto kWriteOnly = words<13>(
    "zeros ones full arange zero_ fill_ ones_like zeros_like new_zeros new_ones full_like new_full "
    "scalar_tensor");
// Ops that read as much of their first operand as they return.
constexpr auto kGathers = words<6>("embedding index index_select gather slice_scatter take");
// Words in names of ops that read whole rows or columns before they write.
constexpr auto kReductionWords = words<18>(
    "softmax norm sum mean loss topk sort max min cumsum var embedding_dense_backward any all "
    "histc "
    "bincount nonzero unique");

double bytes_of(const std::vector<CapturedTensor>& tensors) {
  double bytes = 0;
  for (const CapturedTensor& one : tensors) bytes += one.bytes();
  return bytes;
}

DType dtype_of(const CapturedTensor& tensor) {
  if (tensor.dtype == "bfloat16") return DType::kBFloat16;
  if (tensor.dtype == "float16") return DType::kFloat16;
  if (tensor.dtype.starts_with("float8")) return DType::kFloat8;
  return tensor.element_bytes == 1 ? DType::kUInt8 : DType::kFloat32;
}

// "mm" of "aten.mm.default".
std::string_view name_in(std::string_view op) {
  cut_off(op, ".");
  return cut_off(op, ".");
}

template <std::size_t kCount>
bool contains(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::int64_t extent(const CapturedTensor& tensor, std::size_t from_end) {
  return tensor.shape.size() < from_end ? 1 : tensor.shape[tensor.shape.size() - from_end];
}

// Whether the matrix in the last two dimensions is stored by columns.
bool by_columns(const CapturedTensor& tensor) {
  const std::size_t rank = tensor.strides.size();
  return rank >= 2 && tensor.strides[rank - 1] != 1 && tensor.strides[rank - 2] == 1;
}

std::int64_t product_before(const CapturedTensor& tensor, std::size_t last) {
  std::int64_t count = 1;
  for (std::size_t i = 0; i + last < tensor.shape.size(); ++i) count *= tensor.shape[i];
  return count;
}

// a [.., m, k] times b [.., k, n]. Experts: tokens [t, k] of all experts times [experts, k, n], or
// [k, t] times [t, n] for each expert's rows.
KernelWork gemm(const CapturedTensor& a, const CapturedTensor& b, const CapturedTensor& out,
                bool accumulates, bool grouped) {
  std::int64_t groups = product_before(out, 2);
  std::int64_t m = extent(a, 2), n = extent(b, 1), k = extent(a, 1);
  KernelWork work(WorkKind::kGemm);
  OpRecord& record = work.record;
  if (grouped && b.shape.size() == 3) {  // forward and dgrad
    groups = b.shape[0];
    m /= std::max<std::int64_t>(groups, 1);
  } else if (grouped) {  // wgrad
    k /= std::max<std::int64_t>(groups, 1);
  }
  int variant = (by_columns(a) ? kTransposeA : 0) | (by_columns(b) ? kTransposeB : 0);
  if (accumulates) variant |= kAccumulate;
  if (out.dtype == "float32" && a.dtype != "float32") variant |= kOutputFloat32;
  record.key = {
      OpKind::kMatmul, dtype_of(a), static_cast<std::uint8_t>(variant), {groups, m, n, k}};
  if (grouped) record.label.part = ModelPart::kExperts;
  record.flops = 2.0 * static_cast<double>(groups) * static_cast<double>(m) *
                 static_cast<double>(n) * static_cast<double>(k);
  record.bytes = a.bytes() + b.bytes() + (accumulates ? 2 : 1) * out.bytes();
  return work;
}

// q [batch, heads, queries, width], k [batch, kv heads, keys, width].
KernelWork attention(const CapturedTensor& q, const CapturedTensor& k, const CapturedKernel& kernel,
                     bool backward) {
  const std::int64_t batch = extent(q, 4), heads = extent(q, 3), queries = extent(q, 2);
  const std::int64_t keys = extent(k, 2), kv_heads = extent(k, 3), width = extent(q, 1);
  KernelWork work(WorkKind::kAttention);
  work.record.key = {backward ? OpKind::kFlashBackward : OpKind::kFlashForward,
                     dtype_of(q),
                     0,
                     {batch, queries, heads, kv_heads, width, keys > queries ? keys : 0}};
  const double pairs = static_cast<double>(batch * heads) * static_cast<double>(queries) *
                       (static_cast<double>(keys) - (static_cast<double>(queries) - 1) / 2);
  work.record.flops = 2.0 * (backward ? 5 : 2) * pairs * static_cast<double>(width);
  work.record.bytes = bytes_of(kernel.in) + bytes_of(kernel.out);
  const bool causal =
      std::find(kernel.scalars.begin(), kernel.scalars.end(), 1.0) != kernel.scalars.end();
  if (!causal) work.times = 2;
  work.is_rough =
      kernel.op.find("flash") == std::string::npos && kernel.op.find("cudnn") == std::string::npos;
  return work;
}

KernelWork by_bytes(const CapturedKernel& kernel, std::string_view name) {
  double read = bytes_of(kernel.in);
  const double written = bytes_of(kernel.out);
  if (contains(kWriteOnly, name)) read = 0;
  if (contains(kGathers, name) && !kernel.in.empty()) {
    read = read - kernel.in.front().bytes() + std::min(kernel.in.front().bytes(), written);
  }
  KernelWork work(WorkKind::kElementwise);
  // Names of Inductor's kernels begin with their kind, and list the ops that were fused.
  const bool reduces =
      kernel.op.starts_with(kInductor)
          ? !name.starts_with("triton_poi")
          : std::any_of(kReductionWords.begin(), kReductionWords.end(), [&](std::string_view word) {
              return name.find(word) != std::string_view::npos;
            });
  if (reduces) work.kind = WorkKind::kReduction;
  work.record.bytes = kernel.bytes > 0 ? static_cast<double>(kernel.bytes) : read + written;
  // Costs of these kinds follow from bytes alone: no profile has a sample of such dimensions.
  work.record.key = {reduces ? OpKind::kColumnSum : OpKind::kScale, DType::kUInt8, 0, {}};
  return work;
}

}  // namespace

KernelWork work_of(const CapturedKernel& kernel) {
  const std::string_view name = name_in(kernel.op);
  const auto& in = kernel.in;
  if (kernel.copies_to_device || kernel.copies_to_host) {
    KernelWork work(WorkKind::kHostCopy);
    work.record.bytes = bytes_of(kernel.out);
    return work;
  }
  if (!kernel.out.empty()) {
    const bool is_grouped = name == "_grouped_mm";
    if ((name == "mm" || name == "bmm" || name == "_scaled_mm" || is_grouped) && in.size() >= 2) {
      return gemm(in[0], in[1], kernel.out[0], false, is_grouped);
    }
    if ((name == "addmm" || name == "baddbmm" || name == "addmm_") && in.size() >= 3) {
      const bool adds_rows = in[0].shape.size() < 2;  // a bias
      return gemm(in[1], in[2], kernel.out[0], !adds_rows, false);
    }
    if (name.find("attention") != std::string_view::npos && in.size() >= 3) {
      const bool backward = name.find("backward") != std::string_view::npos;
      return attention(in[backward ? 1 : 0], in[backward ? 2 : 1], kernel, backward);
    }
  }
  KernelWork work = by_bytes(kernel, name);
  if (name.starts_with("_fused_adam") || name.starts_with("_fused_sgd")) {
    work.kind = WorkKind::kOptimizer;
  } else if (!kernel.op.starts_with("aten.") && !kernel.op.starts_with("prims.") &&
             !kernel.op.starts_with("fsdp.") && !kernel.op.starts_with(kInductor)) {
    work.kind = WorkKind::kUnknown;
    work.is_rough = true;
  }
  return work;
}

}  // namespace tpsim
