// Sharding of Hugging Face's Trainer: FSDP's settings and mesh, and DeepSpeed's file.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "formats/settings_text.h"
#include "frameworks/deepspeed/deepspeed_config.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

// Sets stack, ZeRO stage and recompute if the file has FSDP's settings, or if `asked`.
void read_fsdp(FlatReader& in, bool asked, ImportedPlan& result);

// FSDP2's mesh: replicas and shards, with the keys of accelerate or axolotl.
struct ShardMesh {
  std::int64_t copies = 1;
  std::int64_t shards = 1;
};
ShardMesh mesh_of(FlatReader& in);
// Sets the shard group of HSDP. Shards that fill a node become kShardOverNode.
void read_mesh(FlatReader& in, const ShardMesh& mesh, std::int64_t gpus, ImportedPlan& result);

// Sets stack, ZeRO stage and offload from DeepSpeed's file or accelerate's own keys. The file is
// `file` itself, or named in it. Does nothing without DeepSpeed. A missing file is an error.
Status read_deepspeed(FlatReader& in, const LaunchFile& file, const ImportInputs& inputs,
                      DeepSpeedConfig& config, ImportedPlan& result);

}  // namespace tpsim
