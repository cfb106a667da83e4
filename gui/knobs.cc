#include "gui/knobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plans/enumerate.h"
#include "sim/predict.h"

namespace tpsim::gui {
namespace {

bool divides_model(const ModelSpec& model, std::int64_t tp) {
  return model.attention.heads % tp == 0 && model.attention.kv_heads % tp == 0 &&
         model.ffn_hidden % tp == 0;
}

std::vector<std::int64_t> tensor_degrees(const ModelSpec& model, std::int64_t gpus) {
  std::vector<std::int64_t> degrees = divisors(gpus);
  std::erase_if(degrees, [&](std::int64_t tp) { return !divides_model(model, tp); });
  return degrees;
}

// The batch must split over the data-parallel ranks.
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
  const auto largest = std::max_element(plan.stage_layers.begin(), plan.stage_layers.end());
  std::vector<std::int64_t> counts(
      static_cast<std::size_t>(std::max<std::int64_t>(0, *largest - 1)));
  std::iota(counts.begin(), counts.end(), 1);
  return counts;
}

// ZeRO keeps its own knob; sequence parallelism needs a tensor group and an even split.
bool can_shard_sequence(const Plan& plan, const ModelSpec& model) {
  const ParallelDegrees& d = plan.degrees;
  return d.tp > 1 && model.seq % (d.cp * d.tp) == 0;
}

}  // namespace

const char* label_of(Knob knob) {
  switch (knob) {
    case Knob::kTp: return "tensor parallel";
    case Knob::kPp: return "pipeline stages";
    case Knob::kDp: return "data parallel";
    case Knob::kEp: return "expert parallel";
    case Knob::kMicroBatch: return "micro-batch";
    case Knob::kVirtualStages: return "chunks per stage";
    case Knob::kZero: return "ZeRO";
    case Knob::kRecomputedBlocks: return "blocks of it";
  }
  return "?";
}

const char* meaning_of(Knob knob) {
  switch (knob) {
    case Knob::kTp:
      return "GPUs that share every layer. Less memory on each, but two all-reduces in every "
             "layer: "
             "keep it inside a node.";
    case Knob::kPp:
      return "Groups of layers, one after the other. Little traffic, but GPUs idle while the "
             "pipeline fills and drains.";
    case Knob::kDp:
      return "Copies of the model that each take a share of the batch and add up their gradients.";
    case Knob::kEp:
      return "Data-parallel ranks that share out the experts of a layer and send each other the "
             "tokens.";
    case Knob::kMicroBatch:
      return "Sequences that pass through the pipeline together. Larger ones use the GPU better, "
             "need more memory and leave fewer of them to fill the pipeline.";
    case Knob::kVirtualStages:
      return "Pieces of the model on each stage. More of them shorten the bubble and send more "
             "(interleaved schedule).";
    case Knob::kZero:
      return "What data-parallel copies share out: 0 nothing, 1 optimizer state, 2 and gradients, "
             "3 and weights.";
    case Knob::kRecomputedBlocks:
      return "How many blocks of every chunk are computed again in backward; the others keep "
             "their activations.";
  }
  return "";
}

std::int64_t value_of(const Plan& plan, Knob knob) {
  switch (knob) {
    case Knob::kTp: return plan.degrees.tp;
    case Knob::kPp: return plan.degrees.pp;
    case Knob::kDp: return plan.degrees.dp;
    case Knob::kEp: return plan.degrees.ep;
    case Knob::kMicroBatch: return plan.micro_batch;
    case Knob::kVirtualStages: return plan.virtual_stages;
    case Knob::kZero: return plan.zero;
    case Knob::kRecomputedBlocks: return plan.recompute_blocks;
  }
  return 0;
}

std::vector<std::int64_t> values_of(const Plan& plan, Knob knob, const ModelSpec& model,
                                    std::int64_t gpus) {
  const std::int64_t tp = plan.degrees.tp;
  gpus /= plan.degrees.cp;  // which no knob turns
  switch (knob) {
    case Knob::kTp: {
      std::vector<std::int64_t> degrees = tensor_degrees(model, gpus);
      std::erase_if(degrees, [&](std::int64_t degree) {
        return pipeline_degrees(plan, model, gpus, degree).empty();
      });
      return degrees;
    }
    case Knob::kPp: return pipeline_degrees(plan, model, gpus, tp);
    case Knob::kDp: {
      std::vector<std::int64_t> degrees;
      for (const std::int64_t pp : pipeline_degrees(plan, model, gpus, tp)) {
        degrees.push_back(gpus / tp / pp);
      }
      std::sort(degrees.begin(), degrees.end());
      return degrees;
    }
    case Knob::kEp:
      if (!has_experts(model)) return {};
      return divisors(std::gcd(plan.degrees.dp, model.experts.count));
    case Knob::kMicroBatch: {
      std::vector<std::int64_t> sizes = divisors(plan.global_batch / plan.degrees.dp);
      std::erase_if(sizes, [](std::int64_t size) { return size > 64; });
      return sizes;
    }
    case Knob::kVirtualStages: return chunk_counts(plan, model);
    case Knob::kZero: return {0, 1, 2, 3};
    case Knob::kRecomputedBlocks: return recomputed_counts(plan);
  }
  return {};
}

std::int64_t nearest_of(std::span<const std::int64_t> values, std::int64_t wanted) {
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

// What experts ask of a layout that knobs were turned to: ep divides dp and experts, and
// tensor-parallel ranks route their own tokens.
void mend_experts(Plan& plan, const ModelSpec& model) {
  plan.degrees.ep = std::gcd(std::gcd(plan.degrees.dp, plan.degrees.ep),
                             std::max<std::int64_t>(1, model.experts.count));
  if (has_experts(model)) plan.sequence_parallel = can_shard_sequence(plan, model);
}

// A number of blocks that some chunk has more than; chunks of one block are recomputed whole.
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
  plan.micro_batch = nearest_of(divisors(plan.global_batch / plan.degrees.dp), plan.micro_batch);
  const std::vector<std::int64_t> counts = chunk_counts(plan, model);
  plan.virtual_stages = nearest_of(counts, plan.virtual_stages);
  if (plan.virtual_stages > 1) {
    plan.schedule = ScheduleKind::kInterleaved;
  } else if (plan.schedule == ScheduleKind::kInterleaved || plan.degrees.pp == 1) {
    plan.schedule = ScheduleKind::kOneFOneB;
  }
  if (!can_shard_sequence(plan, model)) plan.sequence_parallel = false;
  if (static_cast<std::int64_t>(plan.stage_layers.size()) != chunk_count(plan)) {
    plan.stage_layers = default_stage_layers(model.layers, chunk_count(plan));
  }
  mend_recompute(plan);
  return plan;
}

Plan turned(const Plan& plan, Knob knob, std::int64_t value, const ModelSpec& model,
            std::int64_t gpus) {
  Plan next = plan;
  ParallelDegrees& d = next.degrees;
  gpus /= d.cp;
  switch (knob) {
    case Knob::kTp:
      d.tp = value;
      d.pp = nearest_of(pipeline_degrees(plan, model, gpus, value), d.pp);
      d.dp = gpus / d.tp / d.pp;
      break;
    case Knob::kPp:
      d.pp = value;
      d.dp = gpus / d.tp / d.pp;
      break;
    case Knob::kDp:
      d.dp = value;
      d.pp = gpus / d.tp / d.dp;
      break;
    case Knob::kEp: d.ep = value; break;
    case Knob::kMicroBatch: next.micro_batch = value; break;
    case Knob::kVirtualStages: next.virtual_stages = value; break;
    case Knob::kZero: next.zero = static_cast<int>(value); break;
    case Knob::kRecomputedBlocks: next.recompute_blocks = value; break;
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
