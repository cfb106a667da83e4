// Reads how Hugging Face's Trainer shards a model: by FSDP's settings and device mesh, or by
// DeepSpeed's file.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "formats/settings_text.h"
#include "frameworks/deepspeed/deepspeed_config.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

// Sets the stack, ZeRO stage and recompute of `result` if the file has FSDP settings or if `asked`
// is true.
void read_fsdp(FlatReader& in, bool asked, ImportedPlan& result);

// Device mesh of FSDP2: the number of replicas, and of shards per replica. Read from the keys of
// accelerate or axolotl.
struct ShardMesh {
  std::int64_t copies = 1;
  std::int64_t shards = 1;
};
ShardMesh mesh_of(FlatReader& in);
// Tensor, context and expert parallelism.
struct ModelSplit {
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t ep = 1;
};
// Sets the shard group in `result` if there are several replicas (HSDP). A group of 8 GPUs becomes
// kShardOverNode. Replicas without shards become ZeRO 0. `gpus`: of the job.
void read_mesh(FlatReader& in, const ShardMesh& mesh, const ModelSplit& split, std::int64_t gpus,
               ImportedPlan& result);

// Reads both from the keys of accelerate, axolotl and scripts of their own.
ModelSplit split_of(FlatReader& in);
// Refuses both, as without FSDP. Returns no split.
ModelSplit refused_split(FlatReader& in, LeftSettings& left);
// Applies `split` to a plan with FSDP over all GPUs, and predicts the plan with torchtitan's stack.
// `batch`: sequences of a step; 0: keeps the number of micro-batches.
Status split_model(const ModelSplit& split, std::int64_t batch, ImportedPlan& imported);

// Sets the stack, ZeRO stage and offload of `result` from DeepSpeed's JSON or accelerate's own
// keys. The JSON is `file` itself, or a file that `file` refers to, whose absence is an error. Does
// nothing if DeepSpeed is not used.
Status read_deepspeed(FlatReader& in, const LaunchFile& file, const ImportInputs& inputs,
                      DeepSpeedConfig& config, ImportedPlan& result);

}  // namespace tpsim
