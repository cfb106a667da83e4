#include "plans/questions/shape_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "costs/matmul_model.h"
#include "sim/step/simulate.h"

namespace tpsim {
namespace {

constexpr double kWorthTelling = 0.01;
constexpr std::int64_t kElementsOfALoad = 8;  // 16 bytes of bf16
constexpr std::int64_t kGoodMultiple = 64;    // k step of GEMMs and tile width of the libraries
constexpr double kReach = 0.125;              // tried sizes are within this relative distance
constexpr double kPoorFill = 0.85;            // fill of a GEMM's waves below which it is reported

// Returns the multiples of `step` near `from`, nearest first, without `from`.
std::vector<std::int64_t> nearby(std::int64_t from, std::int64_t step) {
  std::vector<std::int64_t> sizes;
  const auto reach = static_cast<std::int64_t>(kReach * static_cast<double>(from));
  for (std::int64_t n = (from - reach + step - 1) / step * step; n <= from + reach; n += step) {
    if (n > 0 && n != from) sizes.push_back(n);
  }
  std::stable_sort(sizes.begin(), sizes.end(), [&](std::int64_t a, std::int64_t b) {
    return std::abs(a - from) < std::abs(b - from);
  });
  return sizes;
}

class Linter {
 public:
  Linter(const Scenario& scenario, const Plan& plan) : scenario_(scenario), plan_(plan) {
    rate_ = rate_of(scenario.model);
  }

  std::vector<ShapeFinding> run() {
    check_head_dim();
    check_split("hidden", scenario_.model.hidden / plan_.degrees.tp, by_hidden());
    check_split("ffn_hidden", scenario_.model.ffn_hidden / plan_.degrees.tp, by_ffn());
    check_vocabulary();
    check_waves();
    return std::move(findings_);
  }

  double gain(const ModelSpec& model) const { return rate_of(model) / rate_ - 1; }

 private:
  // Returns model TFLOP/s per GPU; 0 if the plan is illegal for the model.
  double rate_of(const ModelSpec& model) const {
    Scenario changed = scenario_;
    changed.model = model;
    const Result<Prediction> predicted = simulate(changed, plan_);
    return predicted.ok() ? predicted->model_tflops_per_gpu : 0;
  }

  std::vector<ShapeChange> by_hidden() const {
    std::vector<ShapeChange> changes;
    const ModelSpec& model = scenario_.model;
    // Hidden sizes of whole tiles per tensor-parallel rank, with a head_dim of whole 16-byte loads.
    const std::int64_t step = std::lcm(kGoodMultiple * plan_.degrees.tp, model.attention.heads * 8);
    for (const std::int64_t hidden : nearby(model.hidden, step)) {
      changes.push_back({"hidden", model.hidden, hidden, with_hidden(model, hidden)});
    }
    return changes;
  }
  std::vector<ShapeChange> by_heads() const {
    std::vector<ShapeChange> changes;
    const ModelSpec& model = scenario_.model;
    for (std::int64_t dim = kElementsOfALoad; dim <= 256; dim += kElementsOfALoad) {
      const std::int64_t heads = model.hidden / dim;
      if (model.hidden % dim != 0 || heads == model.attention.heads) continue;
      changes.push_back({"heads", model.attention.heads, heads, with_heads(model, heads)});
    }
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
      return std::abs(a.to - a.from) < std::abs(b.to - b.from);
    });
    return changes;
  }
  std::vector<ShapeChange> by_ffn() const {
    std::vector<ShapeChange> changes;
    const ModelSpec& model = scenario_.model;
    for (const std::int64_t ffn : nearby(model.ffn_hidden, kGoodMultiple * plan_.degrees.tp)) {
      ModelSpec other = model;
      other.ffn_hidden = ffn;
      changes.push_back({"ffn_hidden", model.ffn_hidden, ffn, other});
    }
    return changes;
  }

  // Adds a finding with the nearest smaller and the nearest larger size that has a gain.
  void add(std::string what, const std::vector<ShapeChange>& changes) {
    ShapeFinding finding{std::move(what), {}};
    bool below = false, above = false;
    for (const ShapeChange& change : changes) {
      bool& seen = change.to < change.from ? below : above;
      if (seen) continue;
      const double gained = gain(change.model);
      // If the nearest size has no gain, a farther one may have one.
      if (gained < kWorthTelling) continue;
      seen = true;
      finding.better.push_back({change, gained});
    }
    findings_.push_back(std::move(finding));
  }

  void check_head_dim() {
    const std::int64_t dim = scenario_.model.attention.head_dim;
    if (dim % kElementsOfALoad == 0) return;
    std::vector<ShapeChange> changes = by_heads();
    for (ShapeChange& change : by_hidden()) changes.push_back(std::move(change));
    add(fmt::format("head_dim {} is not a multiple of {}: rows of {} bytes prevent 16-byte loads",
                    dim, kElementsOfALoad, 2 * dim),
        changes);
  }

  void check_split(const char* name, std::int64_t share, const std::vector<ShapeChange>& changes) {
    if (share % kGoodMultiple == 0) return;
    add(fmt::format("{} / tp = {} is not a multiple of {}, the GEMM tile size", name, share,
                    kGoodMultiple),
        changes);
  }

  // The reference model pads the vocab only to a multiple of tp, not to a multiple of 64 x tp.
  void check_vocabulary() {
    const std::int64_t tp = plan_.degrees.tp;
    const std::int64_t vocab = scenario_.model.vocab;
    const std::int64_t share = (vocab + tp - 1) / tp;
    if (share % kGoodMultiple == 0) return;
    const std::int64_t step = kGoodMultiple * tp;
    ModelSpec other = scenario_.model;
    other.vocab = (vocab + step - 1) / step * step;
    add(fmt::format("vocab size / tp = {} is not a multiple of {}", share, kGoodMultiple),
        {{"vocab", vocab, other.vocab, other}});
  }

  // Reports GEMMs that leave many SM slots idle in their last wave.
  void check_waves() {
    const ModelSpec& m = scenario_.model;
    const std::int64_t tp = plan_.degrees.tp;
    const std::int64_t tokens = plan_.micro_batch * m.seq;
    const std::int64_t qkv = (m.attention.heads + 2 * m.attention.kv_heads) * m.attention.head_dim;
    check_wave("attention.qkv", tokens, qkv / tp, m.hidden);
    check_wave("attention.out", tokens, m.hidden, m.attention.heads * m.attention.head_dim / tp);
    check_wave("mlp.up", tokens, m.ffn_hidden / tp, m.hidden);
    check_wave("mlp.down", tokens, m.hidden, m.ffn_hidden / tp);
  }

  void check_wave(const char* name, std::int64_t m, std::int64_t n, std::int64_t k) {
    const OpKey key{OpKind::kMatmul, plan_.dtype, kTransposeB, {1, m, n, k}};
    const MatmulBound bound = products_.bound(matmul_shape(key));
    const double fill = bound.waves / std::ceil(bound.waves);
    if (fill >= kPoorFill) return;
    add(fmt::format("{} ({}x{}x{}) runs {:.2f} waves of tiles; the partial last wave leaves {:.0f} "
                    "% of the SM slots idle",
                    name, m, n, k, bound.waves, 100 * (1 - fill)),
        by_hidden());
  }

  const Scenario& scenario_;
  const Plan& plan_;
  MatmulModel products_{scenario_.profile};
  double rate_ = 0;
  std::vector<ShapeFinding> findings_;
};

}  // namespace

void scale_planned(ModelSpec& model, std::int64_t hidden) {
  const std::int64_t old = model.hidden;
  const auto scale = [&](std::vector<PlannedOp>& ops) {
    for (PlannedOp& op : ops) {
      for (std::int64_t* size : {&op.width, &op.columns, &op.parameters, &op.moved}) {
        if (*size % old == 0) *size = *size / old * hidden;
      }
    }
  };
  scale(model.planned);
  for (BlockShape& block : model.other_blocks) scale(block.planned);
  for (OuterPart& part : model.ends.parts) {
    scale(part.layer_ops);
    scale(part.ops);
  }
}

ModelSpec with_hidden(ModelSpec model, std::int64_t hidden) {
  scale_planned(model, hidden);
  if (model.ffn_hidden % model.hidden == 0) {
    model.ffn_hidden = model.ffn_hidden / model.hidden * hidden;
  }
  model.hidden = hidden;
  model.attention.head_dim = hidden / model.attention.heads;
  return model;
}

ModelSpec with_heads(ModelSpec model, std::int64_t heads) {
  const bool all_alike = model.attention.kv_heads == model.attention.heads;
  model.attention.heads = heads;
  if (all_alike) model.attention.kv_heads = heads;
  model.attention.head_dim = model.hidden / heads;
  return model;
}

std::vector<ShapeFinding> shape_findings(const Scenario& scenario, const Plan& plan) {
  return Linter(scenario, plan).run();
}

}  // namespace tpsim
