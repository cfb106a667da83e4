// Builds the model of a row of a run table, from its columns or from the catalogue.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/model/model_spec.h"
#include "core/scenario/catalogue.h"
#include "evidence/runs/run_environment.h"
#include "evidence/runs/run_table.h"

namespace tpsim {

// Vocab size of GPT-2, padded as in Megatron's papers.
inline constexpr std::int64_t kUsualVocabulary = 51200;

// Returns the stated value, or the default if the column is empty or 0.
inline const std::string& stated_or(const std::string& stated, const std::string& otherwise) {
  return stated.empty() ? otherwise : stated;
}
inline std::int64_t stated_or(std::int64_t stated, std::int64_t otherwise) {
  return stated > 0 ? stated : otherwise;
}

// Builds the model from the row's sizes and the environment's settings. The defaults are a vocab
// size of 51,200 and an FFN size of 4 x hidden. The first `dense_layers` layers, and the layers
// that `moe_every` skips, are dense. The FFN of a dense layer is as wide as the active and shared
// experts of a token together.
ModelSpec model_of(const PublishedRun& run, const RunEnvironment& environment);

// Adds missing tensor, pipeline and data parallel degrees if they follow from the number of GPUs. A
// single missing degree is the quotient. Several missing degrees are 1 if the stated degrees use
// all GPUs.
PublishedRun with_degrees(PublishedRun run);

// Adds a missing global batch if the degrees are known: one micro-batch per replica, or several per
// pipeline stage. Rows with a step time are not changed, since they must state their batch.
PublishedRun with_usual_batch(PublishedRun run);

// Loads catalogue models for rows that name them. Each model is loaded once.
class CatalogueModels {
 public:
  explicit CatalogueModels(Catalogue catalogue) : catalogue_(std::move(catalogue)) {}

  // Returns the catalogue's model if the row names it, its sizes match, and it has features that a
  // run table cannot express, such as latent attention or windows. Otherwise returns nothing, and
  // model_of() builds the model. The row sets the sequence length, vocab size and number of layers:
  // "deepseek-v3-4l" is deepseek-v3 with four layers.
  std::optional<ModelSpec> of(const PublishedRun& run);
  // Sets what run tables do not state from the catalogue's model of that name and these sizes: the
  // activation of a plain feed-forward part, and the ops that compute it.
  void set_activation(const PublishedRun& run, ModelSpec& model);
  // Adds missing sizes if the catalogue has a model with the row's name and stated sizes. If the
  // row states no step time, a missing sequence length becomes min(4096, the model's).
  PublishedRun completed(PublishedRun run);

 private:
  const std::optional<ModelSpec>& called(const std::string& name);
  const ModelSpec* of_sizes(const PublishedRun& run);  // null if there is none

  Catalogue catalogue_;
  std::map<std::string, std::optional<ModelSpec>> models_;
};

}  // namespace tpsim
