// Loads the user's choice: the scenario, and its names in commands and plan files.
#pragma once

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "gui/views/app_state.h"
#include "plans/questions/open_inputs.h"
#include "sim/step/load_scenario.h"

namespace tpsim::gui {

struct LoadedChoice {
  Scenario scenario;
  ScenarioNames names;  // all of them: also those that were not chosen; the network as turned
  Unstated unstated;
};
Result<LoadedChoice> load_choice(const Catalogue& catalogue, const Choice& choice);

// Another model is another question: with the batch and dtypes that `tpsim plan` takes for it.
void choose_model(const std::string& name, Choice& choice);
// Another cluster brings its own GPUs, network and software.
void choose_cluster(const std::string& name, Choice& choice);

// Sequences a step: the chosen ones, else those that `tpsim plan` takes.
std::int64_t global_batch_of(const Choice& choice, const ModelSpec& model);

}  // namespace tpsim::gui
