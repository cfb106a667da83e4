// Writes torchtitan's command-line options.
//
// Sources: torchtitan/config/configs.py, trainer.py and distributed/activation_checkpoint.py of
// commit b5bcd76 (2026), and tyro, which parses switches as --x and --no-x. The options change a
// configuration of the registry, which --module and --config name.
#include <fmt/format.h>

#include "frameworks/launch/launcher.h"
#include "frameworks/torchtitan/plan_module.h"
#include "frameworks/torchtitan/titan_options.h"

namespace tpsim {
namespace {

// Options in which versions of torchtitan differ.
struct TitanVersion {
  std::string_view commit;
  bool counts_tokens;       // batches are in tokens; else in sequences
  bool captures_graphs;     // CUDA graphs, unless an option switches them off
  bool has_routed_experts;  // the modules that plan_module.h changes
  const char* async_tensor;
  // Recompute is a word, which must follow all options. Else it is the value of this option.
  const char* checkpointing;
};
constexpr TitanVersion kLatest{"b5bcd76c6", true, true, true, kTitanAsyncTensor, nullptr};

// Families of models that the latest version does not train, and the last version that does.
struct FormerModels {
  std::string_view family;
  TitanVersion version;
};
constexpr FormerModels kFormerModels[] = {
    {"llama4_text",
     {"43e52fd01", false, false, false, kFormerAsyncTensor, "--activation_checkpoint.mode"}},
};

// Returns the version that trains the model.
const TitanVersion& version_for(const ModelSpec& model) {
  for (const FormerModels& former : kFormerModels) {
    if (model.family == former.family) return former.version;
  }
  return kLatest;
}

// Adds the sequences of a micro-batch and a step.
void add_batches(const PlanFile& file, LaunchOptions& out) {
  const Plan& plan = file.plan;
  if (version_for(file.model).counts_tokens) {
    out.add(kTitanContext, file.model.seq);
    out.add(kTitanMicroTokens, plan.micro_batch * file.model.seq);
    out.add(kTitanStepTokens, plan.global_batch * file.model.seq);
    return;
  }
  const bool has_stages = plan.degrees.pp > 1;
  out.add("--training.seq_len", file.model.seq);
  out.add("--training.local_batch_size", plan.micro_batch * (has_stages ? micro_batches(plan) : 1));
  out.add("--training.global_batch_size", plan.global_batch);
  if (has_stages) out.add("--parallelism.pipeline_parallel_microbatch_size", plan.micro_batch);
}

void add_pipeline(const PlanFile& file, LaunchOptions& out) {
  const Plan& plan = file.plan;
  const std::int64_t missing = missing_at_ends(file.model, plan);
  out.add("--parallelism.pipeline_parallel_schedule", titan_schedule(plan.schedule));
  out.add("--parallelism.pipeline_parallel_layers_per_stage",
          (file.model.layers + 2 * missing) / chunk_count(plan));
  out.add("--parallelism.pipeline_parallel_first_stage_less_layers", missing);
  out.add("--parallelism.pipeline_parallel_last_stage_less_layers", missing);
  if (version_for(file.model).counts_tokens) out.add(kTitanMicroBatches, micro_batches(plan));
}

std::int64_t part_of(const PlanFile& file, StackPart part, std::int64_t otherwise = 0) {
  const auto asked = file.parts.find(part);
  return asked == file.parts.end() ? otherwise : asked->second;
}

// Returns the number of data-parallel ranks in a shard group of `gpus` GPUs: `gpus` / (tp x cp).
// Returns 0 unless this is an integer > 1 that divides dp.
std::int64_t shards_in(const Plan& plan, std::int64_t gpus) {
  const std::int64_t others = plan.degrees.tp * plan.degrees.cp;
  const std::int64_t shards = gpus % others == 0 ? gpus / others : 0;
  return shards > 1 && plan.degrees.dp % shards == 0 ? shards : 0;
}

// Returns the number of data-parallel ranks over which weights are sharded. It is less than dp for
// HSDP.
std::int64_t shard_degree(const PlanFile& file, const LaunchSize& size) {
  const Plan& plan = file.plan;
  if (plan.zero < 2) return 1;
  const std::int64_t group = part_of(file, StackPart::kShardGroup, kShardOverAll);
  if (group == kShardOverAll) return plan.degrees.dp;
  const std::int64_t fewer = shards_in(plan, group == kShardOverNode ? size.domain_gpus : group);
  return fewer > 0 ? fewer : plan.degrees.dp;
}

void add_data_parallel(const Plan& plan, std::int64_t shards, LaunchOptions& out) {
  out.add("--parallelism.data_parallel_replicate_degree", plan.degrees.dp / shards);
  out.add("--parallelism.data_parallel_shard_degree", shards);
  if (plan.zero >= 2) {
    out.add("--parallelism.fsdp_reshard_after_forward", plan.zero == 3 ? "always" : "never");
  }
}

const char* checkpointing_word(Recompute recompute) {
  switch (recompute) {
    case Recompute::kFull: return kFullCheckpointing;
    case Recompute::kOps: return kSelectiveCheckpointing;
    default: return kNoCheckpointing;
  }
}

bool chunks_loss(const PlanFile& file) {
  constexpr auto kChunks = static_cast<std::int64_t>(LossHead::kChunked);
  return part_of(file, StackPart::kLossHead, kChunks) == kChunks;
}

bool has_part(const PlanFile& file, StackPart part, std::string_view word) {
  const auto asked = file.parts.find(part);
  return asked != file.parts.end() && text_of(row_of(part), asked->second) == word;
}

// Adds the options of AdamW. Weights in bf16 without an fp32 copy imply moments in bf16.
void add_optimizer(const PlanFile& file, LaunchOptions& out) {
  const bool narrow = has_part(file, StackPart::kOptimizerDtype, "bf16");
  const bool lacks_copy = has_part(file, StackPart::kMasterWeights, "none");
  if (narrow && lacks_copy) out.add(kTitanWeights, std::string("bfloat16"));
  if (has_part(file, StackPart::kOptimizerKernel, "torch")) {
    out.add(kTitanOptimizer, std::string("foreach"));
  } else if (narrow && !lacks_copy) {
    out.add(kTitanOptimizer, std::string(kNarrowMoments));
  }
}

// Adds options for the plan's parts that torchtitan supports.
void add_titan_parts(const PlanFile& file, LaunchOptions& out) {
  const bool compiles = part_of(file, StackPart::kCompile) != 0;
  if (compiles) out.add(kTitanCompile);
  const auto overlap = static_cast<TpOverlap>(part_of(file, StackPart::kTpOverlap));
  // Async tensor parallelism requires torch.compile and has an effect only if tp > 1.
  if (compiles && overlap == TpOverlap::kUserbuffers && file.plan.degrees.tp > 1) {
    out.add(version_for(file.model).async_tensor);
  }
  const bool is_graphed = part_of(file, StackPart::kCudaGraphs) != 0;
  if (!is_graphed && version_for(file.model).captures_graphs) out.add(kTitanNoGraphs);
  // All configurations of the registry compute the loss in chunks of the tokens (ChunkedLossWrapper
  // in models/*/config_registry.py). 8 chunks are predicted (lowering/passes/loss_head.cc).
  out.add(kTitanLossChunks, std::int64_t{chunks_loss(file) ? 8 : 1});
  add_optimizer(file, out);
  const bool has_load = file.parts.contains(StackPart::kExpertLoad);
  if (has_experts(file.model) && has_load)
    out.add(kTitanBalanced);  // held_settings.txt: the only load
}

// Returns the first limit of torchtitan that depends on the machine or the parts.
Status check_titan_parts(const PlanFile& file, std::int64_t shards) {
  const auto& degrees = file.plan.degrees;
  const bool is_graphed = part_of(file, StackPart::kCudaGraphs) != 0;
  const TitanVersion& version = version_for(file.model);
  if (is_graphed && !version.captures_graphs) {
    return cannot_express(kTitanStack, fmt::format("CUDA graphs of {}", file.model.name),
                          fmt::format("the last version that trains it ({}) captures none: use "
                                      "--cuda-graph-scope none",
                                      version.commit));
  }
  if (is_graphed && degrees.pp * degrees.ep > 1) {
    return cannot_express(kTitanStack, "CUDA graphs with a pipeline or expert parallelism",
                          "torchtitan captures neither: use --cuda-graph-scope none");
  }
  if (has_experts(file.model) && shards * degrees.cp * degrees.tp % degrees.ep != 0) {
    return cannot_express(kTitanStack,
                          fmt::format("ep {} over {} ranks that shard weights", degrees.ep,
                                      shards * degrees.cp * degrees.tp),
                          "ep must divide shard degree x cp x tp: use another --shard-group");
  }
  if (has_part(file, StackPart::kAttentionKernel, "flash3") && degrees.cp * degrees.pp > 1) {
    return cannot_express(kTitanStack,
                          "attention kernel flash3 with context or pipeline parallelism",
                          "its varlen attention has neither (torchtitan/models/common/decoder.py:"
                          "176): use --attention-kernel flex");
  }
  return Ok{};
}

}  // namespace

Result<LaunchOptions> torchtitan_settings(const PlanFile& file, const LaunchSize& size) {
  const Plan& plan = file.plan;
  TPSIM_TRY_STATUS(check_launch_rules(kTitanStack, file));
  const std::int64_t shards = shard_degree(file, size);
  TPSIM_TRY_STATUS(check_titan_parts(file, shards));
  TPSIM_TRY(const std::string changes, plan_changes(file));
  const TitanVersion& version = version_for(file.model);
  if (!changes.empty() && !version.has_routed_experts) {
    return cannot_express(kTitanStack, fmt::format("{} of {}", changes, file.model.name),
                          fmt::format("tpsim cannot write them for the last version that trains it "
                                      "({})",
                                      version.commit));
  }
  LaunchOptions out;
  add_batches(file, out);
  out.add("--training.mixed_precision_param",
          plan.dtype == DType::kBFloat16 ? "bfloat16" : "float32");
  out.add(kTitanReduce, "float32");  // bfloat16 is a choice of versions before 2026 only
  add_data_parallel(plan, shards, out);
  out.add("--parallelism.tensor_parallel_degree", plan.degrees.tp);
  out.add(plan.sequence_parallel ? kTitanSequenceParallel : kTitanNoSequenceParallel);
  out.add("--parallelism.context_parallel_degree", plan.degrees.cp);
  if (has_experts(file.model)) out.add("--parallelism.expert_parallel_degree", plan.degrees.ep);
  // Configurations of the registry may have a pipeline.
  out.add("--parallelism.pipeline_parallel_degree", plan.degrees.pp);
  if (plan.degrees.pp > 1) add_pipeline(file, out);
  add_titan_parts(file, out);
  const std::string_view word = checkpointing_word(plan.recompute);
  if (!changes.empty()) add_plan_module(changes, out);
  if (const char* const option = version.checkpointing) {
    out.add(option, std::string(word.substr(word.find(':') + 1)));
  } else {
    out.add(std::string(word));
  }
  return out;
}

}  // namespace tpsim
