// DeepSpeed's JSON: what of it a plan is made of. Rules: deepspeed/runtime/config.py.
#pragma once

#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "core/plan/plan.h"
#include "frameworks/launch/launch_settings.h"

namespace tpsim {

// A number that is absent, or "auto" as Hugging Face writes what it fills in, is -1.
struct DeepSpeedConfig {
  std::int64_t train_batch = -1;
  std::int64_t micro_batch = -1;
  std::int64_t accumulation = -1;
  std::int64_t stage = 0;
  bool bf16 = false;
  bool fp16 = false;
  bool precision_is_auto = false;
  std::optional<DType> gradients;    // what they add up in; nothing: as the precision has it
  bool offloads = false;             // the optimizer, to the host
  std::vector<std::string> outside;  // keys that no plan is made of
};

// `left` gets unknown keys and those that make another plan.
Result<DeepSpeedConfig> read_deepspeed_config(const LaunchFile& file, LeftSettings& left);

// Both batch sizes are there, as without Hugging Face they have to be.
Status check_batches(const DeepSpeedConfig& config, const LaunchFile& file);

// ZeRO and offload of `plan`. Arguments and JSON have to agree, and a pipeline shards the optimizer
// alone; of bf16 its engine always does.
void read_engine(LaunchOptionReader& in, const DeepSpeedConfig& config, bool pipelines, Plan& plan);

}  // namespace tpsim
