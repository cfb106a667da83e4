#include "gui/views/knobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plans/search/allowed_values.h"
#include "plans/search/enumerate.h"
#include "sim/step/predict.h"

namespace tpsim::gui {
namespace {

std::vector<std::int64_t> tensor_degrees(const ModelSpec& model, std::int64_t gpus) {
  std::vector<std::int64_t> degrees = divisors(gpus);
  std::erase_if(degrees, [&](std::int64_t tp) { return !divides_by_tp(model, tp); });
  return degrees;
}

// Returns the pipeline degrees whose data-parallel degree divides the batch.
std::vector<std::int64_t> pipeline_degrees(const Plan& plan, const ModelSpec& model,
                                           std::int64_t gpus, std::int64_t tp) {
  std::vector<std::int64_t> degrees = divisors(gpus / tp);
  std::erase_if(degrees, [&](std::int64_t pp) {
    return pp > model.layers + 2 || plan.global_batch % (gpus / tp / pp) != 0;
  });
  return degrees;
}

std::vector<std::int64_t> chunk_counts(const Plan& plan, const ModelSpec& model) {
  std::vector<std::int64_t> counts = {1};
  const std::int64_t pp = plan.degrees.pp;
  if (pp == 1 || micro_batches(plan) % pp != 0) return counts;
  for (std::int64_t v = 2; v * pp <= model.layers + 2; ++v) counts.push_back(v);
  return counts;
}

std::vector<std::int64_t> recomputed_counts(const Plan& plan) {
  if (plan.recompute != Recompute::kBlocks) return {};
  std::vector<std::int64_t> counts(
      static_cast<std::size_t>(most_recomputed_blocks(plan.stage_layers)));
  std::iota(counts.begin(), counts.end(), 1);
  return counts;
}

// Returns the context-parallel degrees that split a sequence into two equal chunks per rank, and
// whose data-parallel degree divides the batch.
std::vector<std::int64_t> context_degrees(const Plan& plan, const ModelSpec& model) {
  std::vector<std::int64_t> degrees = divisors(data_ranks(plan));
  std::erase_if(degrees, [&](std::int64_t cp) {
    const bool splits = cp == 1 || model.seq % (2 * cp) == 0;
    return !splits || plan.global_batch % (data_ranks(plan) / cp) != 0;
  });
  return degrees;
}

// Returns the expert-parallel degrees of an MoE model: common divisors of the number of experts and
// of the ranks of a stage.
std::vector<std::int64_t> expert_degrees(const Plan& plan, const ModelSpec& model) {
  if (!has_experts(model)) return {};
  std::vector<std::int64_t> degrees =
      divisors(std::gcd(stage_ranks(plan) / expert_tensor_ranks(plan), model.experts.count));
  std::erase_if(degrees, [&](std::int64_t ep) {
    Plan next = plan;
    next.degrees.ep = ep;
    return !experts_fit_ranks(next);
  });
  return degrees;
}

// Returns the expert-tensor-parallel degrees: 0 (the same as tp), or divisors that keep the plan
// legal.
std::vector<std::int64_t> expert_tensor_degrees(const Plan& plan, const ModelSpec& model) {
  if (!has_experts(model)) return {};
  std::vector<std::int64_t> degrees = divisors(stage_ranks(plan));
  degrees.insert(degrees.begin(), 0);
  std::erase_if(degrees, [&](std::int64_t etp) {
    Plan next = plan;
    next.degrees.etp = etp;
    next.degrees.ep = 1;
    return etp >= plan.degrees.tp || !experts_fit_ranks(next) ||
           !divides_by_etp(model, expert_tensor_ranks(next));
  });
  return degrees;
}

// Whether the plan can use sequence parallelism: tp > 1, and the sequence can be divided evenly.
bool can_shard_sequence(const Plan& plan, const ModelSpec& model) {
  const ParallelDegrees& d = plan.degrees;
  return d.tp > 1 && model.seq % (d.cp * d.tp) == 0;
}

// Returns the enum values that remain legal after dependent settings are adjusted.
std::vector<std::int64_t> legal_words(const Plan& plan, const SettingRow& row,
                                      const ModelSpec& model, std::int64_t gpus) {
  std::vector<std::int64_t> values;
  for (const FieldWord& word : row.words) {
    const Plan next = turned(plan, row.setting, word.value, model, gpus);
    if (row.get(next) == word.value && validate(next, model).ok()) values.push_back(word.value);
  }
  return values;
}

}  // namespace

bool has_knob(const SettingRow& row) { return row.role != SettingRole::kGiven; }

std::vector<std::int64_t> values_of(const Plan& plan, Setting knob, const ModelSpec& model,
                                    std::int64_t gpus) {
  const SettingRow& row = row_of(knob);
  if (row.suits != nullptr && !row.suits(model)) return {};
  const std::int64_t tp = plan.degrees.tp;
  const std::int64_t of_context = gpus / plan.degrees.cp;
  switch (knob) {
    case Setting::kTp: {
      std::vector<std::int64_t> degrees = tensor_degrees(model, of_context);
      std::erase_if(degrees, [&](std::int64_t degree) {
        return pipeline_degrees(plan, model, of_context, degree).empty();
      });
      return degrees;
    }
    case Setting::kPp: return pipeline_degrees(plan, model, of_context, tp);
    case Setting::kDp: {
      std::vector<std::int64_t> degrees;
      for (const std::int64_t pp : pipeline_degrees(plan, model, of_context, tp)) {
        degrees.push_back(of_context / tp / pp);
      }
      std::sort(degrees.begin(), degrees.end());
      return degrees;
    }
    case Setting::kCp: return context_degrees(plan, model);
    case Setting::kEp: return expert_degrees(plan, model);
    case Setting::kEtp: return expert_tensor_degrees(plan, model);
    case Setting::kMicroBatch: {
      std::vector<std::int64_t> sizes = divisors(plan.global_batch / plan.degrees.dp);
      std::erase_if(sizes, [](std::int64_t size) { return size > 64; });
      return sizes;
    }
    case Setting::kVirtualStages: return chunk_counts(plan, model);
    case Setting::kRecomputeBlocks: return recomputed_counts(plan);
    default: break;
  }
  if (!row.words.empty()) return legal_words(plan, row, model, gpus);
  return {row.tried.begin(), row.tried.end()};
}

std::int64_t nearest_value(std::span<const std::int64_t> values, std::int64_t wanted) {
  std::int64_t best = wanted;
  double least = -1;
  for (const std::int64_t value : values) {
    const double distance =
        std::abs(std::log(static_cast<double>(std::max<std::int64_t>(1, value)) /
                          static_cast<double>(std::max<std::int64_t>(1, wanted))));
    if (least >= 0 && distance >= least) continue;
    least = distance;
    best = value;
  }
  return best;
}

// Adjusts the expert layout after a change of other settings. Expert degrees become legal for the
// number of ranks. Sequence parallelism is switched on if tensor-parallel ranks route their own
// tokens.
void mend_experts(Plan& plan, const ModelSpec& model) {
  const std::vector<std::int64_t> cuts = expert_tensor_degrees(plan, model);
  if (std::find(cuts.begin(), cuts.end(), plan.degrees.etp) == cuts.end()) {
    plan.degrees.etp = cuts.empty() ? 0 : cuts.front();
  }
  const std::vector<std::int64_t> degrees = expert_degrees(plan, model);
  plan.degrees.ep = degrees.empty() ? 1 : nearest_value(degrees, plan.degrees.ep);
  if (has_experts(model)) plan.sequence_parallel = can_shard_sequence(plan, model);
}

// Adjusts the number of recomputed blocks to the legal range, which ends below the size of the
// largest chunk. If no number is legal because all chunks have one block, recompute becomes full.
void mend_recompute(Plan& plan) {
  const std::vector<std::int64_t> counts = recomputed_counts(plan);
  if (counts.empty()) {
    if (plan.recompute == Recompute::kBlocks) plan.recompute = Recompute::kFull;
    plan.recompute_blocks = 0;
  } else {
    plan.recompute_blocks = std::clamp(plan.recompute_blocks, counts.front(), counts.back());
  }
}

Plan mended(Plan plan, const ModelSpec& model) {
  mend_experts(plan, model);
  plan.micro_batch = nearest_value(divisors(plan.global_batch / plan.degrees.dp), plan.micro_batch);
  const std::vector<std::int64_t> counts = chunk_counts(plan, model);
  plan.virtual_stages = nearest_value(counts, plan.virtual_stages);
  if (plan.virtual_stages > 1) {
    plan.schedule = ScheduleKind::kInterleaved;
  } else if (plan.schedule == ScheduleKind::kInterleaved || plan.degrees.pp == 1 ||
             (plan.schedule == ScheduleKind::kZbH1 && plan.zero >= 2)) {
    plan.schedule = ScheduleKind::kOneFOneB;
  }
  if (!can_shard_sequence(plan, model)) plan.sequence_parallel = false;
  if (static_cast<std::int64_t>(plan.stage_layers.size()) != chunk_count(plan)) {
    plan.stage_layers = default_stage_layers(model.layers, chunk_count(plan));
  }
  mend_recompute(plan);
  return plan;
}

// Sets the number of recomputed blocks to the median of the legal numbers.
void start_in_the_middle(Plan& plan) {
  const std::vector<std::int64_t> counts = recomputed_counts(plan);
  if (!counts.empty()) plan.recompute_blocks = counts[(counts.size() - 1) / 2];
}

// Returns the smallest legal number of chunks per stage for the plan's schedule.
std::int64_t chunks_for(const Plan& plan, const ModelSpec& model) {
  const std::vector<std::int64_t> counts = chunk_counts(plan, model);
  return plan.schedule == ScheduleKind::kInterleaved && counts.size() > 1 ? counts[1] : 1;
}

Plan turned(const Plan& plan, Setting knob, std::int64_t value, const ModelSpec& model,
            std::int64_t gpus) {
  Plan next = plan;
  set(next, {knob, value});
  ParallelDegrees& d = next.degrees;
  gpus /= d.cp;
  switch (knob) {
    case Setting::kTp:
      d.pp = nearest_value(pipeline_degrees(plan, model, gpus, value), d.pp);
      d.dp = gpus / d.tp / d.pp;
      break;
    case Setting::kPp:
    case Setting::kCp: d.dp = gpus / d.tp / d.pp; break;
    case Setting::kDp: d.pp = gpus / d.tp / d.dp; break;
    case Setting::kRecompute: start_in_the_middle(next); break;
    case Setting::kSchedule: next.virtual_stages = chunks_for(next, model); break;
    default: break;
  }
  return mended(std::move(next), model);
}

Plan with_runnable_zero(const Plan& plan, const Scenario& scenario) {
  for (int zero = plan.zero; zero >= 0; --zero) {
    Plan next = plan;
    next.zero = zero;
    if (check_plan(scenario, next).ok()) return next;
  }
  return plan;
}

Plan with_boundary_moved(const Plan& plan, std::size_t boundary, std::int64_t blocks) {
  Plan next = plan;
  if (boundary + 1 >= next.stage_layers.size()) return next;
  std::int64_t& left = next.stage_layers[boundary];
  std::int64_t& right = next.stage_layers[boundary + 1];
  const std::int64_t moved = std::clamp(blocks, -left, right);
  left += moved;
  right -= moved;
  mend_recompute(next);
  return next;
}

}  // namespace tpsim::gui
