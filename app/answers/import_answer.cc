#include "app/answers/import_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "app/scenario/field.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/named_model.h"

namespace tpsim::app {
namespace {

namespace fs = std::filesystem;

// Maximum size of a launch file. check-log also imports from larger logs (import_log_answer).
constexpr std::size_t kMostFileBytes = std::size_t{16} << 20;

struct Source {
  bool is_config = false;  // the file is a configuration whose keys identify the framework
  LaunchStack stack{};
  std::vector<LaunchFile> files;
  fs::path folder;
};

// Returns the stack whose main launch file the folder contains. A folder that `export` wrote has
// the main file of exactly one stack.
Result<LaunchStack> stack_of_folder(const fs::path& folder) {
  std::error_code code;
  for (const LaunchStack stack : all_of<LaunchStack>()) {
    if (fs::exists(folder / launch_file_names(stack).front(), code)) return stack;
  }
  return bad_input("contains no launch files of tpsim export", folder.string(),
                   "give the script itself, or name the framework with --from");
}

// Returns the stack whose launch files `export` wrote to the folder, if the path is one of them.
std::optional<LaunchStack> stack_of_exported(const fs::path& path) {
  for (const LaunchStack stack : all_of<LaunchStack>()) {
    const std::vector<std::string> names = launch_file_names(stack);
    if (std::find(names.begin(), names.end(), path.filename()) == names.end()) continue;
    const auto main = read_file(path.parent_path() / names.front(), kMostFileBytes);
    if (main.ok() && names_model(*main)) return stack;
  }
  return std::nullopt;
}

// Finds the launch files at the path. A folder must be one that `export` wrote; one of its files
// stands for the folder. Another file may have any name; it is the main file, and the stack's other
// files are read from its folder.
Result<Source> source_at(const ImportRequest& request) {
  fs::path path = request.path;
  const auto known = request.from ? request.from : stack_of_exported(path);
  if (known != request.from) path = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code code;
  Source source;
  const bool is_folder = fs::is_directory(path, code);
  source.folder = is_folder ? path : path.parent_path();
  const std::string kind = path.extension().string();
  source.is_config =
      !is_folder && !request.from &&
      (kind == ".yaml" || kind == ".yml" || kind == ".toml" || kind == ".json" || kind == ".py");
  std::string text;
  if (!is_folder) {
    TPSIM_TRY(text, read_file(path, kMostFileBytes));
  }
  if (source.is_config) {
    source.files.push_back({path.filename().string(), std::move(text), path.string()});
    return source;
  }
  if (known) {
    source.stack = *known;
  } else if (is_folder) {
    TPSIM_TRY(source.stack, stack_of_folder(path));
  } else {
    source.stack = stack_of_text(text);
  }
  const std::vector<std::string> names = launch_file_names(source.stack);
  const bool is_yaml = kind == ".yaml" || kind == ".yml";
  const auto yaml = std::find_if(names.begin(), names.end(),
                                 [](const std::string& name) { return name.ends_with(".yaml"); });
  const std::string& own = is_yaml && yaml != names.end() ? *yaml : names.front();
  for (const std::string& name : names) {
    const bool is_own = !is_folder && name == own;
    const fs::path place = is_own ? path : source.folder / name;
    if (is_own) {
      source.files.push_back({name, text, place.string()});
    } else if (fs::exists(place, code)) {
      TPSIM_TRY(std::string other, read_file(place, kMostFileBytes));
      source.files.push_back({name, std::move(other), place.string()});
    } else if (is_folder && name == names.front()) {
      return bad_input("cannot open the file", place.string());
    }
  }
  return source;
}

// Returns the name of a model without organization, case, punctuation and common suffixes, so that
// "NousResearch/Meta-Llama-3-8B" and "llama-3-8b" are equal.
std::string letters_of(std::string_view name) {
  std::string plain = in_lower_case(std::string(name.substr(name.rfind('/') + 1)));
  if (plain.starts_with("meta-")) plain.erase(0, 5);
  for (const std::string_view end : {"-hf", "-instruct", "-base"}) {
    if (plain.ends_with(end)) plain.resize(plain.size() - end.size());
  }
  std::erase_if(plain, [](unsigned char c) { return std::isalnum(c) == 0; });
  return plain;
}

Result<ModelSpec> load_alike(const std::string& name) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  Result<ModelSpec> model = catalogue.load_model(name);
  if (model.ok()) return model;
  for (const std::string& known : catalogue.list(CatalogueKind::kModels)) {
    if (letters_of(known) == letters_of(name)) return catalogue.load_model(known);
  }
  return model;
}

Result<ImportInputs> inputs_of(const ImportRequest& request, const Source& source) {
  ImportInputs inputs = request.inputs;
  const ScenarioRequest& scenario = request.scenario;
  inputs.keeps_seq = scenario.seq.has_value();
  if (!scenario.model.empty()) {
    TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
    TPSIM_TRY(inputs.model, load_model(scenario, catalogue));
    inputs.model_wins = true;
  } else if (inputs.keeps_seq) {
    return field_error(Field::kSeq, "cannot be used here",
                       "the launch file states the sequence length; add --model to change it");
  }
  if (!scenario.cluster.empty()) inputs.gpu = scenario.cluster;
  for (const std::string& more : request.more) {
    TPSIM_TRY(std::string text, read_file(more, kMostFileBytes));
    inputs.more.push_back({fs::path(more).filename().string(), std::move(text), more});
  }
  inputs.load = load_alike;
  inputs.open = [folder = source.folder](const std::string& name) {
    return read_file(folder / name, kMostFileBytes);
  };
  return inputs;
}

bool is_of_shape(const ModelSpec& known, const ImportedPlan& read) {
  const ModelSpec& model = read.model;
  const std::int64_t padding = known.vocab_multiple * read.plan.degrees.tp * 128;
  const bool same_words =
      !read.has_vocab || (model.vocab >= known.vocab && model.vocab - known.vocab < padding);
  return same_words && known.layers == model.layers && known.hidden == model.hidden &&
         known.ffn_hidden == model.ffn_hidden && known.norm == model.norm &&
         known.mlp == model.mlp && known.attention.heads == model.attention.heads &&
         known.attention.kv_heads == model.attention.kv_heads &&
         known.attention.head_dim == model.attention.head_dim &&
         known.attention.position == model.attention.position &&
         known.experts.count == model.experts.count &&
         known.experts.per_token == model.experts.per_token;
}

// Removes models whose rotary base differs from `base`. Keeps all if `base` is the default of 10000
// or no model has it.
void keep_alike_in_base(double base, std::vector<ModelSpec>& models) {
  const auto has_base = [&](const ModelSpec& one) { return one.attention.rope_theta == base; };
  constexpr double kUsualBase = 10000;
  if (base == kUsualBase || std::none_of(models.begin(), models.end(), has_base)) return;
  std::erase_if(models, [&](const ModelSpec& one) { return !has_base(one); });
}

Error ask_for_words(const std::vector<ModelSpec>& alike, const std::string& file) {
  if (alike.empty()) {
    return bad_input(
        "leaves the vocab size to a tokenizer, and the catalogue has no model of this shape", file,
        "give --set vocab-size=N, or name the model with --model NAME or --model config.json");
  }
  std::string words;
  for (const ModelSpec& one : alike) {
    words += fmt::format("{}{} has {}", words.empty() ? "" : ", ", one.name, one.vocab);
  }
  return bad_input(
      fmt::format("leaves the vocab size to a tokenizer, and models of this shape differ: {}",
                  words),
      file, "choose with --model NAME, or give --set vocab-size=N");
}

// Names the model after the first catalogue model of the same shape, or else after the file. If the
// file leaves the vocab size to a tokenizer, the vocab size of the catalogue models is assumed.
// Error if the catalogue models have different ones.
Status name_model(const std::string& path, ImportedPlan& read) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  read.model.name = fs::path(path).stem().string();
  read.model.source = "stated by " + fs::path(path).filename().string();
  std::vector<ModelSpec> alike;
  for (const std::string& name : catalogue.list(CatalogueKind::kModels)) {
    TPSIM_TRY(ModelSpec known, catalogue.load_model(name));
    if (is_of_shape(known, read)) alike.push_back(std::move(known));
  }
  keep_alike_in_base(read.model.attention.rope_theta, alike);
  const bool agree = std::all_of(alike.begin(), alike.end(), [&](const ModelSpec& one) {
    return one.vocab == alike.front().vocab;
  });
  if (!read.has_vocab && alike.empty() && read.tokenizer_vocab > 0) {
    read.model.vocab = read.tokenizer_vocab;
    read.has_vocab = true;
    read.notes.push_back(
        fmt::format("the file does not state the vocab size: {} is assumed, from the "
                    "tokenizer of {}",
                    read.model.vocab, read.tokenizer));
  }
  if (!read.has_vocab && (alike.empty() || !agree)) {
    return ask_for_words(alike, path);
  }
  if (!alike.empty()) {
    read.model.name = alike.front().name;
    if (!read.has_vocab) {
      read.model.vocab = alike.front().vocab;
      read.notes.push_back(
          fmt::format("the file does not state the vocab size: {1} is assumed, as in {0}",
                      read.model.name, read.model.vocab));
    }
    read.has_vocab = true;
  }
  return validate(read.model);
}

// Returns the software parts whose value differs from that of the stack.
PartValues parts_beside(const StackSpec& stack, const PartValues& parts) {
  PartValues own;
  for (const auto& [part, value] : parts) {
    if (row_of(part).get(stack) != value) own[part] = value;
  }
  return own;
}

Result<ImportAnswer> answer_of(const ImportRequest& request, const Source& source) {
  TPSIM_TRY(const ImportInputs inputs, inputs_of(request, source));
  TPSIM_TRY(ImportedPlan read, source.is_config ? import_config(source.files.front(), inputs)
                                                : import_plan(source.stack, source.files, inputs));
  if (read.model.name.empty()) TPSIM_TRY_STATUS(name_model(request.path, read));
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  const std::vector<std::string> stacks = catalogue.list(CatalogueKind::kStacks);
  const bool ships = std::find(stacks.begin(), stacks.end(), read.stack) != stacks.end();
  ScenarioRequest scenario = request.scenario;
  PlanFile& names = scenario.file.emplace();
  names.model = read.model;
  if (ships) scenario.defaults.stack = names.stack = read.stack;
  TPSIM_TRY(NamedScenario named, load_scenario(scenario));
  named.scenario.model = read.model;
  named.parts = parts_beside(named.scenario.stack, read.parts);
  named.settings_assumed = read.assumed_harmless;
  return ImportAnswer{plan_file_of(named, read.plan), read.outside, read.notes, read.parts};
}

}  // namespace

Result<ImportAnswer> import_answer(const ImportRequest& request) {
  TPSIM_TRY(const Source source, source_at(request));
  return answer_of(request, source);
}

Result<ImportAnswer> import_log_answer(const ImportRequest& request, const std::string& text) {
  Source source;
  source.stack = stack_of_text(text);
  source.folder = fs::path(request.path).parent_path();
  source.files.push_back({launch_file_names(source.stack).front(), text, request.path});
  return answer_of(request, source);
}

}  // namespace tpsim::app
