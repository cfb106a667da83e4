// The tensors of a rank on their way to and from files: weights from a Hugging Face checkpoint,
// training state in any layout, gradients for inspection.
#pragma once

#include <filesystem>
#include <vector>

#include "core/base/result.h"
#include "reference_model/state/state_folder.h"
#include "reference_model/state/tensor_store.h"
#include "reference_model/step/rank_model.h"

namespace tpsim {

enum class StateKind : std::uint8_t { kMaster, kMomentum, kVariance, kGradients };

// The blocks of a kind of tensor that this rank gives to files, padding left out: of the ranks that
// hold one, it is given by one. Collective over the data-parallel groups, which put their shares
// together.
std::vector<TensorBlock> gather_blocks(RankModel& model, StateKind kind);

// Sets weights and master weights from a checkpoint's tensors.
Status load_weights(RankModel& model, const BlockReader& reader);

// Whether every rank succeeded; all of them call this. The first that failed gets its own error
// back, the others are thrown out (CommunicatorAborted), so that nobody waits for the dead and one
// rank reports.
Status agree(RankModel& model, const Status& mine);

// Training state of `step` below `folder` (state_folder.h), of a run with these facts. When a rank
// cannot write, nothing of the new state stays behind and older ones are left as they are.
// Collective.
Status save_state(RankModel& model, std::int64_t step, const std::filesystem::path& folder,
                  const RunFacts& run);
// Continues from a folder that save_state made, in whatever layout it was saved.
Status load_state(RankModel& model, const std::filesystem::path& step_folder);
// The newest whole state, the same on all ranks; the first one looks and alone knows what it
// belongs to and which others were passed over. Collective.
Result<SavedState> agreed_state(RankModel& model, const std::filesystem::path& folder);

// Merges the blocks that all ranks pass into one safetensors file under the checkpoint's names.
// Collective; the world's first rank writes.
Status write_merged(RankModel& model, const std::vector<TensorBlock>& blocks,
                    const std::filesystem::path& path);

}  // namespace tpsim
