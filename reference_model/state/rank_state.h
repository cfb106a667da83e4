// Conversion of a rank's tensors to and from files: weights of Hugging Face checkpoints, training
// state of any parallel layout, gradients for inspection.
#pragma once

#include <filesystem>
#include <vector>

#include "core/base/result.h"
#include "reference_model/state/state_folder.h"
#include "reference_model/state/tensor_store.h"
#include "reference_model/step/rank_model.h"

namespace tpsim {

// Returns the blocks of a state tensor, or of the gradients, that this rank must write, without
// padding. If several ranks hold the same block, exactly one of them returns it. Collective over
// the data-parallel groups, which gather their shares.
std::vector<TensorBlock> gather_blocks(RankModel& model, StateTensor tensor);
std::vector<TensorBlock> gather_gradients(RankModel& model);

// Sets weights and master weights from a checkpoint's tensors.
Status load_weights(RankModel& model, const BlockReader& reader);

// Checks that every rank succeeded. If ranks failed, the first failed rank returns its own error,
// and all others throw CommunicatorAborted: no rank waits for a failed one, and only one rank
// reports. Collective.
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

// Merges the blocks of all ranks into one safetensors file with the checkpoint's names. The first
// rank of the world writes the file. Collective.
Status write_merged(RankModel& model, const std::vector<TensorBlock>& blocks,
                    const std::filesystem::path& path);

}  // namespace tpsim
