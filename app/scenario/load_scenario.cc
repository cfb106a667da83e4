
#include <fmt/format.h>

#include <algorithm>

#include "app/scenario/allocated.h"
#include "app/scenario/assumed_stack.h"
#include "app/scenario/effective_file.h"
#include "app/scenario/field.h"
#include "app/scenario/scenario_request.h"
#include "core/base/text.h"
#include "core/machine/node_rate.h"
#include "core/model/expert_counts.h"
#include "core/model/model_support.h"
#include "core/scenario/measured_stack.h"
#include "costs/machine_cluster.h"
#include "frameworks/launch/framework.h"

namespace tpsim::app {
namespace {

// Adds to an error where the wrong name comes from: the field, else the plan file, else the cluster
// that refers to it. An error that already states a location is returned unchanged.
template <class T>
Result<T> blaming(Result<T> result, const ScenarioRequest& request, Field field,
                  const std::string& stated, const std::string& cluster = "") {
  if (result.ok() || !result.error().where.empty()) return result;
  Error error = result.error();
  const bool is_field = !stated.empty() || (request.origin.empty() && cluster.empty());
  error.where = is_field                 ? option_of(field)
                : request.origin.empty() ? "cluster " + cluster
                                         : request.origin;
  return error;
}

}  // namespace

Error of_one_kind(Error error, const std::string& profile) {
  if (error.where == option_of(Field::kProfile) && profile.find(',') != std::string::npos) {
    error.hint =
        "all GPUs of a plan must be of one kind: plan each kind separately, or all GPUs with the "
        "profile of the slowest kind";
  }
  return error;
}

Result<ModelSpec> load_model(const ScenarioRequest& request, const Catalogue& catalogue) {
  ModelSpec model;
  if (!request.model.empty()) {
    TPSIM_TRY(model,
              blaming(catalogue.load_model(request.model), request, Field::kModel, request.model));
    if (request.file) model = model_of_plan_file(*request.file, std::move(model));
  } else if (!request.defaults.model.empty()) {
    TPSIM_TRY(model, catalogue.load_model(request.defaults.model));
  } else if (request.file) {
    model = request.file->model;
  } else {
    return field_error(Field::kModel, "the model is missing",
                       "give a name of tpsim list models, or a config.json");
  }
  model.seq = request.seq.value_or(request.defaults.seq.value_or(model.seq));
  if (request.attention_dropout) model.attention_dropout = *request.attention_dropout;
  TPSIM_TRY_STATUS(validate(model));
  TPSIM_TRY_STATUS(check_plannable(model));
  return model;
}

namespace {

constexpr const char* kDefaultCluster = "jean-zay-a100";

std::string names_text(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<Profile> load_profile(const ScenarioRequest& request, const Catalogue& catalogue,
                             const std::string& name, const std::string& cluster) {
  Result<Profile> profile =
      blaming(catalogue.load_profile(name), request, Field::kProfile, request.profile, cluster);
  return profile.ok() ? profile : of_one_kind(profile.error(), request.profile);
}

Error no_cluster(const Catalogue& catalogue, const std::string& profile) {
  std::vector<std::string> fitting;
  for (const std::string& name : catalogue.list(CatalogueKind::kClusters)) {
    const Result<ClusterSpec> cluster = catalogue.load_cluster(name);
    if (cluster.ok() && (profile.empty() || cluster->profile == profile)) fitting.push_back(name);
  }
  return field_error(
      Field::kCluster, "the cluster is missing",
      profile.empty() || fitting.empty()
          ? "choose from " + names_text(catalogue.list(CatalogueKind::kClusters)) +
                ", or give a file"
          : fmt::format("clusters with profile {}: {}", profile, names_text(fitting)));
}

// Returns the name of the cluster: `name` from the request or plan file, else this-machine if the
// profile describes one, else the usual cluster of the model.
Result<std::string> cluster_name(const ScenarioRequest& request, const Catalogue& catalogue,
                                 const std::string& name, const ModelSpec& model) {
  if (name.find(',') != std::string::npos) {
    return field_error(
        Field::kCluster, "names several clusters, but all GPUs of a plan must be of one kind",
        "plan each kind separately, or all GPUs with the --profile of the slowest kind");
  }
  if (!name.empty()) return name;
  const std::string& profile = request.profile;
  if (!profile.empty()) {
    TPSIM_TRY(const Profile found, load_profile(request, catalogue, profile, ""));
    if (found.machine.devices > 0) return std::string(kThisMachine);
  } else if (!model.usual.cluster.empty()) {
    return model.usual.cluster;
  }
  if (request.predicts) return no_cluster(catalogue, profile);
  return std::string(kDefaultCluster);
}

// Loads a profile as the machine, for the cluster this-machine. The profile must be named and
// describe a machine.
Status load_machine(const ScenarioRequest& request, const Catalogue& catalogue,
                    const std::string& profile, NamedScenario& named) {
  if (profile.empty()) {
    return field_error(Field::kProfile,
                       "the profile is missing: cluster this-machine needs a measured one",
                       "tpsim profile -o profile.json writes one");
  }
  named.profile = profile;
  Scenario& scenario = named.scenario;
  TPSIM_TRY(scenario.profile, load_profile(request, catalogue, named.profile, ""));
  if (scenario.profile.machine.devices == 0) {
    return field_error(Field::kProfile,
                       fmt::format("profile {} does not describe a machine", scenario.profile.name),
                       "choose a --cluster, or a profile that tpsim profile wrote");
  }
  scenario.cluster = machine_cluster(scenario.profile);
  return Ok{};
}

// Returns an error if the stack lists the supported values of a part and the value is not among
// them.
Status check_choice(const NamedScenario& named, const PartRow& row, std::int64_t value) {
  const PartLists& lists = named.scenario.stack.choices.parts;
  const auto list = lists.find(row.part);
  const bool is_own = row.get(named.scenario.stack) == value;
  const bool is_listed =
      list == lists.end() || std::count(list->second.begin(), list->second.end(), value) > 0;
  if (is_own || is_listed) return Ok{};
  return field_error(
      row.part, fmt::format("stack {} does not support {}", named.stack, text_of(row, value)),
      fmt::format("the stack supports {}; --ignore-stack-limits predicts the plan anyway",
                  joined_text(list->second, ", ", [&](auto one) { return text_of(row, one); })));
}

// Applies the stated software parts. A search tries each of several values of a part.
Status add_stated_parts(const ScenarioRequest& request, NamedScenario& named) {
  ModelSpec& model = named.scenario.model;
  if (!request.expert_counts.empty()) {
    if (!has_experts(model)) {
      return field_error(StackPart::kExpertLoad, fmt::format("model {} has no experts", model.name),
                         "remove the option");
    }
    TPSIM_TRY(model.experts.counts, read_expert_counts(request.expert_counts, model.experts.count));
    TPSIM_TRY_STATUS(validate(model));
  }
  PartLists searched;
  for (const auto& [part, values] : request.parts) {
    if (!request.ignore_stack_limits) {
      for (const std::int64_t value : values) {
        TPSIM_TRY_STATUS(check_choice(named, row_of(part), value));
      }
    }
    named.parts[part] = values.front();
    if (values.size() > 1) searched[part] = values;
  }
  named.scenario.stack = with_parts(std::move(named.scenario.stack), named.parts);
  for (const auto& [part, value] : named.parts) {
    const PartRow& row = row_of(part);
    if (const std::int64_t left = row.get(named.scenario.stack); left != value) {
      return field_error(part,
                         fmt::format("{} contradicts another stated part, which makes it {}",
                                     text_of(row, value), text_of(row, left)),
                         "remove one of the two options");
    }
  }
  for (auto& [part, values] : searched) {
    named.parts.erase(part);
    named.scenario.stack.choices.parts[part] = std::move(values);
  }
  return Ok{};
}

Status set_network(NamedScenario& named) {
  if (named.node_gbps == 0) return Ok{};
  ClusterSpec& cluster = named.scenario.cluster;
  if (cluster.nodes == 1) {
    return field_error(Field::kNodeGbps, fmt::format("cluster {} has only one node", cluster.name),
                       "the option sets the network between nodes: remove it");
  }
  cluster = with_node_rate(std::move(cluster), named.node_gbps);
  return Ok{};
}

// Returns an error if the stack's launcher cannot run the model with any plan.
Status check_stack_runs(const Catalogue& catalogue, const Scenario& scenario) {
  const LaunchRule* rule = reason_against(scenario.stack.launcher, scenario.model);
  if (rule == nullptr) return Ok{};
  std::vector<std::string> others;
  for (const std::string& name : catalogue.list(CatalogueKind::kStacks)) {
    const Result<StackSpec> stack = catalogue.load_stack(name);
    if (!stack.ok()) continue;
    const Framework* const framework = framework_of(stack->launcher, name);
    if (framework == nullptr) continue;
    if (reason_against(framework->launcher(), scenario.model) == nullptr) others.push_back(name);
  }
  return field_error(
      Field::kStack,
      fmt::format("stack {} cannot run {}: {}", scenario.stack.name, rule->what, rule->why),
      (others.empty() ? "" : names_text(others) + " can run the model; ") +
          "--ignore-stack-limits plans the model anyway");
}

// If a saved plan names a file that cannot be loaded, adds a hint that the plan refers to it.
template <class T>
Result<T> named_in_plan(const ScenarioRequest& request, Field field, const std::string& stated,
                        Result<T> found) {
  if (found.ok() || !request.file || !stated.empty() || !request.cluster.empty()) return found;
  Error error = found.error();
  if (error.hint.empty()) {
    error.hint =
        fmt::format("the plan file refers to this file: restore it, or give another one with {}",
                    option_of(field));
  }
  return error;
}

// Loads cluster and profile, with the network of the request.
Status load_hardware(const ScenarioRequest& request, const Catalogue& catalogue,
                     const PlanFile& names, NamedScenario& named) {
  Scenario& scenario = named.scenario;
  TPSIM_TRY(named.cluster, cluster_name(request, catalogue, names.cluster, scenario.model));
  if (named.cluster == kThisMachine) {
    TPSIM_TRY_STATUS(load_machine(request, catalogue, names.profile, named));
  } else {
    TPSIM_TRY(scenario.cluster, named_in_plan(request, Field::kCluster, request.cluster,
                                              blaming(catalogue.load_cluster(named.cluster),
                                                      request, Field::kCluster, request.cluster)));
    named.profile = names.profile.empty() ? scenario.cluster.profile : names.profile;
    TPSIM_TRY(scenario.profile, load_profile(request, catalogue, named.profile, named.cluster));
  }
  named.node_gbps = names.node_gbps;
  TPSIM_TRY_STATUS(set_network(named));
  return add_allocation(request, names, named);
}

// Loads the stack, with the stated parts.
Status load_software(const ScenarioRequest& request, const Catalogue& catalogue,
                     const PlanFile& names, NamedScenario& named) {
  Scenario& scenario = named.scenario;
  named.stack = names.stack.empty() ? request.defaults.stack : names.stack;
  if (named.stack.empty()) TPSIM_TRY_STATUS(assume_stack(request, catalogue, named));
  TPSIM_TRY(scenario.stack, named_in_plan(request, Field::kStack, request.stack,
                                          blaming(catalogue.load_stack(named.stack), request,
                                                  Field::kStack, request.stack, named.cluster)));
  // The configuration of a run decides between the listed kernels (plans/questions/open_inputs.h).
  scenario.stack.choices.parts.erase(StackPart::kAttentionKernel);
  named.parts = names.parts;
  TPSIM_TRY_STATUS(add_stated_parts(request, named));
  if (request.ignore_stack_limits) {
    scenario.stack = without_limits(std::move(scenario.stack));
  } else if (request.predicts) {
    TPSIM_TRY_STATUS(check_stack_runs(catalogue, scenario));
  }
  scenario.stack =
      completed_stack(std::move(scenario.stack), {}, scenario.profile, scenario.cluster);
  return Ok{};
}

}  // namespace

Result<NamedScenario> load_scenario(const ScenarioRequest& request) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return load_scenario(request, catalogue);
}

Result<NamedScenario> load_scenario(const ScenarioRequest& request, const Catalogue& catalogue) {
  TPSIM_TRY(EffectiveFile effective, effective_file(request, catalogue));
  const PlanFile& names = effective.file;
  NamedScenario named;
  if (request.no_limits) named.scenario.limits = kNoLimits;
  named.is_saved = request.file.has_value();
  named.dropped = std::move(effective.dropped);
  TPSIM_TRY(named.scenario.model, load_model(request, catalogue));
  note_dropped(request, named.scenario.model, named.dropped);
  TPSIM_TRY_STATUS(load_hardware(request, catalogue, names, named));
  named.cluster_is_default = request.file ? names.network_assumed : request.cluster.empty();
  const bool names_no_stack = request.stack.empty() && request.defaults.stack.empty();
  named.stack_is_default = request.file ? names.stack_assumed : names_no_stack;
  named.seq_is_default = !request.file && !request.seq && !request.defaults.seq;
  named.settings_assumed = names.settings_assumed;
  TPSIM_TRY_STATUS(load_software(request, catalogue, names, named));
  return named;
}

Result<NamedScenario> executed_here(NamedScenario named) {
  Scenario& scenario = named.scenario;
  if (scenario.stack.name == own_stack(scenario.profile)) return named;
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  TPSIM_TRY(StackSpec own, catalogue.load_stack(std::string(own_stack(scenario.profile))));
  own = completed_stack(std::move(own), {}, scenario.profile, scenario.cluster);
  scenario.stack = executed_stack(scenario.stack, std::move(own));
  return named;
}

ScenarioNames names_of(const NamedScenario& named) {
  return {named.scenario.model.name,
          named.cluster,
          named.profile,
          named.stack,
          named.parts,
          named.node_gbps};
}

Unstated unstated_of(const NamedScenario& named) {
  return {named.stack_is_default, named.cluster_is_default, named.settings_assumed};
}

PlanFile plan_file_of(const NamedScenario& named, const Plan& plan) {
  PlanFile file{named.scenario.model,
                named.cluster,
                named.profile,
                named.stack,
                named.parts,
                plan,
                named.node_gbps,
                named.stack_is_default,
                named.cluster_is_default,
                named.settings_assumed};
  const bool differ = !named.scenario.cluster.unequal_nodes.empty();
  file.nodes = lines_of(differ ? allocated_ranks(named, plan) : named.allocation);
  return file;
}

void adopt_parts(const std::vector<TriedParts>& tried, NamedScenario& named) {
  if (tried.empty()) return;
  named.tried = tried;
  for (const auto& [part, value] : tried.front().parts) named.parts[part] = value;
  named.scenario.stack = with_parts(std::move(named.scenario.stack), named.parts);
}

}  // namespace tpsim::app
