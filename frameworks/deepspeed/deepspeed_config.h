// Reads the settings of a plan from DeepSpeed's JSON. Source: deepspeed/runtime/config.py.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "frameworks/launch/launch_settings.h"

namespace tpsim {

// The settings of a plan in DeepSpeed's JSON. A number is -1 if it is absent or "auto", which means
// that Hugging Face sets it.
struct DeepSpeedConfig {
  std::int64_t train_batch = -1;
  std::int64_t micro_batch = -1;
  std::int64_t accumulation = -1;
  std::int64_t stage = 0;
  bool bf16 = false;
  bool fp16 = false;
  bool precision_is_auto = false;
  std::optional<DType> gradients;    // of accumulation; empty: implied by precision
  bool offloads = false;             // the optimizer state is in host memory
  std::vector<std::string> outside;  // keys that were ignored
};

// Parses the JSON. Unknown keys, and keys that tpsim cannot express, are added to `left`.
Result<DeepSpeedConfig> read_deepspeed_config(const LaunchFile& file, LeftSettings& left);

// Returns an error unless train batch and micro-batch are both stated. They are required if
// DeepSpeed is used without Hugging Face.
Status check_batches(const DeepSpeedConfig& config, const LaunchFile& file);

// Sets the ZeRO stage and the offload of `plan`. Fails if the arguments and the JSON differ. With a
// pipeline DeepSpeed can shard only the optimizer state, and with bf16 it always does.
void read_engine(LaunchOptionReader& in, const DeepSpeedConfig& config, bool pipelines, Plan& plan);

}  // namespace tpsim
