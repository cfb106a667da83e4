// Determines the commands that a shell script would run, without running any program.
//
// The script is interpreted from top to bottom, with variables, arrays, defaults, functions,
// here-documents, eval and bash -c. Conditions on strings and numbers are evaluated, and sourced
// files are read. Loops run only their first iteration. If a condition depends on files or
// programs, no branch is taken.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "formats/shell_words.h"

namespace tpsim {

struct ShellCommand {
  std::vector<std::string> words;  // after expansion
};

struct ShellScript {
  std::vector<ShellCommand> commands;        // in the order of execution
  ShellVariables variables;                  // at the end of the script
  std::map<std::string, std::string> files;  // files written with here-documents, by name
  std::map<std::string, std::string> batch;  // #SBATCH --nodes=4: "nodes" -> "4"
  bool exits = false;                        // the script runs `exit`
  std::set<std::string> exit_asks;           // unset variables in the last condition before exit
  std::vector<std::string> missing;          // names of sourced files that were not found
};

// Reads a sourced file by its path relative to the script's folder. May be empty.
using ShellFileReader = std::function<Result<std::string>(const std::string&)>;

// Key of `given` whose value is all arguments of the script, separated by spaces.
inline constexpr std::string_view kArguments = "@";

// Interprets a script. `given` contains environment variables, which override the script's
// assignments, and arguments: key "1" is the first one, kArguments is all of them. `file` is the
// name for error messages.
Result<ShellScript> read_shell_script(std::string_view text, const std::string& file,
                                      const std::map<std::string, std::string>& given = {},
                                      const ShellFileReader& open = {});

// read_batch_lines() stores the options of #SBATCH lines in script.batch. set_slurm_variables()
// sets SLURM_NNODES and related variables from these.
void read_batch_lines(std::string_view text, ShellScript& script);
void set_slurm_variables(ShellScript& script);

}  // namespace tpsim
