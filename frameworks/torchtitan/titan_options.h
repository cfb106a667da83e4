// Names of torchtitan's options that are written and read.
//
// Versions since 2026 state batches in tokens, and recompute by a word: kFullCheckpointing.
#pragma once

#include <vector>

#include "core/scenario/plan_file.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/launch_stack.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {

inline constexpr LaunchStack kTitanStack = LaunchStack::kTorchTitan;
inline constexpr const char* kTitanContext = "--training.max_context_length";
inline constexpr const char* kTitanMicroTokens = "--training.num_tokens_per_microbatch_per_dp_rank";
inline constexpr const char* kTitanStepTokens = "--training.num_tokens_per_train_step";
inline constexpr const char* kTitanMicroBatches = "--parallelism.num_pp_microbatches";
inline constexpr const char* kTitanReduce = "--training.mixed_precision_reduce";
inline constexpr const char* kTitanNoGraphs = "--training.disable_cuda_graphs";
inline constexpr const char* kTitanBalanced = "--debug.moe_force_load_balance";
inline constexpr const char* kTitanOptimizer = "--optimizer.implementation";
inline constexpr const char* kNarrowMoments = "fused_opt_states_bf16";  // of kTitanOptimizer
inline constexpr const char* kTitanWeights = "--training.dtype";
inline constexpr const char* kTitanLossChunks = "--loss.num_chunks";
inline constexpr const char* kTitanCompile = "--compile.enable";
inline constexpr const char* kTitanAsyncTensor = "--compile.enable_async_tensor_parallel";
inline constexpr const char* kFormerAsyncTensor =
    "--parallelism.enable_async_tensor_parallel";  // until June 2026
inline constexpr const char* kTitanSequenceParallel = "--parallelism.enable-sequence-parallel";
inline constexpr const char* kTitanNoSequenceParallel = "--parallelism.no-enable-sequence-parallel";
inline constexpr const char* kNoCheckpointing = "activation-checkpoint:none";
inline constexpr const char* kFullCheckpointing = "activation-checkpoint:full";
inline constexpr const char* kSelectiveCheckpointing = "activation-checkpoint:selective";

// Returns the value of pipeline_parallel_schedule.
inline const char* titan_schedule(ScheduleKind schedule) {
  switch (schedule) {
    case ScheduleKind::kGpipe: return "GPipe";
    case ScheduleKind::kOneFOneB: return "1F1B";
    case ScheduleKind::kInterleaved: return "Interleaved1F1B";
    case ScheduleKind::kZbH1: break;  // a launch rule refuses it
  }
  return "?";
}

// Replaces numbers of tokens by the options of older versions, which count sequences:
// training.seq_len, training.local_batch_size, training.global_batch_size. Does nothing if no
// option states tokens. `seq`: tokens per sequence if the options do not state them.
void count_sequences(std::vector<LaunchOption>& options, std::int64_t seq);

void read_torchtitan_recipe(LaunchOptionReader& in, Plan& plan);
Result<LaunchOptions> torchtitan_settings(const PlanFile& file, const LaunchSize& size);
// Sets the model's sequence to the stated one, and its dropout to 0, unless `keeps_seq`.
// torchtitan's models do not have dropout.
void take_titan_choices(const std::vector<LaunchOption>& options, bool keeps_seq, ModelSpec& model);
// Removes options that select an implementation: torch.compile, async tensor parallelism.
PartValues take_torchtitan_parts(std::vector<LaunchOption>& options);
// Converts options to a plan of result.model. Adds the shard group, which follows from the degrees,
// to result.parts.
Result<Plan> plan_of_torchtitan(const ShellOptions& shell, ImportedPlan& result,
                                LeftSettings& left);

}  // namespace tpsim
