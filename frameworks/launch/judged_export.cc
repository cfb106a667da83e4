#include "frameworks/launch/judged_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "formats/python_runner.h"
#include "formats/settings_text.h"
#include "frameworks/launch/framework.h"
#include "frameworks/launch/framework_judge.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

// Converts a resolved JSON value to the text of an option.
std::string option_text(const JsonValue& value) {
  if (const auto* flag = value.as<bool>()) return *flag ? "" : "off";
  if (const auto* text = value.as<std::string>()) return *text;
  if (const auto* list = value.as<JsonValue::Array>()) {
    std::string words;
    for (const JsonValue& one : *list) words += (words.empty() ? "" : " ") + option_text(one);
    return words;
  }
  return to_line(value);
}

// Whether the framework has resolved the name of a dtype, "bf16", to PyTorch's "torch.bfloat16".
bool is_same_dtype(std::string_view stated, std::string_view resolved) {
  constexpr std::string_view kTorch = "torch.";
  if (!resolved.starts_with(kTorch)) return false;
  resolved.remove_prefix(kTorch.size());
  if (stated.starts_with(kTorch)) stated.remove_prefix(kTorch.size());
  for (const auto& [name, torch] : {std::pair{"bf16", "bfloat16"}, std::pair{"fp16", "float16"},
                                    std::pair{"fp32", "float32"}, std::pair{"fp8", "uint8"}}) {
    if (stated == name) return resolved == torch;
  }
  return stated == resolved;
}

bool is_same(std::string stated, const std::string& resolved) {
  if (is_same_dtype(stated, resolved)) return true;
  std::replace(stated.begin(), stated.end(), ',', ' ');  // "--window-size 4096,0"
  const auto a = parse_number<double>(stated), b = parse_number<double>(resolved);
  if (a && b) return std::abs(*a - *b) <= 1e-12 * std::abs(*a);
  return stated == resolved || in_lower_case(stated) == in_lower_case(resolved);
}

// Compares each exported option with the framework's resolved value of the same name. Options that
// are stored under another name, such as --no-... switches, are skipped.
void compare_options(const std::vector<LaunchOption>& options, const JsonValue& settings,
                     Judgement& judgement) {
  for (const LaunchOption& option : options) {
    const std::size_t colon = option.key.find(':');  // torchtitan's "activation-checkpoint:full"
    const bool is_variant = colon != std::string::npos;
    const std::string stated = is_variant ? option.key.substr(colon + 1) : option.value;
    std::string name = is_variant ? option.key.substr(0, colon) : option.key.substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    const JsonValue* const resolved = settings.find(name);
    const bool is_list = option.value.find_first_of("[(|") != std::string::npos;  // other syntax
    if (resolved == nullptr || resolved->as<JsonValue::Object>() != nullptr || is_list) continue;
    const std::string text = option_text(*resolved);
    if (is_same(stated == "true" ? "" : stated, text)) {
      ++judgement.held;
    } else {
      judgement.changed.push_back({option.key, stated.empty() ? "on" : stated,
                                   resolved->is_null() ? "none"
                                   : text.empty()      ? "on"
                                                       : text});
    }
  }
}

// Compares the exported overrides of a recipe with the resolved values of the same keys.
void compare_settings(const std::vector<FlatSetting>& stated, const JsonValue& settings,
                      Judgement& judgement) {
  for (const FlatSetting& one : stated) {
    const JsonValue* const resolved = settings.find(one.key);
    if (resolved == nullptr || resolved->as<JsonValue::Object>() != nullptr) continue;
    const std::string text = option_text(option_json(one.value)), found = option_text(*resolved);
    if (is_same(text, found)) {
      ++judgement.held;
    } else {
      judgement.changed.push_back({one.key, one.value,
                                   resolved->is_null() ? "none"
                                   : found.empty()     ? "true"
                                                       : found});
    }
  }
}

Judgement judgement_of(const JsonValue& answer) {
  Judgement judgement;
  const JsonValue* const accepted = answer.find("accepted");
  judgement.is_accepted =
      accepted != nullptr && accepted->as<bool>() != nullptr && *accepted->as<bool>();
  judgement.message = text_of_answer(answer, "message");
  judgement.where = text_of_answer(answer, "where");
  if (const JsonValue* const stubs = answer.find("stubs")) {
    for (const JsonMember& one : *stubs->as<JsonValue::Object>()) {
      judgement.stubs.push_back(one.key);
    }
  }
  const JsonValue* const notes = answer.find("notes");
  if (notes != nullptr) {
    for (const JsonValue& one : *notes->as<JsonValue::Array>()) {
      judgement.notes.push_back(option_text(one));
    }
  }
  if (const JsonValue* const meta = answer.find("tpsim_recipe")) {
    judgement.not_isolated = text_of_answer(*meta, "not_isolated");
  }
  return judgement;
}

Result<JudgedFiles> judged_files(const Framework& framework, const std::vector<LaunchFile>& files,
                                 const ModelSpec& model) {
  TPSIM_TRY(const LaunchFile script, file_named(files, framework.files().front()));
  ImportInputs own;  // the script is one that export wrote
  own.trusts_scripts = true;
  TPSIM_TRY(const LaunchCommand command, read_launch_command(script, own));
  JudgedFiles out;
  out.options = command.options;
  out.given.set("environment", judged_environment(script.text, command.size));
  out.given.set("arguments", judged_arguments(out.options));
  TPSIM_TRY_STATUS(framework.prepare_check(files, model, out));
  return out;
}

}  // namespace

Result<Judgement> judged_export(LaunchStack stack, const std::vector<LaunchFile>& files,
                                const ModelSpec& model, std::string_view gpu,
                                const std::vector<std::string>& checkouts) {
  TPSIM_TRY(const JobContents inside, framework_of(stack).contents(files));
  const Framework& framework = framework_of(inside.stack);
  if (framework.judge().empty()) {
    return bad_input(fmt::format("--check is not available for {}", name_of(inside.stack)), "",
                     "--check supports megatron-lm, megatron-deepspeed, nemo, torchtitan, "
                     "accelerate, and jobs that start them");
  }
  TPSIM_TRY(JudgedFiles one, judged_files(framework, inside.files, model));
  one.given.set("gpu", gpu);
  TPSIM_TRY(const JsonValue answer, run_judge(framework.judge(), one.given, checkouts, one.files));
  Judgement judgement = judgement_of(answer);
  const JsonValue* const settings = answer.find("settings");
  if (settings == nullptr) return judgement;
  compare_settings(one.settings, *settings, judgement);
  compare_options(one.options, *settings, judgement);
  return judgement;
}

}  // namespace tpsim
