// The split of a model into stages, grouped by equal chunks and stages.
//
// A pipeline has hundreds of stages but few kinds: with the embedding, with the head, and one or
// two block counts between. Costs are computed once per kind.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_spec.h"

namespace tpsim {

struct ChunkKind {
  std::int64_t blocks = 0;
  bool is_first = false;  // of the model: starts with tokens
  bool is_last = false;   // ends with the loss
  // The first layer that starts a sequence of blocks of the same kinds; 0 if all blocks are alike.
  std::int64_t first_layer = 0;
  friend bool operator==(const ChunkKind&, const ChunkKind&) = default;
};

struct StageKind {
  std::vector<std::int32_t> chunks;   // indices into StageCut::chunks, in model order
  std::vector<std::int32_t> kinds;    // distinct entries of `chunks`
  std::vector<std::int32_t> kind_of;  // by local chunk: index into `kinds`
  std::int64_t blocks = 0;            // of all its chunks
  std::vector<std::int64_t> of_kind;  // `blocks` by kind of block
  bool is_first = false;              // holds the first chunk of the model
  bool is_last = false;
  std::int64_t first_stage = 0;  // the first stage of this kind
};

// Consecutive stages of one kind.
struct StageRun {
  std::int32_t kind = 0;
  std::int64_t count = 0;
};

struct StageCut {
  std::vector<std::int64_t> layers;  // see Plan::stage_layers
  std::vector<ChunkKind> chunks;
  std::vector<StageKind> stages;
  std::vector<StageRun> runs;  // all stages, in order
};

// `layers` has stages x virtual stages entries, one per chunk in model order.
StageCut stage_cut(std::vector<std::int64_t> layers, std::int64_t stages, const ModelSpec& model);

}  // namespace tpsim
