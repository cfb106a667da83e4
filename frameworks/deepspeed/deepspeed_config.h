// Reads the settings of a plan from DeepSpeed's JSON. Source: deepspeed/runtime/config.py.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "frameworks/launch/launch_settings.h"

namespace tpsim {

// A number is -1 if it is absent, or "auto", which Hugging Face replaces.
struct DeepSpeedConfig {
  std::int64_t train_batch = -1;
  std::int64_t micro_batch = -1;
  std::int64_t accumulation = -1;
  std::int64_t stage = 0;
  bool bf16 = false;
  bool fp16 = false;
  bool precision_is_auto = false;
  std::optional<DType> gradients;    // dtype of accumulation; nothing: follows from the precision
  bool offloads = false;             // optimizer state is on the host
  std::vector<std::string> outside;  // keys that do not affect a plan
};

// Unknown keys, and keys that tpsim cannot express, are added to `left`.
Result<DeepSpeedConfig> read_deepspeed_config(const LaunchFile& file, LeftSettings& left);

// Returns an error unless both batch sizes are stated. Without Hugging Face they must be.
Status check_batches(const DeepSpeedConfig& config, const LaunchFile& file);

// Sets ZeRO stage and offload of `plan`. Fails if arguments and JSON differ. With a pipeline only
// the optimizer state may be sharded; with bf16 DeepSpeed always shards it.
void read_engine(LaunchOptionReader& in, const DeepSpeedConfig& config, bool pipelines, Plan& plan);

}  // namespace tpsim
