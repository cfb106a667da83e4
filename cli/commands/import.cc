// tpsim import: reads launch files and prints or saves the plan that they describe.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "cli/commands/commands.h"
#include "cli/options/answers.h"
#include "cli/options/fit.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "core/base/files.h"
#include "core/base/standard_streams.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/plan_json.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_files.h"
#include "plans/questions/open_inputs.h"

namespace tpsim::cli {
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
  for (int i = kLaunchStackCount - 1; i >= 0; --i) {
    const auto stack = static_cast<LaunchStack>(i);
    if (fs::exists(folder / launch_file_names(stack).front(), code)) return stack;
  }
  return bad_input("contains no launch files of tpsim export", folder.string(),
                   "give the script itself, or name the framework with --from");
}

// Finds the launch files at the path. A folder must be one that `export` wrote. A single file may
// have any name; it is the main file, and the stack's other files are read from its folder.
Result<Source> source_at(const Arguments& arguments) {
  const fs::path path = arguments.positional;
  std::error_code code;
  Source source;
  const bool is_folder = fs::is_directory(path, code);
  source.folder = is_folder ? path : path.parent_path();
  const std::string kind = path.extension().string();
  source.is_config =
      !is_folder && !arguments.has(Opt::kFrom) &&
      (kind == ".yaml" || kind == ".yml" || kind == ".toml" || kind == ".json" || kind == ".py");
  std::string text;
  if (!is_folder) {
    TPSIM_TRY(text, read_file(path, kMostFileBytes));
  }
  if (source.is_config) {
    source.files.push_back({path.filename().string(), std::move(text), path.string()});
    return source;
  }
  if (arguments.has(Opt::kFrom)) {
    TPSIM_TRY(source.stack, launch_stack_of(arguments, Opt::kFrom));
  } else if (is_folder) {
    TPSIM_TRY(source.stack, stack_of_folder(path));
  } else {
    source.stack = stack_of_text(text);
  }
  const std::vector<std::string> names = launch_file_names(source.stack);
  const bool is_yaml = kind == ".yaml" || kind == ".yml";
  const std::string& own =
      is_yaml && source.stack == LaunchStack::kNemo ? names.back() : names.front();
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

// Parses --set, a list of NAME=VALUE separated by commas.
Result<std::map<std::string, std::string>> given_variables(const Arguments& arguments) {
  std::map<std::string, std::string> given;
  if (!arguments.has(Opt::kSet)) return given;
  for (const std::string_view part : listed(*arguments[Opt::kSet])) {
    const std::size_t equals = part.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return option_error(Opt::kSet, fmt::format("'{}' is not NAME=VALUE", part),
                          "write NNODES=4,TP=2");
    }
    given[std::string(part.substr(0, equals))] = std::string(part.substr(equals + 1));
  }
  return given;
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

Result<ImportInputs> inputs_of(const Arguments& arguments, const Source& source) {
  ImportInputs inputs;
  inputs.keeps_seq = arguments.has(Opt::kSeq);
  if (arguments.has(Opt::kModel)) {
    TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
    TPSIM_TRY(inputs.model, load_model(arguments, catalogue, std::nullopt));
    inputs.model_wins = true;
  } else if (inputs.keeps_seq) {
    return option_error(Opt::kSeq, "cannot be used here",
                        "the launch file states the sequence length; add --model to change it");
  }
  TPSIM_TRY(inputs.gpus, integer_of(arguments, Opt::kGpus, 0));
  TPSIM_TRY(inputs.given, given_variables(arguments));
  TPSIM_TRY(inputs.micro_batch, integer_of(arguments, opt_of(Setting::kMicroBatch), 0));
  TPSIM_TRY(inputs.global_batch, integer_of(arguments, opt_of(Setting::kGlobalBatch), 0));
  inputs.assumes_harmless = arguments.has(Opt::kAssumeHarmless);
  inputs.runs_code = arguments.has(Opt::kRunCode);
  if (arguments.has(Opt::kCheckout)) {
    for (const std::string_view folder : listed(*arguments[Opt::kCheckout])) {
      inputs.checkouts.emplace_back(folder);
    }
  }
  if (arguments.has(Opt::kCluster)) inputs.gpu = *arguments[Opt::kCluster];
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
Status name_model(const Arguments& arguments, ImportedPlan& read) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  read.model.name = fs::path(arguments.positional).stem().string();
  read.model.source = "stated by " + fs::path(arguments.positional).filename().string();
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
    return ask_for_words(alike, arguments.positional);
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

Result<ImportAnswer> answer_of(const Arguments& arguments, const Source& source) {
  TPSIM_TRY(ImportInputs inputs, inputs_of(arguments, source));
  for (const std::string& more : arguments.more) {
    TPSIM_TRY(std::string text, read_file(more, kMostFileBytes));
    inputs.more.push_back({fs::path(more).filename().string(), std::move(text), more});
  }
  TPSIM_TRY(ImportedPlan read, source.is_config ? import_config(source.files.front(), inputs)
                                                : import_plan(source.stack, source.files, inputs));
  if (read.model.name.empty()) TPSIM_TRY_STATUS(name_model(arguments, read));
  // The positional argument is removed, since the launch files are not a plan file.
  Arguments without_files = arguments;
  without_files.positional.clear();
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  const std::vector<std::string> stacks = catalogue.list(CatalogueKind::kStacks);
  const bool ships = std::find(stacks.begin(), stacks.end(), read.stack) != stacks.end();
  PlanFile names;
  names.model = read.model;
  KnownInputs known;
  if (ships) known.stack = names.stack = read.stack;
  TPSIM_TRY(NamedScenario named, load_scenario(without_files, names, known));
  named.scenario.model = read.model;
  named.parts = parts_beside(named.scenario.stack, read.parts);
  named.settings_assumed = read.assumed_harmless;
  return ImportAnswer{plan_file_of(named, read.plan), read.outside, read.notes};
}

}  // namespace

Result<ImportAnswer> import_answer(const Arguments& arguments) {
  if (arguments.positional.empty()) {
    return bad_input("no launch file was given", "import",
                     "tpsim import my-script.sh, or the folder that export wrote");
  }
  TPSIM_TRY(const Source source, source_at(arguments));
  return answer_of(arguments, source);
}

Result<ImportAnswer> import_log_answer(const Arguments& arguments, const std::string& text) {
  Source source;
  source.stack = LaunchStack::kMegatronLm;
  source.folder = fs::path(arguments.positional).parent_path();
  source.files.push_back({launch_file_names(source.stack).front(), text, arguments.positional});
  return answer_of(arguments, source);
}

namespace {

// Prints which settings of the files the import ignored, and where the prediction deviates from the
// files.
void say_remarks(const Arguments& arguments, const ImportAnswer& answer) {
  if (arguments.has(Opt::kQuiet)) return;
  const std::vector<std::string>& outside = answer.outside;
  if (!outside.empty()) {
    const std::string number =
        fmt::format("{} setting{}", outside.size(), outside.size() == 1 ? "" : "s");
    const std::string what =
        arguments.has(Opt::kVerbose)
            ? fmt::format("{} ignored (no effect on time or memory): {}", number,
                          fmt::join(outside, ", "))
            : fmt::format("{} ignored (no effect on time or memory; --verbose lists them)", number);
    say(fmt::format("tpsim: {}\n", printable(what)));
  }
  if (!answer.file.settings_assumed.empty()) {
    say(fmt::format("tpsim: these settings are assumed to have no effect: {}\n",
                    printable(fmt::format("{}", fmt::join(answer.file.settings_assumed, ", ")))));
  }
  for (const std::string& note : answer.notes) say(fmt::format("tpsim: {}\n", printable(note)));
}

Result<PlannedRun> predicted_run(const PlanFile& file) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  return simulate(catalogue, file);
}

// Returns the predicted step and memory of the plan, or the reason why it cannot be predicted.
std::string headline_of(const Terminal& terminal, const Result<PlannedRun>& run) {
  if (run.ok()) return headline_view(terminal, run->predicted);
  return wrapped(printable(fmt::format("the plan cannot be predicted: {}", to_string(run.error()))),
                 terminal.room(2, 100), 2) +
         "\n";
}

Status check_risk(const Arguments& arguments, const PlanFile& file, const Result<PlannedRun>& run) {
  if (!arguments.has(Opt::kMaxOom)) return Ok{};
  if (!run.ok()) return run.error();
  return check_stated_risk(arguments, short_name(file.plan), run->predicted);
}

}  // namespace

Status run_import(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const ImportAnswer answer, import_answer(arguments));
  const PlanFile& file = answer.file;
  const bool saves = arguments.has(Opt::kSave);
  if (saves) TPSIM_TRY_STATUS(save_with_contents(*arguments[Opt::kSave], file));
  say_remarks(arguments, answer);
  if (arguments.has(Opt::kJson)) {
    TPSIM_TRY_STATUS(print(to_json(file)));
    if (!arguments.has(Opt::kMaxOom)) return Ok{};
    return check_risk(arguments, file, predicted_run(file));
  }
  std::string text = heading(terminal, "PLAN", file.model.name) + plan_view(terminal, file.plan);
  // Launch files do not name the cluster, so the cluster is a default unless an option names it.
  const bool named = arguments.has(Opt::kCluster) || arguments.has(Opt::kProfile);
  text += fmt::format("\n  for {}{} ({}, {})\n", printable(file.cluster),
                      named ? "" : " (default; name yours with --cluster)", printable(file.profile),
                      printable(file.stack));
  if (!file.parts.empty()) text += fmt::format("  with {}\n", to_string(file.parts));
  const Result<PlannedRun> run = predicted_run(file);
  text += "\n" + headline_of(terminal, run);
  if (saves) text += fmt::format("\nwrote the plan to {}\n", printable(*arguments[Opt::kSave]));
  TPSIM_TRY_STATUS(print(terminal, text));
  return check_risk(arguments, file, run);
}

}  // namespace tpsim::cli
