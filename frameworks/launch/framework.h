// The interface of one framework: detects, reads, writes and checks its launch files.
//
// frameworks.cc lists all frameworks. Each is defined in a folder of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/scenario/plan_file.h"
#include "core/software/launch_rules.h"
#include "core/software/stack_spec.h"
#include "formats/settings_text.h"
#include "frameworks/launch/imported_plan.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launch_stack.h"
#include "frameworks/launch/shell_files.h"

namespace tpsim {

// The launch files that a job starts. For other frameworks: their own files.
struct JobContents {
  LaunchStack stack{};
  std::vector<LaunchFile> files;
};

// The input of the framework's own argument parser and validation, and the settings to compare with
// those that the framework resolves.
struct JudgedFiles {
  JsonValue given = json_object({});
  std::vector<LaunchOption> options;  // of the command line
  std::vector<FlatSetting> settings;  // of the configuration file
  std::vector<LaunchFile> files;      // files that the framework reads
};

class Framework {
 public:
  // `config`: name of the file with further settings; empty if there is none.
  Framework(LaunchStack stack, Launcher launcher, std::string config = "");
  Framework(const Framework&) = delete;
  Framework& operator=(const Framework&) = delete;
  virtual ~Framework() = default;

  LaunchStack stack() const { return stack_; }
  Launcher launcher() const { return launcher_; }  // kNone for jobs: they use the plan's stack
  // Names of the files that write() may return. The file with the training arguments is first.
  const std::vector<std::string>& files() const { return files_; }
  // Whether files of this framework start a plan of the software stack with this name. Stack files
  // of users are matched by name, too.
  virtual bool runs(const std::string& stack) const;
  // Returns a framework whose files can start the same plans, for models that files of this one
  // cannot describe. Nothing if there is none.
  virtual std::optional<LaunchStack> alternative() const { return std::nullopt; }

  // Detection: whether a script or log starts this framework, and whether a configuration file has
  // keys that only this framework has.
  virtual bool detects_script(std::string_view text) const;
  virtual bool detects_settings(const std::vector<FlatSetting>& settings) const;

  // Reads files with the names of files(). By default, reads the first as a script.
  virtual Result<ImportedPlan> read(const std::vector<LaunchFile>& files,
                                    const ImportInputs& inputs) const;
  // Reads the training command of a script. `files`: the script and the files next to it.
  virtual Result<ImportedPlan> read_command(LaunchCommand command, const LaunchFile& script,
                                            const std::vector<LaunchFile>& files,
                                            const ImportInputs& inputs) const;
  // Reads a configuration file, for which detects_settings() is true.
  virtual Result<ImportedPlan> read_settings(const std::vector<FlatSetting>& settings,
                                             const LaunchFile& file,
                                             const ImportInputs& inputs) const;

  // Writes the launch files. Error if they cannot express the plan.
  virtual Result<std::vector<LaunchFile>> write(const PlanFile& file, const LaunchSize& size,
                                                const StackSpec& software) const = 0;
  // Returns the shell command of a job that starts the ranks of one node.
  virtual std::string start_command(const ModelSpec& model, const std::string& job) const;

  // Name of the framework in tools/tpsim_judges; empty if its files cannot be checked.
  virtual std::string_view judge() const { return ""; }
  // Adds what the judge needs besides the options and the environment. By default: the
  // configuration file and its settings.
  virtual Status prepare_check(const std::vector<LaunchFile>& files, const ModelSpec& model,
                               JudgedFiles& judged) const;
  // Returns the files that a job embeds, under the names that their framework gives them.
  virtual Result<JobContents> contents(const std::vector<LaunchFile>& files) const;

 protected:
  Framework(LaunchStack stack, std::vector<std::string> files);  // a job

 private:
  LaunchStack stack_;
  Launcher launcher_ = Launcher::kNone;
  std::vector<std::string> files_;
};

// Returns all frameworks, in the order of LaunchStack.
const std::vector<const Framework*>& frameworks();
const Framework& framework_of(LaunchStack stack);
// Returns the framework whose files start the plans of `launcher`; null for kNone.
const Framework* framework_of(Launcher launcher);
// Returns the framework whose files start the plans of the stack with this name: the stack's
// launcher, or for kNone the framework that runs() the name. Null if there is none.
const Framework* framework_of(Launcher launcher, const std::string& stack);

// Returns the shell command by which torchrun starts `program` on one node.
std::string torchrun_command(const std::string& job, std::string_view program,
                             std::string_view arguments = "\"${TRAIN_ARGS[@]}\" \"$@\"");
// Returns the script "megatron-lm.sh" with `options`. `environment` is further "export" lines.
LaunchFile shell_file(LaunchStack stack, const PlanFile& file, const LaunchSize& size,
                      const LaunchOptions& options, const std::string& environment);
// Reads the first file as a script that starts `framework`, or a program that programs.h lists.
Result<ImportedPlan> read_script(const Framework& framework, const std::vector<LaunchFile>& files,
                                 const ImportInputs& inputs);
// Adds the parts that the script of `framework` among `files` sets by environment variables.
ImportedPlan with_environment(const Framework& framework, const std::vector<LaunchFile>& files,
                              const ImportInputs& inputs, ImportedPlan plan);

}  // namespace tpsim
