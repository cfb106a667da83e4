// Conversion of a rank's tensors to and from files: weights of Hugging Face checkpoints, training
// state in any layout, gradients for inspection.
#pragma once

#include <filesystem>
#include <vector>

#include "core/base/result.h"
#include "reference_model/state/state_folder.h"
#include "reference_model/state/tensor_store.h"
#include "reference_model/step/rank_model.h"

namespace tpsim {

enum class StateKind : std::uint8_t { kMaster, kMomentum, kVariance, kGradients };

// Returns the blocks of one kind of tensor that this rank writes, without padding. Exactly one of
// the ranks that hold a block returns it. Collective over the data-parallel groups, which gather
// their ZeRO shares.
std::vector<TensorBlock> gather_blocks(RankModel& model, StateKind kind);

// Sets weights and master weights from a checkpoint's tensors.
Status load_weights(RankModel& model, const BlockReader& reader);

// Collective: checks that every rank succeeded. The first failed rank gets its own error as result.
// All others throw CommunicatorAborted, so that no rank waits for a failed one and one rank
// reports.
Status agree(RankModel& model, const Status& mine);

// Writes the training state of `step` below `folder` (state_folder.h), with the settings of the
// run. If a rank cannot write, the new state is removed and older states are unchanged. Collective.
Status save_state(RankModel& model, std::int64_t step, const std::filesystem::path& folder,
                  const RunFacts& run);
// Loads a state that save_state() wrote, from any layout.
Status load_state(RankModel& model, const std::filesystem::path& step_folder);
// Returns the newest intact state, equal on all ranks. The run settings and the list of damaged
// states are set on the first rank only, which reads the folder. Collective.
Result<SavedState> agreed_state(RankModel& model, const std::filesystem::path& folder);

// Merges the blocks of all ranks into one safetensors file with the checkpoint's names. Collective;
// the world's first rank writes.
Status write_merged(RankModel& model, const std::vector<TensorBlock>& blocks,
                    const std::filesystem::path& path);

}  // namespace tpsim
