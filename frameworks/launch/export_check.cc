#include "frameworks/launch/export_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/model/model_json.h"
#include "core/scenario/catalogue.h"
#include "frameworks/launch/held_settings.h"
#include "frameworks/launch/launcher.h"
#include "frameworks/launch/named_model.h"
#include "lowering/passes/step_habits.h"
#include "sim/layers/layer_pricer.h"
#include "sim/step/simulate.h"

namespace tpsim {
namespace {

using Fields = std::map<std::string, std::string>;

constexpr const char* kParts = "model.extras.parts";

void add_fields(const std::string& key, const JsonValue& value, Fields& out) {
  if (const auto* object = value.as<JsonValue::Object>()) {
    for (const JsonMember& member : *object) add_fields(key + "." + member.key, member.value, out);
  } else if (const auto* text = value.as<std::string>()) {
    out[key] = *text;
  } else {
    out[key] = std::string(trimmed(to_text(value)));
  }
}

// Returns the fields of a model by key, except name, source and notes.
Fields fields_of(const ModelSpec& model) {
  ModelSpec plain = model;
  plain.name = plain.source = "";
  plain.notes.clear();
  plain.usual = {};
  Fields fields;
  const Result<JsonValue> json = parse_json(to_json(plain), "model");
  if (json.ok()) add_fields("model", *json, fields);
  if (fields.contains(kParts)) {  // their names instead of all ops
    fields[kParts] =
        joined_text(model.ends.parts, ", ", [](const OuterPart& one) { return one.name; });
  }
  return fields;
}

// Returns the catalogue's model with the same name and shape, because an import by name uses it.
// Otherwise returns `model`.
ModelSpec model_by_name(const ModelSpec& model) {
  const Result<Catalogue> catalogue = Catalogue::open();
  if (!catalogue.ok()) return model;
  Result<ModelSpec> named = catalogue->load_model(model.name);
  const bool is_same = named.ok() && shape_hash(*named) == shape_hash(model);
  return is_same ? *std::move(named) : model;
}

void compare(const Fields& from, const Fields& to, std::vector<LostSetting>& lost) {
  Fields all = from;
  all.insert(to.begin(), to.end());
  const auto value_in = [](const Fields& fields, const std::string& key) {
    const auto found = fields.find(key);
    return found == fields.end() ? std::string("-") : found->second;
  };
  for (const auto& [key, unused] : all) {
    std::string before = value_in(from, key), after = value_in(to, key);
    if (before != after) lost.push_back({key, std::move(before), std::move(after)});
  }
}

// Whether the setting or part has an effect for the launcher. Without a launcher, as for jobs of
// tpsim's own ranks, always true.
template <class... Value>
bool has_effect(std::optional<LaunchStack> launcher, Value... value) {
  return !launcher || held(*launcher, value...) != Held::kNoEffect;
}
template <class... Value>
bool is_lacking(std::optional<LaunchStack> launcher, Value... value) {
  return launcher && held(*launcher, value...) == Held::kRefused;
}

void compare(std::optional<LaunchStack> launcher, const Plan& from, const Plan& to,
             std::vector<LostSetting>& lost) {
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for != nullptr) continue;  // no effect without another setting
    if (!row.is_list() && !has_effect(launcher, setting_of(from, row.setting))) continue;
    std::string before = text_of(from, row.setting), after = text_of(to, row.setting);
    if (before == after) continue;
    const bool lacks = !row.is_list() && is_lacking(launcher, setting_of(from, row.setting));
    lost.push_back({std::string(row.key), std::move(before), std::move(after), lacks});
  }
}

void compare(std::optional<LaunchStack> launcher, const StackSpec& from, const StackSpec& to,
             std::vector<LostSetting>& lost) {
  for (const PartRow& row : part_rows()) {
    const std::int64_t before = row.get(from), after = row.get(to);
    if (before == after || !has_effect(launcher, row.part, before)) continue;
    lost.push_back({std::string(row.key), text_of(row, before), text_of(row, after),
                    is_lacking(launcher, row.part, before),
                    launcher ? fixed_behaviour(*launcher, row.part) : std::string_view()});
  }
}

// Returns the software of the imported plan: the stack's parts, replaced by the parts that the
// files state. Parts of the exported plan that the files omit are set to their values in `own`.
StackSpec stack_back(StackSpec stack, const StackSpec& own, const PartValues& exported,
                     const PartValues& stated) {
  for (const auto& [part, unused] : exported) row_of(part).set(stack, row_of(part).get(own));
  return with_parts(std::move(stack), stated);
}

Result<ImportedPlan> read_back(LaunchStack stack, const PlanFile& file,
                               const std::vector<LaunchFile>& files) {
  ImportInputs inputs;
  inputs.model = model_by_name(file.model);
  inputs.trusts_scripts = true;
  return import_plan(stack, files, inputs);
}

std::string change_text(const ExportLoss& loss) {
  return fmt::format("step {:.4g} -> {:.4g} s ({:+.1f} %), memory {} -> {} GiB ({:+.1f} %)",
                     loss.step.value(), loss.step_back.value(), loss.step_change() * 100,
                     gib_text(loss.memory), gib_text(loss.memory_back), loss.memory_change() * 100);
}

}  // namespace

Status check_loss(LaunchStack stack, const ExportLoss& loss) {
  constexpr const char* kHint = "--allow-loss writes the files anyway";
  if (!loss.refusal.empty()) {
    return Error{ErrorKind::kDoesNotFit,
                 fmt::format("tpsim import cannot read the exported files for {}: {}",
                             name_of(stack), loss.refusal),
                 "", kHint};
  }
  const double change = std::max(std::abs(loss.step_change()), std::abs(loss.memory_change()));
  std::vector<std::string> changed, lacking;
  for (const LostSetting& one : loss.lost) {
    if (one.is_of_model()) continue;
    const std::string why = one.why.empty() ? "" : fmt::format(" ({})", one.why);
    changed.push_back(fmt::format("{} {}{}", one.key, one.from, why));
    if (one.is_lacking) lacking.push_back(changed.back());
  }
  const bool is_exact = !changed.empty() || !lacking.empty();
  if (change <= (is_exact ? kToleratedRounding : kToleratedLoss)) return Ok{};
  if (!lacking.empty()) {
    return Error{ErrorKind::kDoesNotFit,
                 fmt::format("{} has no option for {}: {}", name_of(stack),
                             fmt::join(lacking, ", "), change_text(loss)),
                 "", kHint};
  }
  const std::string of =
      changed.empty() ? "" : fmt::format(", which lacks {}", fmt::join(changed, ", "));
  return Error{ErrorKind::kDoesNotFit,
               fmt::format("the exported files for {} describe a different plan{}: {}",
                           name_of(stack), of, change_text(loss)),
               "", kHint};
}

std::string loss_text(const ExportLoss& loss) {
  if (loss.lost.empty()) return "";
  std::string text;
  for (const LostSetting& one : loss.lost) {
    text += fmt::format("  {}: {} -> {}\n", one.key, one.from, one.to);
  }
  return text + "  " + change_text(loss) + "\n";
}

Result<CheckedExport> checked_export(LaunchStack stack, const PlanFile& file,
                                     const Scenario& scenario, const StackSpec& own) {
  CheckedExport checked;
  TPSIM_TRY(checked.files,
            export_plan(stack, file, launch_hosts(scenario.cluster, gpu_count(file.plan)), own));
  Scenario exported = scenario;
  exported.stack = without_limits(std::move(exported.stack));
  checked.run.plan = file.plan;
  std::shared_ptr<const OpCostModel> ops = PriceLists(exported).ops;
  TPSIM_TRY(checked.run.predicted, simulate(exported, file.plan, ops));
  ExportLoss& loss = checked.loss;
  loss.step = checked.run.predicted.step;
  loss.memory = checked.run.predicted.peak;
  const auto launcher = launcher_in(stack, file, own.launcher);
  const Result<ImportedPlan> back = read_back(stack, file, checked.files);
  if (!back.ok()) {
    loss.refusal = to_string(back.error());
    return checked;
  }
  Scenario returned = exported;
  returned.model = back->model;
  returned.stack = stack_back(exported.stack, own, file.parts, back->parts);
  compare(launcher, file.plan, back->plan, loss.lost);
  compare(launcher, exported.stack, returned.stack, loss.lost);
  compare(fields_of(file.model), fields_of(back->model), loss.lost);
  if (fp32_matmul(returned.stack) != fp32_matmul(exported.stack)) ops = nullptr;
  const Result<Prediction> predicted = simulate(returned, back->plan, std::move(ops));
  if (!predicted.ok()) {
    loss.refusal = to_string(predicted.error());
    return checked;
  }
  loss.step_back = predicted->step;
  loss.memory_back = predicted->peak;
  return checked;
}

}  // namespace tpsim
