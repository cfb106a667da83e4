// Reads pipeline stages from Megatron's arguments. Rules: megatron/training/arguments.py,
// validate_args.
#include <fmt/format.h>

#include <algorithm>

#include "core/plan/pipeline_layout.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/megatron_options.h"

namespace tpsim {
namespace {

// The options that split the layers into stages, for commands without a pipeline layout.
struct Spelling {
  std::int64_t first = 0;  // blocks of the first and of the last stage; 0: not stated
  std::int64_t last = 0;
  bool embedding_counts = false;
  bool loss_counts = false;
};

// Returns the number of blocks of every pipeline rank. Empty if the remaining blocks cannot be
// divided evenly.
std::vector<std::int64_t> blocks_by_rank(const Spelling& said, std::int64_t layers,
                                         std::int64_t pp) {
  const std::int64_t middle = pp - (said.first > 0 ? 1 : 0) - (said.last > 0 ? 1 : 0);
  const std::int64_t rest = layers - said.first - said.last;
  if (middle < 0 || rest < 0 || (middle == 0 ? rest != 0 : rest % middle != 0)) return {};
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(pp), middle == 0 ? 0 : rest / middle);
  if (said.first > 0) ranks.front() = said.first;
  if (said.last > 0) ranks.back() = said.last;
  return ranks;
}

std::vector<std::int64_t> cut(const Spelling& said, std::int64_t layers, const Plan& plan) {
  const std::int64_t chunks = chunk_count(plan);
  if (said.first > 0 || said.last > 0) {
    const std::vector<std::int64_t> ranks = blocks_by_rank(said, layers, plan.degrees.pp);
    std::vector<std::int64_t> cut;
    for (std::int64_t c = 0; c < chunks && !ranks.empty(); ++c) {
      const std::int64_t of_rank = ranks[static_cast<std::size_t>(c % plan.degrees.pp)];
      if (of_rank % plan.virtual_stages != 0) return {};
      cut.push_back(of_rank / plan.virtual_stages);
    }
    return cut;
  }
  const std::int64_t counted =
      layers + (said.embedding_counts ? 1 : 0) + (said.loss_counts ? 1 : 0);
  if (chunks < 1 || counted % chunks != 0) return {};
  std::vector<std::int64_t> even(static_cast<std::size_t>(chunks), counted / chunks);
  even.front() -= said.embedding_counts ? 1 : 0;
  even.back() -= said.loss_counts ? 1 : 0;
  return even;
}

// Returns the number of chunks per pipeline rank, as stated or derived from the number of layers
// per chunk.
std::int64_t virtual_stages(LaunchOptionReader& in, std::int64_t counted, std::int64_t pp) {
  const std::int64_t stages = in.integer("--num-virtual-stages-per-pipeline-rank", 0);
  const std::int64_t layers = in.integer("--num-layers-per-virtual-pipeline-stage", 0);
  if (stages > 0 || layers == 0) return std::max<std::int64_t>(1, stages);
  if (counted % (pp * layers) == 0) return counted / (pp * layers);
  in.fail(
      fmt::format("the layers are not divisible by --num-layers-per-virtual-pipeline-stage {} x {} "
                  "pipeline stages",
                  layers, pp));
  return 1;
}

// Reads the stages and chunks of a hybrid model from its layer pattern, and compares the layers
// with the model.
void read_pattern(LaunchOptionReader& in, const std::string& pattern, const ModelSpec& model,
                  Plan& plan) {
  const auto stages = stages_of_pattern(pattern, model, plan.degrees.pp);
  const auto chunks = stages.ok() ? static_cast<std::int64_t>(stages->size()) : 0;
  if (!stages.ok()) return in.fail(stages.error().message, stages.error().hint);
  if (chunks % plan.degrees.pp != 0) {
    return in.fail(
        fmt::format("the number of chunks in the pattern '{}' is not a multiple of {} stages",
                    pattern, plan.degrees.pp));
  }
  plan.stage_layers = *stages;
  plan.virtual_stages = chunks / plan.degrees.pp;
}

}  // namespace

// Sets virtual stages, split into stages, and schedule of `plan`, whose pp must be set. Supports
// all notations of Megatron: a layout, layers or stages per virtual stage, a different first or
// last stage, and embedding or loss counted as a block.
void read_megatron_stages(LaunchOptionReader& in, const ModelSpec& model, Plan& plan) {
  Spelling said;
  said.first = in.integer("--decoder-first-pipeline-num-layers", 0);
  said.last = in.integer("--decoder-last-pipeline-num-layers", 0);
  said.embedding_counts = in.flag("--account-for-embedding-in-pipeline-split");
  said.loss_counts = in.flag("--account-for-loss-in-pipeline-split");
  const std::int64_t pp = plan.degrees.pp;
  const std::int64_t counted =
      model.layers + (said.embedding_counts ? 1 : 0) + (said.loss_counts ? 1 : 0);
  plan.virtual_stages = virtual_stages(in, counted, pp);
  const auto layout = in.text("--pipeline-model-parallel-layout");
  if (const auto pattern = in.text(kHybridPattern)) {
    read_pattern(in, *pattern, model, plan);
  } else if (layout) {
    const auto parsed = parse_pipeline_layout(*layout);
    if (parsed && parsed->predictions != model.ends.prediction_layers) {
      return in.fail(fmt::format("the layout '{}' has {} MTP blocks; the model has {}", *layout,
                                 parsed->predictions, model.ends.prediction_layers));
    }
    if (parsed) plan.stage_layers = parsed->blocks;
    const auto chunks = static_cast<std::int64_t>(plan.stage_layers.size());
    const bool fits = chunks > 0 && chunks % pp == 0;
    if (!fits || (plan.virtual_stages > 1 && plan.virtual_stages != chunks / pp)) {
      return in.fail(fmt::format("the layout '{}' is invalid or does not fit {} pipeline stages",
                                 *layout, pp));
    }
    plan.virtual_stages = chunks / pp;
  } else if (chunk_count(plan) > model.layers + 2) {
    return in.fail(
        fmt::format("{} stages are more than {} layers", chunk_count(plan), model.layers));
  } else {
    plan.stage_layers = cut(said, model.layers, plan);
    if (plan.stage_layers.empty()) {
      return in.fail(fmt::format("{} layers cannot be divided evenly among the pipeline stages",
                                 model.layers));
    }
  }
  plan.schedule = plan.virtual_stages > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
}

}  // namespace tpsim
