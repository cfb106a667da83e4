// The inputs and the result of an import of launch files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_parts.h"
#include "formats/launch_file.h"
#include "formats/shell_script.h"

namespace tpsim {

class LeftSettings;

struct ImportInputs {
  std::optional<ModelSpec> model;  // empty: use the model that the files describe
  // If true, `model` overrides model settings in the files, and differences become notes. If false,
  // differences are errors.
  bool model_wins = false;
  bool keeps_seq = false;        // true: keep model.seq; false: use the files' sequence length
  std::int64_t gpus = 0;         // number of GPUs; 0: as in the files
  std::int64_t micro_batch = 0;  // used if the files do not state it; 0: the files must
  std::int64_t global_batch = 0;
  // Values of --set. For a script: environment variables, and training options, whose names contain
  // a dash ("vocab-size"). For a configuration file: also settings by key.
  std::map<std::string, std::string> given;
  std::vector<LaunchFile> more;  // further configuration files, e.g. of DeepSpeed
  // Loads a model by the name that a launch file states. May be empty.
  std::function<Result<ModelSpec>(const std::string&)> load;
  // Reads a file that a launch file refers to, by its path relative to that file. May be empty.
  std::function<Result<std::string>(const std::string&)> open;
  // Whether Python recipes and scripts may be run. If false, they are an error whose hint names
  // --run.
  bool runs_code = false;
  // Shell scripts: texts that programs print ("COMMAND=TEXT"), whether scripts are run, whether
  // also without isolation, and which of several training commands counts, from 1; 0: the only one.
  std::vector<std::string> answers = {};
  bool runs_scripts = true;
  bool trusts_scripts = false;
  std::int64_t command = 0;
  // Results of scripts that ran in this import, by path. Null: not kept.
  std::shared_ptr<std::map<std::string, ShellScript>> scripts = nullptr;
  std::vector<std::string> checkouts = {};  // source folders of frameworks that recipes import
  std::string gpu = "h100";                 // GPU that recipes see when they query the device
  bool assumes_harmless = false;            // ignore unknown settings instead of failing
  // Collects refused and unknown settings, which prevent the import. Null: the outermost import
  // function creates the list.
  LeftSettings* left = nullptr;
};

struct ImportedPlan {
  ModelSpec model;
  Plan plan;
  PartValues parts;   // software parts that the files state, even if equal to the stack's
  std::string stack;  // name in the catalogue; empty if the files do not state it
  std::vector<std::string> outside;     // ignored settings: "--lr"
  std::vector<std::string> notes = {};  // e.g. differences between the model and the files
  std::vector<std::string> assumed_harmless = {};  // unknown settings that were ignored
  bool has_vocab = true;  // false: the tokenizer defines it, and model.vocab is 0
  // If has_vocab is false: the vocab size of the tokenizer, 0 if unknown. Used if no model of the
  // catalogue has the shape.
  std::int64_t tokenizer_vocab = 0;
  std::string tokenizer = {};
};

}  // namespace tpsim
