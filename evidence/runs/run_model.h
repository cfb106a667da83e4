// The model of a row of a run table.
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

// GPT-2's words, padded: what Megatron's papers use.
inline constexpr std::int64_t kUsualVocabulary = 51200;

// What a column says, or what stands where it says nothing.
inline const std::string& stated_or(const std::string& stated, const std::string& otherwise) {
  return stated.empty() ? otherwise : stated;
}
inline std::int64_t stated_or(std::int64_t stated, std::int64_t otherwise) {
  return stated > 0 ? stated : otherwise;
}

// Its shape from the table, its habits from the environment. Vocabulary and FFN width have their
// usual values where the row does not say (51,200; 4 x hidden). The first `dense_layers` blocks,
// and those that `moe_every` passes by, are as wide as the experts that a token passes.
ModelSpec model_of(const PublishedRun& run, const RunEnvironment& environment);

// The row with the degrees of tensor, pipeline and data parallelism that it leaves out, where its
// GPUs leave no choice: one of them is what the others leave of the GPUs; several are 1 where the
// others take all.
PublishedRun with_degrees(PublishedRun run);

// The row with the batch that it leaves out, where its degrees are known: a micro-batch for each
// replica, with pipelines several for each stage. A row that states its time must state its batch.
PublishedRun with_usual_batch(PublishedRun run);

// The catalogue's models for rows that name them, each read once.
class CatalogueModels {
 public:
  explicit CatalogueModels(Catalogue catalogue) : catalogue_(std::move(catalogue)) {}

  // With the row's sequence, vocabulary and number of blocks, where the sizes that the row states
  // are the model's own. It has what no column says: latent attention, windows, how a router
  // weighs; models without any such thing are left to the columns. "deepseek-v3-4l" is four blocks
  // of deepseek-v3.
  std::optional<ModelSpec> of(const PublishedRun& run);
  // The row with the sizes that it leaves out, where the catalogue has a model of its name and of
  // the sizes that it states. Sequences have 4096 tokens, or as many as the model takes, where the
  // row states no time that depends on them.
  PublishedRun completed(PublishedRun run);

 private:
  const std::optional<ModelSpec>& called(const std::string& name);
  const ModelSpec* of_sizes(const PublishedRun& run);  // null: none

  Catalogue catalogue_;
  std::map<std::string, std::optional<ModelSpec>> models_;
};

}  // namespace tpsim
