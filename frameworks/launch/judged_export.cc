#include "frameworks/launch/judged_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/files.h"
#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "core/json/json_document.h"
#include "core/software/launched_models.h"
#include "formats/python_runner.h"
#include "formats/settings_text.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

// Returns the framework's name in tpsim_recipes; empty if tpsim_recipes cannot check files of this
// stack.
std::string_view judge_of(LaunchStack stack) {
  if (stack == LaunchStack::kMegatronLm) return "megatron-lm";
  return stack == LaunchStack::kNemo ? "megatron-bridge" : "";
}

// Returns environment variables: those in "export NAME=VALUE" lines of the script, and those that
// torchrun sets.
JsonValue environment_of(const LaunchFile& file, const LaunchSize& size) {
  JsonValue environment =
      json_object({{"WORLD_SIZE", std::to_string(size.nodes * size.gpus_per_node)},
                   {"LOCAL_WORLD_SIZE", std::to_string(size.gpus_per_node)}});
  constexpr std::string_view kExport = "export ";
  for (std::string_view rest = file.text; !rest.empty();) {
    const std::string_view line = cut_off(rest, "\n");
    const std::size_t equals = line.find('=');
    if (!line.starts_with(kExport) || equals == std::string_view::npos) continue;
    environment.set(std::string(line.substr(kExport.size(), equals - kExport.size())),
                    std::string(line.substr(equals + 1)));
  }
  return environment;
}

// Arguments that exported files omit and the framework requires: data, tokenizer and schedule.
constexpr const char* kUsers[] = {"--train-iters",    "10",           "--lr", "1e-4", "--mock-data",
                                  "--tokenizer-type", "NullTokenizer"};

JsonValue words_of(const std::vector<LaunchOption>& options) {
  std::vector<std::string> words;
  for (const LaunchOption& option : options) {
    words.push_back(option.name);
    if (option.value.empty()) continue;
    if (takes_words(option.name)) {
      for (const std::string& word : words_in(option.value)) words.push_back(word);
    } else {
      words.push_back(option.value);
    }
  }
  words.insert(words.end(), std::begin(kUsers), std::end(kUsers));
  return json_array(words, [](const std::string& word) { return JsonValue(word); });
}

// Converts the text of a YAML value to a JSON value.
JsonValue option_json(const std::string& value) {
  if (value == "true" || value == "false") return value == "true";
  if (const auto whole = parse_number<std::int64_t>(value)) return *whole;
  if (const auto real = parse_number<double>(value)) return *real;
  return value;
}

// Returns the model's shape as JSON, with the field names of Megatron-Bridge's model provider.
JsonValue shape_of(const ModelSpec& model) {
  const AttentionShape& attention = attention_shape(model);
  JsonValue shape = json_object({{"num_layers", model.layers},
                                 {"hidden_size", model.hidden},
                                 {"num_attention_heads", attention.heads},
                                 {"num_query_groups", attention.kv_heads},
                                 {"kv_channels", attention.head_dim}});
  if (has_experts(model)) {
    shape.set("num_moe_experts", model.experts.count);
    shape.set("moe_router_topk", model.experts.per_token);
  }
  if (model.ends.prediction_layers > 0) shape.set("mtp_num_layers", model.ends.prediction_layers);
  return shape;
}

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

bool is_same(std::string stated, const std::string& resolved) {
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
    std::string name = option.name.substr(2);
    std::replace(name.begin(), name.end(), '-', '_');
    const JsonValue* const resolved = settings.find(name);
    const bool is_list = option.value.find_first_of("[(|") != std::string::npos;  // other syntax
    if (resolved == nullptr || resolved->as<JsonValue::Object>() != nullptr || is_list) continue;
    const std::string text = option_text(*resolved);
    if (is_same(option.value, text)) {
      ++judgement.held;
    } else {
      judgement.changed.push_back({option.name, option.value.empty() ? "on" : option.value,
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
    // The framework resolves dtypes to PyTorch objects, whose names differ from the exported text.
    if (is_same(text, found) || found.starts_with("torch.")) {
      ++judgement.held;
    } else {
      judgement.changed.push_back({one.key, one.value, found.empty() ? "true" : found});
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
  if (const JsonValue* const meta = answer.find("tpsim_recipe")) {
    judgement.not_isolated = text_of_answer(*meta, "not_isolated");
  }
  return judgement;
}

}  // namespace

Result<Judgement> judged_export(LaunchStack stack, const std::vector<LaunchFile>& files,
                                const ModelSpec& model, const std::vector<std::string>& checkouts) {
  const std::string_view judge = judge_of(stack);
  if (judge.empty()) {
    return bad_input(fmt::format("--check is not available for {}", name_of(stack)), "",
                     "--check supports megatron-lm and nemo");
  }
  TPSIM_TRY(const LaunchFile file, file_named(files, launch_file_names(stack).front()));
  TPSIM_TRY(const LaunchCommand command, read_launch_command(file));
  std::vector<FlatSetting> stated;
  JsonValue given = json_object({{"environment", environment_of(file, command.size)}});
  if (stack == LaunchStack::kNemo) {
    TPSIM_TRY(const LaunchFile yaml, file_named(files, kNemoYamlFile));
    TPSIM_TRY(stated, flat_yaml(yaml.text, path_of(yaml)));
    JsonValue overrides = json_object({});
    for (const FlatSetting& one : stated) overrides.set(one.key, option_json(one.value));
    given.set("overrides", std::move(overrides));
    given.set("model", shape_of(model));
  } else {
    given.set("arguments", words_of(command.options));
  }
  TPSIM_TRY(const PrivateFolder folder, PrivateFolder::create());
  const std::filesystem::path path = folder.path() / "arguments.json";
  TPSIM_TRY_STATUS(write_file_atomically(path, to_text(given)));
  std::vector<std::string> words;
  for (const std::string& checkout : checkouts) words.insert(words.end(), {"--checkout", checkout});
  words.insert(words.end(), {"check", std::string(judge), path.string()});
  TPSIM_TRY(const std::string printed, output_of_recipes(words));
  TPSIM_TRY(const JsonValue answer, parse_json(printed, checkouts.front()));
  if (answer.find("error") != nullptr) {
    return bad_input(fmt::format("the check failed: {}", text_of_answer(answer, "error")),
                     checkouts.front(), text_of_answer(answer, "hint"));
  }
  Judgement judgement = judgement_of(answer);
  const JsonValue* const settings = answer.find("settings");
  if (settings == nullptr) return judgement;
  if (stack == LaunchStack::kNemo) {
    compare_settings(stated, *settings, judgement);
  } else {
    compare_options(command.options, *settings, judgement);
  }
  return judgement;
}

}  // namespace tpsim
