// How Hugging Face's Trainer shards a model: FSDP's settings and mesh, and DeepSpeed's file.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "formats/settings_text.h"
#include "frameworks/deepspeed/deepspeed_config.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

// Sets stack, ZeRO stage and recompute where the file has FSDP's settings, or where it was asked
// for.
void read_fsdp(FlatReader& in, bool asked, ImportedPlan& result);

// FSDP2's mesh: shards, and copies of them. As accelerate calls it and as axolotl does.
struct ShardMesh {
  std::int64_t copies = 1;
  std::int64_t shards = 1;
};
ShardMesh mesh_of(FlatReader& in);
// Copies of shards are those of nodes where shards fill one.
void read_mesh(FlatReader& in, const ShardMesh& mesh, std::int64_t gpus, ImportedPlan& result);

// Sets stack, ZeRO stage and offload by DeepSpeed's file, which `file` names or is, or by
// accelerate's own keys; nothing where there are none. An error for a file that is not there.
Status read_deepspeed(FlatReader& in, const LaunchFile& file, const ImportInputs& inputs,
                      DeepSpeedConfig& config, ImportedPlan& result);

}  // namespace tpsim
