// Loads the user's inputs as a scenario, with the names that commands and plan files use.
#pragma once

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "gui/views/app_state.h"
#include "plans/questions/open_inputs.h"
#include "plans/search/search_space.h"

namespace tpsim::gui {

struct LoadedChoice {
  Scenario scenario;
  ScenarioNames names;  // including defaults and the scaled network bandwidth
  Unstated unstated;
};
// Parts of the software that the user did not choose are those that `tpsim plan` takes.
Result<LoadedChoice> load_choice(const Catalogue& catalogue, const Choice& choice);
// Returns what the choice searches.
SearchSpace space_of(const Choice& choice, const ModelSpec& model);

// Selects another model, with the default batch and dtypes of `tpsim plan`.
void choose_model(const std::string& name, Choice& choice);
// Selects another cluster, with its number of GPUs, network and software.
void choose_cluster(const std::string& name, Choice& choice);

// Selects other software; an empty name selects the cluster's, which counts as assumed.
void choose_stack(const std::string& name, Choice& choice);

// Returns the chosen global batch, or the default of `tpsim plan` if it is 0.
std::int64_t global_batch_of(const Choice& choice, const ModelSpec& model);

}  // namespace tpsim::gui
