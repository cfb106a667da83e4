#include "plans/questions/precision_break_even.h"

#include <algorithm>
#include <cmath>

#include "lowering/passes/quantization.h"
#include "plans/questions/shape_advice.h"
#include "sim/schedule/stage_costs.h"

namespace tpsim {
namespace {

constexpr std::int64_t kHeadStep = 8;    // elements of a 16-byte load
constexpr std::int64_t kWidthStep = 64;  // tile width of GEMM libraries

std::int64_t scaled(std::int64_t size, double factor, std::int64_t step) {
  if (size == 0) return 0;
  const double steps = factor * static_cast<double>(size) / static_cast<double>(step);
  return step * std::max<std::int64_t>(1, std::llround(steps));
}

Seconds block_time(const Scenario& scenario, const Plan& plan, std::int64_t hidden) {
  Scenario wide = scenario;
  wide.model = with_width(with_block_kind(scenario.model, 0), hidden, plan.degrees.tp);
  LayerPricer pricer(wide);
  const ChunkCost block = chunk_cost(pricer, plan, {.blocks = 1});
  Seconds time;
  for (const PhaseCost& task : block.tasks) time += task.time.alone();
  return time;
}

class Finder {
 public:
  Finder(const Scenario& scenario, const Plan& plan, Precision precision)
      : scenario_(scenario), with_(plan), without_(plan) {
    with_.precision = precision;
    without_.precision = Precision::kNone;
    without_.fp8_param_gather = false;
  }

  double gain(std::int64_t hidden) const {
    return block_time(scenario_, without_, hidden) / block_time(scenario_, with_, hidden) - 1;
  }

  // Walks from kWidestTried down, each time to 3/4 of the width, while the recipe gains. Then
  // bisects between the last width that gains and the first that does not.
  std::int64_t width() const {
    const std::int64_t step = kWidthStep * with_.degrees.tp;
    std::int64_t pays = 0, below = 0;
    for (std::int64_t wide = kWidestTried / step; wide > 0; wide = wide * 3 / 4) {
      if (gain(wide * step) <= 0) {
        below = wide;
        break;
      }
      pays = wide;
    }
    if (pays == 0) return 0;
    while (pays - below > 1) {
      const std::int64_t middle = (pays + below) / 2;
      (gain(middle * step) > 0 ? pays : below) = middle;
    }
    return pays * step;
  }

 private:
  const Scenario& scenario_;
  Plan with_, without_;
};

}  // namespace

ModelSpec with_width(ModelSpec model, std::int64_t hidden, std::int64_t tp) {
  if (hidden == model.hidden) return model;
  scale_planned(model, hidden);
  const double factor = static_cast<double>(hidden) / static_cast<double>(model.hidden);
  const std::int64_t cut = kWidthStep * tp;
  AttentionShape& attention = model.attention;
  LatentShape& latent = attention.latent;
  attention.head_dim = scaled(attention.head_dim, factor, kHeadStep);
  latent.nope_dim = scaled(latent.nope_dim, factor, kHeadStep);
  latent.rope_dim = scaled(latent.rope_dim, factor, kHeadStep);
  latent.value_dim = scaled(latent.value_dim, factor, kHeadStep);
  if (latent.kv_rank > 0) attention.head_dim = latent.nope_dim + latent.rope_dim;
  latent.q_rank = scaled(latent.q_rank, factor, kWidthStep);
  latent.kv_rank = scaled(latent.kv_rank, factor, kWidthStep);
  for (std::int64_t* width : {&model.recurrent.key_dim, &model.recurrent.value_dim}) {
    *width = scaled(*width, factor, kHeadStep);
  }
  model.ffn_hidden = scaled(model.ffn_hidden, factor, cut);
  model.experts.shared_ffn = scaled(model.experts.shared_ffn, factor, cut);
  model.experts.latent = scaled(model.experts.latent, factor, kWidthStep);
  model.hidden = hidden;
  return model;
}

std::vector<PrecisionBreakEven> precision_break_evens(const Scenario& scenario, const Plan& plan) {
  std::vector<PrecisionBreakEven> all;
  if (plan.dtype != DType::kBFloat16) return all;
  for (const Precision precision : {Precision::kFp8, Precision::kFp8Current, Precision::kFp8Block,
                                    Precision::kMxFp8, Precision::kNvFp4}) {
    if (!check_precision(scenario, precision).ok()) continue;
    const Finder finder(scenario, plan, precision);
    all.push_back({precision, finder.width(), finder.gain(scenario.model.hidden)});
  }
  return all;
}

}  // namespace tpsim
