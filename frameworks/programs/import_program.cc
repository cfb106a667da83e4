// Imports the settings of a training program. The program's TrainingProgram row translates the
// settings to those of a reader (Megatron, Trainer or torchtitan), which imports them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/software/launch_rules.h"
#include "formats/unset_marks.h"
#include "frameworks/huggingface/trainer_sharding.h"
#include "frameworks/launch/programs.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {
namespace {

std::string plain_key(std::string_view key) {
  std::string plain(key);
  std::replace(plain.begin(), plain.end(), '-', '_');
  return plain;
}

// Returns the value in a common format: "true" for "True", empty for "None". One pair of quotes is
// removed.
std::string plain_value(std::string value) {
  const bool quoted = value.size() > 1 && (value.front() == '\'' || value.front() == '"') &&
                      value.back() == value.front();
  if (quoted) value = value.substr(1, value.size() - 2);
  std::string word = in_lower_case(value);
  if (word == "true" || word == "false") return word;
  return value == "None" || word == "null" || word == "~" ? "" : value;
}

std::string_view pattern_of(std::string_view key, std::string_view patterns) {
  while (!patterns.empty()) {
    const std::string_view pattern = cut_off(patterns, " ");
    if (matches_pattern(key, pattern)) return pattern;
  }
  return {};
}

// Returns the reader's name for a key. If the row's name is "*", returns the part of the key that
// the '*' of the row's pattern matched; without one, the last part of the key.
std::string name_of_row(const ProgramSetting& row, std::string_view key) {
  if (row.becomes != "*") return std::string(row.becomes);
  const std::string_view pattern = pattern_of(key, row.key);
  if (!pattern.ends_with('*')) return std::string(key.substr(key.rfind('.') + 1));
  return std::string(key.substr(pattern.size() - 1));
}

// Returns the name as the reader spells it: Megatron's arguments contain '-' instead of '_'.
std::string reader_name(const TrainingProgram& program, std::string name) {
  const bool has_dashes = program.settings == SettingsOf::kMegatron && !name.starts_with('@');
  if (has_dashes) std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

void put_row(const TrainingProgram& program, const ProgramSetting& row, std::string_view key,
             const std::string& value, ProgramSettings& out) {
  const std::string name = reader_name(program, name_of_row(row, key));
  if (name.empty()) return;
  std::string text = row.as.empty() ? value : std::string(row.as);
  if (row.becomes.size() > 1 && name.back() == '*') {  // gathers the elements of a list
    const std::string list = name.substr(0, name.size() - 1);
    const std::string* const others = out.find(list);
    return out.put(list, others == nullptr ? text : *others + " " + text);
  }
  const std::string* before = name == "@length" ? out.find(name) : nullptr;
  if (before != nullptr) {
    const std::int64_t sum = out.number(name, 0);
    out.put("@more", text);
    text = std::to_string(sum + out.number("@more", 0));
    out.erase("@more");
  }
  out.put(name, std::move(text));
}

// Translates the setting by all rows that match. Returns whether a row has this key.
bool take_by_rows(const TrainingProgram& program, std::string_view key, const std::string& value,
                  ProgramSettings& out) {
  bool is_known = false;
  bool has_matched = false;
  for (const ProgramSetting& row : program.facts.rows) {
    if (pattern_of(key, row.key).empty()) continue;
    is_known = true;
    const bool matches =
        row.value.empty() ? !has_matched : matches_any(in_lower_case(value), row.value);
    if (!matches) continue;
    has_matched = true;
    if (!value.empty()) put_row(program, row, key, value, out);
  }
  return is_known;
}

std::vector<std::string> known_keys(const TrainingProgram& program) {
  std::vector<std::string> names;
  for (const ProgramSetting& row : program.facts.rows) {
    for (std::string& word : words_in(std::string(row.key))) names.push_back(std::move(word));
  }
  return names;
}

bool is_off(const std::string& value) {
  return value.empty() || matches_any(in_lower_case(value), "false 0 none no");
}

void translate(const TrainingProgram& program, const std::vector<FlatSetting>& settings,
               const LaunchFile& file, ProgramSettings& out, LeftSettings& left) {
  for (const FlatSetting& one : settings) {
    const std::string key = plain_key(one.key);
    const std::string value = plain_value(one.value);
    // Refusals come before rows, ignored settings behind them.
    const LeftOver *refusing = nullptr, *ignoring = nullptr;
    for (const LeftOver& row : program.facts.left) {
      const LeftOver*& first = row.why.empty() ? ignoring : refusing;
      if (first == nullptr && has_pattern(key, row.patterns)) first = &row;
    }
    const bool is_refused = refusing != nullptr && !is_off(value) && !is_harmless(*refusing, value);
    if (is_refused) {
      left.refuse(one.key, fmt::format("{}: {}", one.key, without_marks(value)),
                  std::string(refusing->why), place_of(path_of(file), one.line));
      out.put("@refused", one.key);
    } else if (take_by_rows(program, key, value, out)) {
      continue;
    } else if (refusing != nullptr || ignoring != nullptr) {
      add_outside(one.key, out.outside);
    } else if (program.keeps_rest) {
      if (!value.empty()) out.put(reader_name(program, one.key), value);
    } else if (one.line == kFromSources) {
      add_outside(one.key, out.outside);
    } else if (!is_off(value)) {
      left.ask(one.key, nearest(one.key, known_keys(program)), place_of(path_of(file), one.line));
    }
  }
}

void add_defaults(const TrainingProgram& program, ProgramSettings& out) {
  for (const std::string& stated : words_in(program.defaults)) {
    const std::size_t equals = stated.find('=');
    const std::string name = stated.substr(0, equals);
    if (!out.has(name)) out.put(name, stated.substr(equals + 1));
  }
}

// Returns the model's name or path without slashes at its end: "~/models/Qwen3-4B" for
// "~/models/Qwen3-4B/".
std::string model_name(std::string name) {
  name = without_marks(name);
  while (!name.empty() && name.back() == '/') name.pop_back();
  return name;
}

// Loads the model that the settings name, unless inputs.model is set. Adds a question if the model
// is unknown.
void name_model(const ProgramSettings& settings, bool states_itself, ImportInputs& inputs,
                OpenQuestions& open) {
  if (inputs.model) return;
  const std::string* said = settings.find("@model");
  if (said != nullptr && inputs.load) {
    Result<ModelSpec> model = inputs.load(model_name(*said));
    if (model.ok()) {
      inputs.model = *std::move(model);
      inputs.model_wins = true;
      return;
    }
  }
  if (states_itself) return;
  open.ask({said == nullptr ? "which model? The file does not name one"
                            : fmt::format("the catalogue has no model '{}'", model_name(*said)),
            kModelAnswer});
}

// Values of --set override all others. Their names are the reader's, such as "cp-comm-type" or
// "gradient_checkpointing".
void put_given(const ImportInputs& inputs, ProgramSettings& settings) {
  for (const auto& [name, value] : inputs.given) {
    const std::string plain = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    const bool is_known = settings.has(plain) || plain.find('-') != std::string::npos;
    if (is_known) value == "null" ? settings.erase(plain) : settings.put(plain, value);
  }
}

Result<ImportedPlan> as_megatron(ProgramSettings& settings, const LaunchCommand* by,
                                 ImportInputs inputs) {
  LaunchCommand command;
  command.is_log = true;  // as in a log, switches have the values true and false
  for (const FlatSetting& one : settings.all()) {
    if (one.key.starts_with('@') || one.value.empty()) continue;
    std::string name = "--" + one.key;
    std::replace(name.begin(), name.end(), '_', '-');
    const std::string value = one.value == "true"    ? "True"
                              : one.value == "false" ? "False"
                                                     : one.value;
    put_setting(command.options, name, value);
  }
  use_todays_names(command);
  command.is_log = false;
  const bool states_itself =
      has_key(command.options, "--num-layers") && has_key(command.options, "--hidden-size");
  const bool is_given = inputs.model.has_value();
  name_model(settings, states_itself, inputs, settings.open);
  std::vector<std::string> differences;
  const auto stated = inputs.model && !is_given
                          ? stated_model(command.options, *inputs.model, differences)
                          : std::nullopt;
  if (stated) {
    settings.note(fmt::format("the file names {}, but states other sizes, which are predicted: {}",
                              inputs.model->name, fmt::join(differences, ", ")));
    inputs.model = stated;
  }
  const std::int64_t gpus = settings.gpus();
  const std::int64_t per_node = settings.number("@gpus-per-node", gpus);
  if (gpus > 0 && per_node > 0 && gpus % per_node == 0) {
    command.size = {gpus / per_node, per_node};
  } else if (gpus > 0) {
    command.size = {1, gpus};
  } else {
    settings.open.ask(kHowManyGpus);
  }
  if (by != nullptr) command.environment = by->environment;
  const auto put = [&](const char* name, const std::string* text, std::int64_t asked) {
    if (text != nullptr) put_setting(command.options, name, *text);
    if (asked > 0 && !has_key(command.options, name)) {
      put_setting(command.options, name, std::to_string(asked));
    }
  };
  put("--seq-length", settings.find("@length"), 0);
  put("--global-batch-size", settings.find("@global-batch"), inputs.global_batch);
  put("--micro-batch-size", settings.find("@micro-batch"), inputs.micro_batch);
  TPSIM_TRY_STATUS(settings.open.status());
  return import_megatron(std::move(command), inputs);
}

Result<ImportedPlan> as_trainer(ProgramSettings& settings, const LaunchCommand* by,
                                const LaunchFile& file, ImportInputs inputs) {
  std::vector<FlatSetting> own = settings.of_framework();
  if (const std::string* name = settings.find("@model")) {
    own.push_back({"model_name_or_path", model_name(*name), 0});
  }
  for (const auto& [name, theirs] : {std::pair{"@length", "max_length"},
                                     std::pair{"@micro-batch", "per_device_train_batch_size"}}) {
    if (const std::string* said = settings.find(name)) own.push_back({theirs, *said, 0});
  }
  if (!inputs.model) inputs.model = settings.model;
  if (inputs.gpus == 0) inputs.gpus = settings.gpus();
  if (inputs.global_batch == 0) inputs.global_batch = settings.number("@global-batch", 0);
  TPSIM_TRY_STATUS(settings.open.status());
  const std::int64_t batch = inputs.global_batch;
  TPSIM_TRY(ImportedPlan plan, import_trainer(FlatReader(std::move(own)), file, inputs));
  if (by != nullptr) add_environment(*by, plan);
  const ModelSplit split{settings.number("@tp", 1), settings.number("@cp", 1),
                         settings.number("@ep", 1)};
  TPSIM_TRY_STATUS(split_model(split, batch, plan));
  const std::int64_t whole = plan.plan.global_batch;
  if (batch > 0 && whole != batch && whole != 2 * batch) {  // twice: pairs of sequences
    plan.notes.push_back(fmt::format(
        "the file's batch of {} is not a multiple of {} sequences per GPU on {} ranks: {} are "
        "predicted",
        batch, plan.plan.micro_batch, plan.plan.degrees.dp, whole));
  }
  if (settings.is("@gradients", "bf16")) plan.plan.gradient_dtype = DType::kBFloat16;
  return plan;
}

Status add_parts_of(const ProgramSettings& settings, ImportedPlan& plan) {
  constexpr std::string_view kPart = "@part.";
  for (const FlatSetting& one : settings.all()) {
    if (!one.key.starts_with(kPart)) continue;
    for (const PartRow& row : part_rows()) {
      if (row.key != std::string_view(one.key).substr(kPart.size())) continue;
      TPSIM_TRY(plan.parts[row.part], parse_value(row, one.value));
    }
  }
  return Ok{};
}

Result<ImportedPlan> read_settings(const TrainingProgram& program, ProgramSettings& settings,
                                   const LaunchCommand* command, const LaunchFile& file,
                                   const ImportInputs& inputs) {
  switch (program.settings) {
    case SettingsOf::kMegatron: return as_megatron(settings, command, inputs);
    case SettingsOf::kTrainer: return as_trainer(settings, command, file, inputs);
    case SettingsOf::kTorchTitan: break;
  }
  ImportInputs all = inputs;
  if (all.gpus == 0) all.gpus = settings.gpus();
  const std::vector<FlatSetting> own = settings.of_framework();
  TPSIM_TRY_STATUS(settings.open.status());
  TPSIM_TRY(ImportedPlan plan, import_torchtitan(own, all));
  if (command != nullptr) add_environment(*command, plan);
  return plan;
}

// Adds the defaults in the program's own configuration if a folder above the file has it: forks and
// older versions have other defaults than the table.
Status add_own_defaults(const TrainingProgram& program, const ImportInputs& inputs,
                        std::vector<FlatSetting>& settings, ProgramSettings& out) {
  const auto stated = [&](const char* key, const char* older) {
    return setting_value(settings, key, setting_value(settings, older));
  };
  std::string path(program.base);
  std::string name = stated("config-name", "config_name");
  const std::string folder = stated("config-path", "config_path");
  if (path.empty() || (!folder.empty() && !folder.ends_with("config"))) return Ok{};
  if (!name.empty()) {
    path.resize(path.find_last_of('/') + 1);
    path += name + (name.ends_with(".yaml") ? "" : ".yaml");
  }
  if (!text_of_named(path, inputs)) return Ok{};
  TPSIM_TRY(std::vector<FlatSetting> all, named_settings(path, "", inputs));
  for (FlatSetting& one : all) one.line = kFromSources;
  put_settings(std::exchange(settings, {}), all);
  settings = std::move(all);
  out.note(fmt::format("settings that the file omits have the values of {} in its sources", path));
  return Ok{};
}

// Adds the settings of the configuration files that the command names. The command's own settings
// take precedence.
Status read_named(std::vector<FlatSetting>& settings, const LaunchCommand& command,
                  const LaunchFile& file, const ImportInputs& inputs) {
  std::vector<FlatSetting> all;
  for (const std::string& marked : command.configs) {
    TPSIM_TRY(std::vector<FlatSetting> more,
              named_settings(without_marks(marked), path_of(file), inputs));
    put_settings(std::move(more), all);
  }
  put_settings(std::exchange(settings, {}), all);
  settings = std::move(all);
  return Ok{};
}

}  // namespace

Result<ImportedPlan> import_program(const TrainingProgram& program,
                                    std::vector<FlatSetting> settings, const LaunchCommand* command,
                                    const LaunchFile& file, const ImportInputs& inputs) {
  ProgramSettings out;
  out.gpus_asked = inputs.gpus;
  out.file = path_of(file);
  if (command != nullptr) {
    out.program = command->program;
    if (command->size.nodes > 0) {
      out.put("@nodes", command->size.nodes);
      out.put("@gpus-per-node", command->size.gpus_per_node);
    }
    TPSIM_TRY_STATUS(read_named(settings, *command, file, inputs));
    TPSIM_TRY_STATUS(add_own_defaults(program, inputs, settings, out));
  }
  // Values of --set that set settings of the program. The others set variables of the script.
  std::map<std::string, std::string> given;
  for (const auto& [name, value] : inputs.given) {
    const std::string key = plain_key(name);
    const auto is_of = [&](const auto& row) { return matches_any(key, row.key); };
    const bool is_own = has_key(settings, name) || names_setting(name) ||
                        std::any_of(program.facts.rows.begin(), program.facts.rows.end(), is_of);
    if (is_own) given.emplace(name, value);
  }
  settings = with_values(std::move(settings), given);
  if (program.expand != nullptr) {
    TPSIM_TRY(settings, program.expand(std::move(settings), file, inputs, out));
    settings = with_values(std::move(settings), given);
  }
  std::erase_if(settings, [&](const FlatSetting& one) {  // put_given() applies these
    return one.line == 0 && given.contains(one.key) && one.key.find('.') == std::string::npos &&
           one.key.find('-') != std::string::npos;
  });
  translate(program, settings, file, out, *inputs.left);
  add_defaults(program, out);
  if (program.derive != nullptr) program.derive(out, *inputs.left);
  run_rules(program.rules, out, *inputs.left);
  if (out.error) return *out.error;
  put_given(inputs, out);
  Result<ImportedPlan> read = read_settings(program, out, command, file, inputs);
  if (!read.ok()) return located(file, std::move(read));
  TPSIM_TRY_STATUS(add_parts_of(out, *read));
  const ParallelDegrees& degrees = read->plan.degrees;
  const bool divides_model = degrees.tp * degrees.cp * degrees.ep > 1;
  const bool is_own_stack = program.settings != SettingsOf::kTrainer || !divides_model;
  if (!program.stack.empty() && is_own_stack) read->stack = program.stack;
  // These programs build models by bridges, as NeMo does, instead of Megatron-LM's arguments.
  if (read->stack == "megatron-core" &&
      broken_rule(Launcher::kMegatron, RuleScope::kModel, read->model, read->plan) != nullptr) {
    read->stack = "nemo";
  }
  if (const std::string* const place = out.find("@norm-place")) {
    TPSIM_TRY(const std::size_t found, choose("norm place", *place, kEnumNames<NormPlace>));
    read->model.norm_place = static_cast<NormPlace>(found);
  }
  for (const std::string& name : out.outside) add_outside(name, read->outside);
  if (!program.note.empty()) {
    read->notes.insert(read->notes.begin(), fmt::format("{}: {}", program.name, program.note));
  }
  for (std::string& note : out.notes) read->notes.push_back(std::move(note));
  return read;
}

}  // namespace tpsim
