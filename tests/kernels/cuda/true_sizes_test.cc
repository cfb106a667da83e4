// Ops at the sizes of a rank of BLOOM-176B, BLOOM-7b1 and similar models: some of their rows and
// columns compared with float64. An emulated GPU runs small sizes.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <utility>

#include "core/base/half_floats.h"
#include "kernels/checks/op_check.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "kernels/cuda/runtime/gpu_facts.h"
#include "kernels/slow/slow_device.h"

namespace tpsim {
namespace {

bool is_emulated() { return gpu_facts().name == "emulated GPU"; }
// Returns the real size, or a small one on the emulated GPU.
std::int64_t size(std::int64_t real, std::int64_t small) { return is_emulated() ? small : real; }

constexpr std::size_t kSamples = 64;

// Returns the first and the last of `count` indices and others between, in order.
std::vector<std::int64_t> samples_of(std::int64_t count) {
  std::set<std::int64_t> some{0, count - 1};
  const std::size_t most = std::min(kSamples, static_cast<std::size_t>(count));
  std::uint64_t drawn = 1;
  while (some.size() < most) {
    drawn = drawn * 6364136223846793005U + 1442695040888963407U;
    some.insert(static_cast<std::int64_t>((drawn >> 11) % static_cast<std::uint64_t>(count)));
  }
  return {some.begin(), some.end()};
}

// A whole tensor on the host, in its dtype.
class Stored {
 public:
  Stored(Device& device, const Tensor& x)
      : dtype_(x.dtype()), cols_(x.cols()), bytes_(static_cast<std::size_t>(x.bytes())) {
    device.download(x, bytes_);
  }
  double at(std::int64_t row, std::int64_t col) const { return element(row * cols_ + col); }
  // Element of op(x), for a matrix x in this tensor.
  double at(const Matrix& x, std::int64_t row, std::int64_t col) const {
    if (x.transposed) std::swap(row, col);
    return element(x.offset + row * x.row_stride + col);
  }
  double element(std::int64_t i) const {
    double value = 0;
    decode(bytes_.data() + i * size_of(dtype_), dtype_, {&value, 1});
    return value;
  }
  friend bool operator==(const Stored&, const Stored&) = default;  // bit for bit

 private:
  DType dtype_;
  std::int64_t cols_;
  std::vector<std::byte> bytes_;
};

// Error relative to the largest element, since sums of normal numbers may be near zero.
void check_close(const std::vector<double>& actual, const std::vector<double>& expected,
                 double tolerance) {
  REQUIRE(actual.size() == expected.size());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    REQUIRE(std::isfinite(actual[i]));
    largest = std::max(largest, std::fabs(expected[i]));
    difference = std::max(difference, std::fabs(actual[i] - expected[i]));
  }
  CHECK(difference <= tolerance * largest);
}

constexpr double kOfBf16 = 8e-3, kOfFloat32 = 1e-4;

void check_product(Device& device, int variant, std::int64_t m, std::int64_t n, std::int64_t k) {
  const OpKey key{
      OpKind::kMatmul, DType::kBFloat16, static_cast<std::uint8_t>(variant), {1, m, n, k}};
  INFO(to_string(key) << " variant " << variant);
  const Op op = make_op(device, key, 3);
  const auto& product = std::get<Matmul>(op);
  const Stored a(device, product.a.tensor), b(device, product.b.tensor);
  const Stored before(device, product.c.tensor);
  device.run(op);
  const Stored after(device, product.c.tensor);
  std::vector<double> actual, expected;
  const std::vector<std::int64_t> rows = samples_of(m), cols = samples_of(n);
  for (std::size_t s = 0; s < std::max(rows.size(), cols.size()); ++s) {
    const std::int64_t i = rows[s % rows.size()], j = cols[(s * 7) % cols.size()];
    double sum = 0;
    for (std::int64_t d = 0; d < k; ++d) {
      sum += a.at(product.a, i, d) * b.at(product.b, d, j);
    }
    actual.push_back(after.at(product.c, i, j));
    const double old = product.beta == 0 ? 0 : product.beta * before.at(product.c, i, j);
    expected.push_back(old + product.alpha * sum);
  }
  check_close(actual, expected, product.c.tensor.dtype() == DType::kFloat32 ? kOfFloat32 : kOfBf16);
}

// Copies some rows of the GPU tensor `x` to the slow device; undefined if x is undefined.
Tensor rows_of(Device& device, SlowDevice& slow, const Tensor& x,
               const std::vector<std::int64_t>& rows) {
  if (!x.defined()) return x;
  const auto count = static_cast<std::int64_t>(rows.size());
  const bool is_vector = x.shape().rank() == 1;
  const std::int64_t width = is_vector ? 1 : x.cols();
  const Shape shape = is_vector ? Shape{count} : Shape{count, width};
  Tensor some = slow.allocate(shape, x.dtype(), MemoryCategory::kWorkspace, "rows");
  std::vector<std::byte> bytes(static_cast<std::size_t>(width * size_of(x.dtype())));
  for (std::int64_t i = 0; i < count; ++i) {
    device.download(x.slice(rows[static_cast<std::size_t>(i)] * width, width), bytes);
    slow.upload(bytes, some.slice(i * width, width));
  }
  return some;
}

// Copies a whole tensor, for operands that all rows share.
Tensor whole_of(Device& device, SlowDevice& slow, const Tensor& x) {
  if (!x.defined()) return x;
  Tensor copy = slow.allocate(x.shape(), x.dtype(), MemoryCategory::kWorkspace, "whole");
  std::vector<std::byte> bytes(static_cast<std::size_t>(x.bytes()));
  device.download(x, bytes);
  slow.upload(bytes, copy);
  return copy;
}

// Checks an op with independent rows. `by_row`: tensors of which only the sampled rows are copied.
template <class OpType>
void check_rows(Device& device, const OpKey& key, Tensor OpType::*result,
                std::initializer_list<Tensor OpType::*> by_row,
                std::initializer_list<Tensor OpType::*> shared) {
  INFO(to_string(key) << " variant " << int{key.variant});
  const Op op = make_op(device, key, 3);
  const auto& on_gpu = std::get<OpType>(op);
  const Tensor& of_all = on_gpu.*result;
  const std::vector<std::int64_t> rows = samples_of(of_all.rows());
  SlowDevice slow;
  OpType few = on_gpu;
  for (Tensor OpType::*one : by_row) few.*one = rows_of(device, slow, on_gpu.*one, rows);
  for (Tensor OpType::*one : shared) few.*one = whole_of(device, slow, on_gpu.*one);
  device.run(op);
  slow.run(few);
  check_close(downloaded(slow, rows_of(device, slow, of_all, rows)), downloaded(slow, few.*result),
              kOfBf16);
}

OpKey key_of(OpKind kind, int variant, const OpDims& dims) {
  return {kind, DType::kBFloat16, static_cast<std::uint8_t>(variant), dims};
}

constexpr int kIntoFloat32 = static_cast<int>(DType::kFloat32);

// Sums over all rows, for some columns.
void check_column_sums(Device& device, std::int64_t rows, std::int64_t cols) {
  const OpKey key = key_of(OpKind::kColumnSum, kIntoFloat32, {rows, cols});
  INFO(to_string(key));
  const Op op = make_op(device, key, 3);
  const auto& sum = std::get<ColumnSum>(op);
  const Stored x(device, sum.x), before(device, sum.sums);
  device.run(op);
  const Stored after(device, sum.sums);
  std::vector<double> actual, expected;
  for (const std::int64_t col : samples_of(cols)) {
    double of_column = before.at(0, col);
    for (std::int64_t row = 0; row < rows; ++row) of_column += x.at(row, col);
    actual.push_back(after.at(0, col));
    expected.push_back(of_column);
  }
  check_close(actual, expected, kOfFloat32);
}

// The gain's gradient, which depends on all rows.
void check_norm_backward(Device& device, std::int64_t rows, std::int64_t cols) {
  const OpKey key = key_of(OpKind::kNormBackward, 2 | kIntoFloat32 << 2, {rows, cols});
  INFO(to_string(key));
  const Op op = make_op(device, key, 3);
  const auto& norm = std::get<NormBackward>(op);
  const Stored dy(device, norm.dy), x(device, norm.x), before(device, norm.dgain);
  const std::vector<double> mean = downloaded(device, norm.mean),
                            rstd = downloaded(device, norm.rstd);
  device.run(op);
  const Stored after(device, norm.dgain);
  std::vector<double> actual, expected;
  for (const std::int64_t col : samples_of(cols)) {
    double gradient = before.at(0, col);
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto r = static_cast<std::size_t>(row);
      gradient += dy.at(row, col) * (x.at(row, col) - mean[r]) * rstd[r];
    }
    actual.push_back(after.at(0, col));
    expected.push_back(gradient);
  }
  check_close(actual, expected, kOfFloat32);
}

void check_adamw(Device& device, std::int64_t elements) {
  const OpKey key = key_of(OpKind::kAdamW, kIntoFloat32, {elements});
  INFO(to_string(key));
  const Op op = make_op(device, key, 3);
  const auto& update = std::get<AdamW>(op);
  const std::vector<std::int64_t> some = samples_of(elements);
  SlowDevice slow;
  AdamW few = update;
  for (Tensor AdamW::*one :
       {&AdamW::master, &AdamW::momentum, &AdamW::variance, &AdamW::gradient, &AdamW::weights}) {
    few.*one = rows_of(device, slow, update.*one, some);
  }
  device.run(op);
  slow.run(few);
  check_close(downloaded(slow, rows_of(device, slow, update.master, some)),
              downloaded(slow, few.master), kOfFloat32);
}

void check_whole(Device& device, const OpKey& key) {
  for (const ResultError& e : errors_against_slow(device, key, 5)) {
    INFO(to_string(key) << ": " << e.result << " is off by " << e.error);
    CHECK(e.within_tolerance());
  }
}

std::unique_ptr<CudaDevice> gpu() { return std::move(CudaDevice::create()).value(); }

}  // namespace

TEST_CASE("GEMMs at the true size of models agree with float64", "[shapes]") {
  const auto device = gpu();
  const std::int64_t tokens = size(2048, 48), hidden = size(14336, 96), ffn = size(14336, 128);
  constexpr int kWeightGradient = kTransposeA | kAccumulate | kOutputFloat32;
  for (const std::int64_t out : {3 * hidden / 4, ffn}) {
    check_product(*device, kTransposeB, tokens, out, hidden);
    check_product(*device, 0, tokens, hidden, out);
    check_product(*device, kWeightGradient, out, hidden, tokens);
  }
  check_product(*device, kTransposeB, size(8192, 40), size(250880, 300), size(4096, 32));
}

TEST_CASE("row by row ops at the true size of models agree with float64", "[shapes]") {
  const auto device = gpu();
  const std::int64_t tokens = size(2048, 70), hidden = size(14336, 200), ffn = size(14336, 160);
  check_rows<NormForward>(
      *device, key_of(OpKind::kNormForward, 0, {tokens, hidden}), &NormForward::y,
      {&NormForward::x, &NormForward::y, &NormForward::mean, &NormForward::rstd},
      {&NormForward::gain, &NormForward::bias});
  check_rows<NormBackward>(*device,
                           key_of(OpKind::kNormBackward, 2 | kIntoFloat32 << 2, {tokens, hidden}),
                           &NormBackward::dx,
                           {&NormBackward::dy, &NormBackward::x, &NormBackward::mean,
                            &NormBackward::rstd, &NormBackward::residual, &NormBackward::dx},
                           {&NormBackward::gain, &NormBackward::dgain, &NormBackward::dbias});
  check_rows<BiasResidual>(
      *device, key_of(OpKind::kBiasResidual, 3, {tokens, hidden}), &BiasResidual::y,
      {&BiasResidual::x, &BiasResidual::residual, &BiasResidual::y}, {&BiasResidual::bias});
  check_rows<BiasGeluForward>(*device, key_of(OpKind::kBiasGeluForward, 1, {tokens, ffn}),
                              &BiasGeluForward::y, {&BiasGeluForward::x, &BiasGeluForward::y},
                              {&BiasGeluForward::bias});
  check_rows<BiasGeluBackward>(*device, key_of(OpKind::kBiasGeluBackward, 1, {tokens, ffn}),
                               &BiasGeluBackward::dx,
                               {&BiasGeluBackward::dy, &BiasGeluBackward::x, &BiasGeluBackward::dx},
                               {&BiasGeluBackward::bias});
  check_rows<SwigluForward>(*device, key_of(OpKind::kSwigluForward, 0, {tokens, ffn}),
                            &SwigluForward::y, {&SwigluForward::x, &SwigluForward::y}, {});
  check_rows<SwigluBackward>(*device, key_of(OpKind::kSwigluBackward, 0, {tokens, ffn}),
                             &SwigluBackward::dx,
                             {&SwigluBackward::dy, &SwigluBackward::x, &SwigluBackward::dx}, {});
  check_rows<VocabMax>(*device, key_of(OpKind::kVocabMax, 0, {size(8192, 70), size(250880, 900)}),
                       &VocabMax::max, {&VocabMax::logits, &VocabMax::max}, {});
}

TEST_CASE("sums over rows at the true size of models agree with float64", "[shapes]") {
  const auto device = gpu();
  check_column_sums(*device, size(2048, 300), size(14336, 200));
  check_column_sums(*device, size(16384, 300), size(8192, 72));
  check_norm_backward(*device, size(2048, 300), size(14336, 200));
  check_norm_backward(*device, size(16384, 300), size(4096, 64));
  check_adamw(*device, size(2'500'000'000, 100'003));
}

// Gradients of a head's vectors in float64, from the query and key rows that attend to each other.
class AttentionRows {
 public:
  AttentionRows(Device& device, const FlashBackward& op)
      : op_(op),
        q_(device, op.q.tensor),
        k_(device, op.k.tensor),
        v_(device, op.v.tensor),
        o_(device, op.o.tensor),
        d_o_(device, op.d_o.tensor),
        log_sum_(downloaded(device, op.log_sum)) {}

  double dq(std::int64_t query, std::int64_t head, std::int64_t d) const {
    double sum = 0;
    for (std::int64_t key = 0; key <= query; ++key) {
      sum += pair(query, key, head).slope * at(k_, op_.k, key, head / group(), d);
    }
    return sum * op_.scale;
  }
  // dk and dv.
  std::array<double, 2> of_key(std::int64_t key, std::int64_t kv_head, std::int64_t d) const {
    double dk = 0, dv = 0;
    for (std::int64_t head = kv_head * group(); head < (kv_head + 1) * group(); ++head) {
      for (std::int64_t query = key; query < op_.dims.seq; ++query) {
        const Pair p = pair(query, key, head);
        dk += p.slope * at(q_, op_.q, query, head, d);
        dv += p.probability * at(d_o_, op_.d_o, query, head, d);
      }
    }
    return {dk * op_.scale, dv};
  }

 private:
  struct Pair {
    double probability, slope;
  };
  std::int64_t group() const { return op_.dims.heads / op_.dims.kv_heads; }
  static double at(const Stored& x, const Heads& heads, std::int64_t position, std::int64_t head,
                   std::int64_t d) {
    return x.element(heads.first(position, 0, head) + d);
  }
  Pair pair(std::int64_t query, std::int64_t key, std::int64_t head) const {
    double score = 0, dprob = 0, along = 0;
    for (std::int64_t d = 0; d < op_.dims.head_dim; ++d) {
      score += at(q_, op_.q, query, head, d) * at(k_, op_.k, key, head / group(), d);
      const double d_o = at(d_o_, op_.d_o, query, head, d);
      dprob += d_o * at(v_, op_.v, key, head / group(), d);
      along += d_o * at(o_, op_.o, query, head, d);
    }
    const double log_sum = log_sum_[static_cast<std::size_t>(head * op_.dims.seq + query)];
    const double probability = std::exp(op_.scale * score - log_sum);
    return {probability, probability * (dprob - along)};
  }

  const FlashBackward& op_;
  Stored q_, k_, v_, o_, d_o_;
  std::vector<double> log_sum_;
};

// Key blocks add to dq in order while all SMs are busy. Checks that results are bit-reproducible
// and that rows agree with float64.
void check_contention(Device& device, const OpDims& dims) {
  const OpKey key = key_of(OpKind::kFlashBackward, 0, dims);
  INFO(to_string(key));
  const Op op = make_op(device, key, 3);
  const auto& flash = std::get<FlashBackward>(op);
  const AttentionRows rows(device, flash);
  const auto bits = [&] {
    std::vector<Stored> all;
    for (const Heads* x : {&flash.dq, &flash.dk, &flash.dv}) all.emplace_back(device, x->tensor);
    return all;
  };
  device.run(op);
  const std::vector<Stored> first = bits();
  for (std::int64_t i = 1; i < size(20, 2); ++i) {
    device.run(op);
    REQUIRE(bits() == first);
  }
  std::array<std::vector<double>, 3> actual, expected;
  std::int64_t sample = 0;
  for (const std::int64_t position : samples_of(flash.dims.seq)) {
    const std::int64_t head = sample % flash.dims.heads, d = sample * 37 % flash.dims.head_dim;
    ++sample;
    actual[0].push_back(first[0].element(flash.dq.first(position, 0, head) + d));
    expected[0].push_back(rows.dq(position, head, d));
    const std::int64_t kv_head = head % flash.dims.kv_heads;
    const auto [dk, dv] = rows.of_key(position, kv_head, d);
    actual[1].push_back(first[1].element(flash.dk.first(position, 0, kv_head) + d));
    actual[2].push_back(first[2].element(flash.dv.first(position, 0, kv_head) + d));
    expected[1].push_back(dk);
    expected[2].push_back(dv);
  }
  for (const std::size_t i : {0, 1, 2}) check_close(actual[i], expected[i], 2 * kOfBf16);
}

TEST_CASE("attention's backward gives the same bits twenty times, and float64's rows",
          "[shapes][contention]") {
  const auto device = gpu();
  check_contention(*device, {1, size(2048, 300), size(32, 2), size(32, 2), 128});
  check_contention(*device, {1, size(8192, 300), size(32, 4), size(8, 2), 128});
  check_contention(*device, {1, size(4096, 300), 8, 1, 128});
}

TEST_CASE("attention at the true size of models agrees with float64", "[shapes]") {
  const auto device = gpu();
  const std::int64_t seq = size(2048, 300);
  for (const int alibi : {0, 1}) {
    check_whole(*device, key_of(OpKind::kFlashForward, alibi, {1, seq, 2, 2, 128}));
    check_whole(*device, key_of(OpKind::kFlashBackward, alibi, {1, seq, 2, 1, 128}));
    check_whole(*device, key_of(OpKind::kSoftmaxForward, alibi, {2, seq, seq}));
  }
  check_whole(*device, key_of(OpKind::kSoftmaxBackward, 0, {2, seq, seq}));
  check_whole(*device, key_of(OpKind::kFlashForward, 0, {1, size(8192, 400), 1, 1, 128}));
}

}  // namespace tpsim
