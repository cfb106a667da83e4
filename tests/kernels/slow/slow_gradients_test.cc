// The slow device's backward ops compared with finite differences of its forward ops.
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/checks/op_cases.h"
#include "kernels/slow/slow_device.h"
#include "tests/test_label.h"

namespace tpsim {
namespace {

using test::kTest;
using Values = std::vector<double>;

// A scalar function of the slow device's memory: sum of weights * output after running ops.
class Objective {
 public:
  Objective(SlowDevice& device, std::vector<Op> ops, Tensor output, Values weights)
      : device_(device), ops_(std::move(ops)), output_(output), weights_(std::move(weights)) {}

  // Central difference for element i of `input`. Both tensors are restored, since ops may work in
  // place.
  double slope(const Tensor& input, std::size_t i) {
    constexpr double kStep = 1e-5;
    return (at(input, i, kStep) - at(input, i, -kStep)) / (2 * kStep);
  }

 private:
  double at(const Tensor& input, std::size_t i, double step) {
    const Values input_before = copy(input), output_before = copy(output_);
    device_.values(input)[i] += step;
    for (const Op& op : ops_) device_.run(op);
    double sum = 0;
    for (std::size_t k = 0; k < weights_.size(); ++k)
      sum += weights_[k] * device_.values(output_)[k];
    restore(output_, output_before);
    restore(input, input_before);
    return sum;
  }

  Values copy(const Tensor& x) const {
    const auto values = device_.values(x);
    return {values.begin(), values.end()};
  }
  void restore(const Tensor& x, const Values& values) const {
    std::copy(values.begin(), values.end(), device_.values(x).begin());
  }

  SlowDevice& device_;
  std::vector<Op> ops_;
  Tensor output_;
  Values weights_;
};

Values values_of(SlowDevice& device, const Tensor& x) {
  const auto values = device.values(x);
  return {values.begin(), values.end()};
}

Tensor like(SlowDevice& device, const Tensor& x) {
  return device.allocate(x.shape(), x.dtype(), MemoryCategory::kWorkspace, "like");
}

void check_slopes(Objective& objective, const Tensor& input, const Values& gradient) {
  REQUIRE(gradient.size() == static_cast<std::size_t>(input.elements()));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    CHECK(objective.slope(input, i) == Approx(gradient[i]).epsilon(1e-6).margin(1e-7));
  }
}

template <class AnyOp>
AnyOp made(SlowDevice& device, int variant, OpDims dims) {
  const OpKey key{kKindOf<AnyOp>, DType::kFloat32, static_cast<std::uint8_t>(variant), dims};
  return std::get<AnyOp>(make_op(device, key, 11));
}

// Returns the values that a "+=" op added.
Values added(SlowDevice& device, const Tensor& sums, const Values& before) {
  Values difference = values_of(device, sums);
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= before[i];
  return difference;
}

}  // namespace

TEST_CASE("the norms' backward is the slope of their forward") {
  for (int kind = 0; kind < 2; ++kind) {
    SlowDevice device;
    const auto b = made<NormBackward>(device, kind, {3, 5});
    const bool centred = b.kind == NormKind::kLayerNorm;
    NormForward f{.kind = b.kind,
                  .x = b.x,
                  .gain = b.gain,
                  .bias = centred ? like(device, b.gain) : Tensor(),
                  .y = like(device, b.x),
                  .mean = like(device, b.rstd),
                  .rstd = like(device, b.rstd),
                  .label = kTest};
    const Values gain_before = values_of(device, b.dgain);
    const Values bias_before = centred ? values_of(device, b.dbias) : Values();
    device.run(b);
    Objective objective(device, {f}, f.y, values_of(device, b.dy));
    check_slopes(objective, b.x, values_of(device, b.dx));
    check_slopes(objective, b.gain, added(device, b.dgain, gain_before));
    if (centred) check_slopes(objective, f.bias, added(device, b.dbias, bias_before));
  }
}

TEST_CASE("the softmax's backward is the slope of its forward in the unscaled scores") {
  for (const std::int64_t keys : {5, 9}) {
    SlowDevice device;
    const auto f = made<SoftmaxForward>(device, 1, {2, 5, keys});
    const Tensor scores = like(device, f.scores);
    device.run(Copy{f.scores, scores, kTest});
    device.run(f);
    const auto weights = made<Copy>(device, 0, {10 * keys}).from.reshaped({2, 5, keys});
    const Values dprobs = values_of(device, weights);
    device.run(
        SoftmaxBackward{.probs = f.scores, .dprobs = weights, .scale = f.scale, .label = kTest});
    const Values gradient = values_of(device, weights);
    Objective objective(device, {Copy{scores, f.scores, kTest}, f}, f.scores, dprobs);
    check_slopes(objective, scores, gradient);
  }
}

TEST_CASE("flash attention's backward is the slope of its forward") {
  for (const OpDims& dims : {OpDims{2, 4, 4, 2, 3}, {2, 3, 4, 2, 3, 7}}) {
    SlowDevice device;
    const auto b = made<FlashBackward>(device, 1, dims);
    device.run(b);
    const FlashForward f{.dims = b.dims,
                         .q = b.q,
                         .k = b.k,
                         .v = b.v,
                         .o = b.o,
                         .log_sum = b.log_sum,
                         .slopes = b.slopes,
                         .scale = b.scale,
                         .label = kTest};
    Objective objective(device, {f}, b.o.tensor, values_of(device, b.d_o.tensor));
    check_slopes(objective, b.q.tensor, values_of(device, b.dq.tensor));
    check_slopes(objective, b.k.tensor, values_of(device, b.dk.tensor));
    check_slopes(objective, b.v.tensor, values_of(device, b.dv.tensor));
  }
}

TEST_CASE("queries that are the last of the keys have the same results as among all queries") {
  SlowDevice device;
  const auto all = made<FlashForward>(device, 1, {2, 7, 4, 2, 3});
  device.run(all);
  const Values expected = values_of(device, all.o.tensor);
  const auto skip = [](Heads x) {
    x.offset += 4 * x.position_stride;
    return x;
  };
  FlashForward last = all;
  last.dims.seq = 3;
  last.dims.keys = 7;
  last.q = skip(all.q);
  last.o = skip(all.o);
  last.log_sum = device.allocate({2, 4, 3}, DType::kFloat32, MemoryCategory::kWorkspace, "sums");
  device.run(Fill{all.o.tensor, 0.0F, kTest});
  device.run(last);
  const Values actual = values_of(device, all.o.tensor);
  const std::size_t first = actual.size() / 7 * 4;
  for (std::size_t i = first; i < actual.size(); ++i) CHECK(actual[i] == Approx(expected[i]));
  const OpRecord record = describe(last);
  CHECK(record.flops == Approx(describe(all).flops * (5 + 6 + 7) / 28));
}

TEST_CASE("flash attention equals softmax of scores times values") {
  SlowDevice device;
  const auto f = made<FlashForward>(device, 1, {1, 6, 2, 2, 3});
  device.run(f);
  const Tensor scores =
      device.allocate({2, 6, 6}, DType::kFloat32, MemoryCategory::kWorkspace, "scores");
  const Tensor out = like(device, f.o.tensor);
  const auto by_head = [](const Heads& x, bool transposed) {
    return Matrix{.tensor = x.tensor,
                  .rows = 6,
                  .cols = 3,
                  .row_stride = x.position_stride,
                  .inner_stride = x.head_stride,
                  .transposed = transposed};
  };
  const auto square = [&](const Tensor& x) {
    return Matrix{.tensor = x, .rows = 6, .cols = 6, .row_stride = 6, .inner_stride = 36};
  };
  device.run(
      Matmul{by_head(f.q, false), by_head(f.k, true), square(scores), 1, 2, 1, 0, {}, kTest});
  device.run(SoftmaxForward{
      .scores = scores, .slopes = f.slopes, .heads = 2, .scale = f.scale, .label = kTest});
  Heads o = f.o;
  o.tensor = out;
  device.run(Matmul{square(scores), by_head(f.v, false), by_head(o, false), 1, 2, 1, 0, {}, kTest});
  const Values expected = values_of(device, f.o.tensor), actual = values_of(device, out);
  for (std::size_t i = 0; i < actual.size(); ++i) CHECK(actual[i] == Approx(expected[i]));
}

TEST_CASE("the activations' backward is the slope of their forward") {
  SlowDevice device;
  const auto g = made<BiasGeluBackward>(device, 1, {3, 7});
  device.run(g);
  const BiasGeluForward gelu{g.x, g.bias, like(device, g.x), g.kind, kTest};
  Objective of_gelu(device, {gelu}, gelu.y, values_of(device, g.dy));
  check_slopes(of_gelu, g.x, values_of(device, g.dx));

  const auto s = made<SwigluBackward>(device, 0, {3, 7});
  device.run(s);
  const SwigluForward swiglu{s.x, like(device, s.dy), s.kind, s.limit, kTest};
  Objective of_swiglu(device, {swiglu}, swiglu.y, values_of(device, s.dy));
  check_slopes(of_swiglu, s.x, values_of(device, s.dx));
}

TEST_CASE("the inverse rotation is the transpose of the rotation") {
  SlowDevice device;
  const auto r = made<Rotary>(device, 0, {5, 2, 4});
  const Tensor gradient = made<Copy>(device, 0, {40}).from;
  const Values weights = values_of(device, gradient);
  Rotary inverse = r;
  inverse.inverse = true;
  inverse.x.tensor = gradient.reshaped(r.x.tensor.shape());
  device.run(inverse);
  Objective objective(device, {r}, r.x.tensor, weights);
  check_slopes(objective, r.x.tensor, values_of(device, gradient));
}

TEST_CASE("permute and unpermute have the slopes of their backward") {
  for (const std::int64_t per_token : {1, 2}) {
    SlowDevice device;
    const Tensor logits = made<RouteForward>(device, 0, {5, 3, 2, per_token}).logits;
    auto route = made<RouteForward>(device, 0, {5, 3, 2, per_token});
    route.logits = logits;
    device.run(route);
    const auto dispatch = made<PermuteTokens>(device, 1, {5, 4, 3, 2, per_token});
    const PermuteTokens in{dispatch.x, Tensor(), route.choices, dispatch.y, per_token, kTest};
    const UnpermuteTokens out{in.y, route.weights, route.slots, like(device, in.x), kTest};
    const Tensor dy = made<Copy>(device, 0, {20}).from.reshaped({5, 4});

    // Identity experts.
    device.run(in);
    const Tensor dweights = like(device, route.weights), dlogits = like(device, logits);
    device.run(RouteWeightGradient{dy, in.y, route.slots, dweights, kTest});
    device.run(RouteBackward{logits, route.weights, route.experts, dweights, dlogits, route.router,
                             kTest});
    const Tensor dslots = like(device, in.y), dx = like(device, in.x);
    device.run(PermuteTokens{dy, route.weights, route.choices, dslots, per_token, kTest});
    device.run(UnpermuteTokens{dslots, Tensor(), route.slots, dx, kTest});

    Objective objective(device, {route, in, out}, out.y, values_of(device, dy));
    check_slopes(objective, in.x, values_of(device, dx));
    check_slopes(objective, logits, values_of(device, dlogits));
  }
}

TEST_CASE("the tables' backward is the slope of their forward") {
  SlowDevice device;
  auto e = made<EmbeddingBackward>(device, 0, {6, 3, 4});
  e.vocab_begin = 1;
  const Values table_before = values_of(device, e.dtable);
  device.run(e);
  const EmbeddingForward embed{e.tokens, like(device, e.dtable), like(device, e.dy), 1, kTest};
  Objective of_tokens(device, {embed}, embed.y, values_of(device, e.dy));
  check_slopes(of_tokens, embed.table, added(device, e.dtable, table_before));

  auto p = made<PositionBackward>(device, 0, {6, 3});
  p.dy = p.dy.reshaped({2, 3, 3});
  const Values positions_before = values_of(device, p.dtable);
  device.run(p);
  const PositionForward position{like(device, p.dy), like(device, p.dtable), kTest};
  Objective of_positions(device, {position}, position.x, values_of(device, p.dy));
  check_slopes(of_positions, position.table, added(device, p.dtable, positions_before));
}

TEST_CASE("the cross entropy's backward is the slope of the loss, zero in the padding") {
  SlowDevice device;
  auto sums = made<VocabSums>(device, 0, {3, 7});
  sums.columns = 5;
  const VocabMax max{sums.logits, sums.max, 5, kTest};
  const CrossEntropyLoss loss{
      sums.sums, device.allocate({3}, DType::kFloat32, MemoryCategory::kWorkspace, "loss"), kTest};
  Objective objective(device, {max, sums, loss}, loss.loss, {0.5, 0.5, 0.5});
  device.run(max);
  device.run(sums);
  const Tensor gradient = like(device, sums.logits);
  device.run(Copy{sums.logits, gradient, kTest});
  device.run(CrossEntropyBackward{.logits = gradient,
                                  .max = sums.max,
                                  .sums = sums.sums,
                                  .labels = sums.labels,
                                  .columns = 5,
                                  .scale = 0.5F,
                                  .label = kTest});
  check_slopes(objective, sums.logits, values_of(device, gradient));
}

}  // namespace tpsim
