// A split of a model into pipeline stages, in which equal chunks and equal stages share one entry.
//
// A pipeline has up to hundreds of stages but few kinds: the stage with the embedding, the stage
// with the head, and one or two block counts between them. Costs are computed once per kind.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_spec.h"

namespace tpsim {

struct ChunkKind {
  std::int64_t blocks = 0;
  bool is_first = false;  // first chunk of the model, with the embedding
  bool is_last = false;   // last chunk of the model, with the head
  // Index of the first layer of the model from which the same sequence of block kinds runs as in
  // this chunk. Chunks with equal sequences have equal values. 0 if all blocks are equal.
  std::int64_t first_layer = 0;
  friend bool operator==(const ChunkKind&, const ChunkKind&) = default;
};

struct StageKind {
  std::vector<std::int32_t> chunks;   // indices into StageCut::chunks, in model order
  std::vector<std::int32_t> kinds;    // distinct values of `chunks`
  std::vector<std::int32_t> kind_of;  // index into `kinds` by local chunk
  std::int64_t blocks = 0;            // total over its chunks
  std::vector<std::int64_t> of_kind;  // `blocks` by kind of block
  bool is_first = false;              // has the first chunk of the model
  bool is_last = false;
  std::int64_t first_stage = 0;  // index of the first stage of this kind
};

// Consecutive stages of the same kind.
struct StageRun {
  std::int32_t kind = 0;
  std::int64_t count = 0;
};

struct StageCut {
  std::vector<std::int64_t> layers;  // see Plan::stage_layers
  std::vector<ChunkKind> chunks;
  std::vector<StageKind> stages;
  std::vector<StageRun> runs;  // all stages in pipeline order
};

// `layers`: number of blocks of each of the stages x virtual stages chunks, in model order.
StageCut stage_cut(std::vector<std::int64_t> layers, std::int64_t stages, const ModelSpec& model);

}  // namespace tpsim
