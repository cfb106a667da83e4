// Settings of a plan in DeepSpeed's JSON and in the arguments of Megatron-DeepSpeed. Source:
// deepspeed/runtime/config.py.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "core/scenario/plan_file.h"
#include "frameworks/launch/launch_options.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {

// Keys of section "bf16": without an fp32 copy of the weights, and with moments in bf16.
inline constexpr const char* kBf16Masters = "bf16_master_weights_and_grads";
inline constexpr const char* kBf16States = "bf16_optimizer_states";
// Section of torch.autocast, whose dtype has PyTorch's name.
inline constexpr const char* kAutocastSection = "torch_autocast";
// Size of the bucket in which ZeRO 3 gathers weights in advance. With 0 it does not.
inline constexpr const char* kPrefetchKey = "stage3_prefetch_bucket_size";

// The settings of a plan in DeepSpeed's JSON. A number is -1 if it is absent, above 2^20 or "auto",
// which means that Hugging Face's Trainer sets the value.
struct DeepSpeedConfig {
  std::int64_t train_batch = -1;
  std::int64_t micro_batch = -1;
  std::int64_t accumulation = -1;  // micro-batches per step
  std::int64_t stage = 0;          // of ZeRO; 0 without zero_optimization
  std::int64_t tensor_ranks = 1;   // of AutoTP
  bool bf16 = false;
  bool fp16 = false;
  bool precision_is_auto = false;
  bool bf16_masters = false;       // weights and gradients of the optimizer are in bf16
  bool bf16_states = false;        // Adam's moments are in bf16
  std::optional<DType> autocast;   // weights are in fp32, and GEMMs in this dtype
  std::optional<DType> gradients;  // dtype of accumulation; empty: implied by precision
  std::optional<DType> reduced;    // dtype of reduction; empty: that of the weights
  std::optional<bool> overlaps;    // whether reductions of ZeRO overlap with backward
  bool lacks_prefetch = false;     // whether ZeRO 3 gathers weights when they are needed
  Offload offload = Offload::kNone;
  std::vector<std::string> outside;  // keys that do not affect a plan
};

// Returns the offload of a ZeRO stage whose optimizer, and weights, are in host memory.
Offload offload_of(std::int64_t stage, bool of_optimizer, bool of_weights);

// Parses the JSON. Unknown keys, and keys that tpsim cannot express, are added to `left`.
Result<DeepSpeedConfig> read_deepspeed_config(const LaunchFile& file, LeftSettings& left);

// Adds a note if the JSON enables curriculum learning, whose first steps have shorter sequences.
void note_curriculum(const LaunchFile& file, std::vector<std::string>& notes);

// Returns an error unless the micro-batch, and the train batch or the accumulation, are stated.
// They are required if DeepSpeed is used without Hugging Face's Trainer.
Status check_batches(const DeepSpeedConfig& config, const LaunchFile& file);

// Sets ZeRO stage, gradient dtype and offload of `plan`. Fails if the arguments and the JSON
// differ. `pipelines`: DeepSpeed's pipeline engine runs. The engine rejects ZeRO 2 and 3, and its
// bf16 optimizer always shards like ZeRO 1.
void read_engine(LaunchOptionReader& in, const DeepSpeedConfig& config, bool pipelines, Plan& plan);

Result<LaunchOptions> deepspeed_settings(const PlanFile& file);
std::string deepspeed_json(const PlanFile& file);
// Removes the switches that disable fused kernels, and returns them as software parts.
PartValues take_deepspeed_parts(std::vector<LaunchOption>& options);
Result<Plan> plan_of_deepspeed(const ShellOptions& shell, const LaunchFile& config,
                               const ModelSpec& model, LeftSettings& left);
// Whether the options are those of Microsoft's Megatron-DeepSpeed, which follows Megatron-Core, and
// not of BigScience's fork.
bool speaks_megatron_core(const std::vector<LaunchOption>& options);
Result<Plan> plan_of_forked_deepspeed(const ShellOptions& shell, const LaunchFile& config,
                                      const ModelSpec& model, LeftSettings& left);

}  // namespace tpsim
