// Model of a row of a run table.
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

// GPT-2's padded vocab size, as in Megatron's papers.
inline constexpr std::int64_t kUsualVocabulary = 51200;

// Returns the stated value, or a default if the column is empty.
inline const std::string& stated_or(const std::string& stated, const std::string& otherwise) {
  return stated.empty() ? otherwise : stated;
}
inline std::int64_t stated_or(std::int64_t stated, std::int64_t otherwise) {
  return stated > 0 ? stated : otherwise;
}

// Builds the model from the row's sizes and the environment's settings. Defaults: vocab size
// 51,200, FFN size 4 x hidden. The first `dense_layers` blocks, and those that `moe_every` skips,
// are dense. Their FFN is as wide as all experts of a token together.
ModelSpec model_of(const PublishedRun& run, const RunEnvironment& environment);

// Adds tensor, pipeline and data parallel degrees if the GPUs determine them. A single missing
// degree is the quotient. Several missing degrees are 1 if the others use all GPUs.
PublishedRun with_degrees(PublishedRun run);

// Adds a missing batch if the degrees are known: one micro-batch per replica, or several per stage
// with pipelines. A row with a step time must state its batch.
PublishedRun with_usual_batch(PublishedRun run);

// Catalogue models for rows that name them. Each model is read once.
class CatalogueModels {
 public:
  explicit CatalogueModels(Catalogue catalogue) : catalogue_(std::move(catalogue)) {}

  // Returns the model with the row's sequence, vocab size and number of blocks, if the row's sizes
  // match. Nothing for models that columns describe completely: no latent attention, windows, or
  // special routers. "deepseek-v3-4l" is deepseek-v3 with four blocks.
  std::optional<ModelSpec> of(const PublishedRun& run);
  // Adds missing sizes if the catalogue has a model with the row's name and stated sizes. Without a
  // stated step time the default sequence is min(4096, the model's) tokens.
  PublishedRun completed(PublishedRun run);

 private:
  const std::optional<ModelSpec>& called(const std::string& name);
  const ModelSpec* of_sizes(const PublishedRun& run);  // null if there is none

  Catalogue catalogue_;
  std::map<std::string, std::optional<ModelSpec>> models_;
};

}  // namespace tpsim
