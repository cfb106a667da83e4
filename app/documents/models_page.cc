#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "app/documents/formats_page.h"
#include "core/base/numbers.h"
#include "core/model/model_support.h"
#include "core/scenario/catalogue.h"
#include "core/software/launch_rules.h"

namespace tpsim::app {
namespace {

// All models of one family.
using Models = std::vector<ModelSpec>;

template <class Obstacle>
std::string answer(const Models& models, Obstacle obstacle) {
  std::vector<std::string> against;
  std::size_t without = 0;
  for (const ModelSpec& model : models) {
    std::string one = obstacle(model);
    if (one.empty()) ++without;
    const bool is_new = std::find(against.begin(), against.end(), one) == against.end();
    if (!one.empty() && is_new) against.push_back(std::move(one));
  }
  if (against.empty()) return "yes";
  std::string text = without > 0 ? fmt::format("{} of {}; not", without, models.size()) : "no:";
  for (std::size_t i = 0; i < against.size(); ++i) {
    text += fmt::format("{} {}", i == 0 ? "" : ",", against[i]);
  }
  return text;
}

std::string exported(const Models& models, Launcher launcher) {
  return answer(models, [&](const ModelSpec& model) -> std::string {
    for (const RuleScope scope : {RuleScope::kFiles, RuleScope::kModel}) {
      const LaunchRule* rule = broken_rule(launcher, scope, model, Plan{});
      if (rule != nullptr) return rule->what;
    }
    return "";
  });
}

std::string row_of(const std::string& family, const Models& models, bool is_read) {
  const std::string read = is_read ? "config.json" : "tpsim's own";
  if (models.empty()) return fmt::format("| {} | {} | none | | | | | | |\n", family, read);
  const auto [least, most] =
      std::minmax_element(models.begin(), models.end(), [](const ModelSpec& a, const ModelSpec& b) {
        return parameter_count(a) < parameter_count(b);
      });
  std::string sizes = parameters_text(parameter_count(*least));
  if (models.size() > 1) sizes += " to " + parameters_text(parameter_count(*most));
  const std::string planned = answer(models, [](const ModelSpec& model) -> std::string {
    const Status status = check_plannable(model);
    return status.ok() ? "" : status.error().message;
  });
  return fmt::format("| {} | {} | {}: {} | {} | {} | {} | {} | {} | {} |\n", family, read,
                     models.size(), sizes, planned, answer(models, untrained_part),
                     exported(models, Launcher::kMegatron), exported(models, Launcher::kNemo),
                     exported(models, Launcher::kMegatronDeepSpeed),
                     exported(models, Launcher::kTorchTitan));
}

}  // namespace

Result<std::string> models_page(const Catalogue& catalogue) {
  std::map<std::string, Models> families;
  for (const std::string_view type : huggingface_types()) families[std::string(type)];
  for (const std::string& name : catalogue.list(CatalogueKind::kModels)) {
    TPSIM_TRY(ModelSpec model, catalogue.load_model(name));
    families[family_of(model)].push_back(std::move(model));
  }
  std::string page =
      "# Families of models\n\n"
      "`tpsim show families` prints this page, from the catalogue, the readers of `config.json` "
      "and the rules of\nthe launchers. `tpsim list models` lists the models themselves. tpsim "
      "also "
      "reads and plans a `config.json` of\na family without a model in the catalogue.\n\n"
      "- planned: whether tpsim can predict the family. \"N of M\" counts models, followed by what "
      "is not supported.\n"
      "- trained: whether `tpsim run` trains the family, on CPUs and GPUs alike. For other "
      "families "
      "it names the\n  unsupported part and ends with exit code 4.\n"
      "- launchers: whether the launcher supports the model. It may still reject settings of a "
      "plan.\n\n"
      "| family | read from | in the catalogue | planned | trained | Megatron-LM | NeMo | "
      "Megatron-DeepSpeed | torchtitan |\n|---|---|---|---|---|---|---|---|---|\n";
  const std::vector<std::string_view> types = huggingface_types();
  for (const auto& [family, models] : families) {
    const bool is_read = std::find(types.begin(), types.end(), family) != types.end();
    page += row_of(family, models, is_read);
  }
  return page;
}

}  // namespace tpsim::app
