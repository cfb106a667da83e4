// A cut of the model into stages, and which of its chunks and stages are alike.
//
// A pipeline has hundreds of stages but few kinds of them: what holds the embedding, what holds the
// head, and one or two numbers of blocks between. Costs are worked out once for each kind.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_spec.h"

namespace tpsim {

struct ChunkKind {
  std::int64_t blocks = 0;
  bool is_first = false;  // of the model: starts from tokens
  bool is_last = false;   // ends in the loss
  // The first layer from which on as many blocks of the same kinds follow one another: 0 where all
  // blocks are alike.
  std::int64_t first_layer = 0;
  friend bool operator==(const ChunkKind&, const ChunkKind&) = default;
};

struct StageKind {
  std::vector<std::int32_t> chunks;   // indices into StageCut::chunks, in the order of the model
  std::vector<std::int32_t> kinds;    // the distinct ones among them
  std::vector<std::int32_t> kind_of;  // of each local chunk: index into `kinds`
  std::int64_t blocks = 0;            // of all its chunks
  std::vector<std::int64_t> of_kind;  // of these, by kind of block
  bool is_first = false;              // holds the first chunk of the model
  bool is_last = false;
  std::int64_t first_stage = 0;  // the first stage of this kind
};

// Neighbouring stages of one kind.
struct StageRun {
  std::int32_t kind = 0;
  std::int64_t count = 0;
};

struct StageCut {
  std::vector<std::int64_t> layers;  // as Plan::stage_layers
  std::vector<ChunkKind> chunks;
  std::vector<StageKind> stages;
  std::vector<StageRun> runs;  // all stages, in order
};

// `layers` holds stages x virtual stages entries, one for each chunk in model order.
StageCut stage_cut(std::vector<std::int64_t> layers, std::int64_t stages, const ModelSpec& model);

}  // namespace tpsim
