// Commands that a shell script would run, as far as its text determines them.
//
// The script is read from top to bottom, with variables, arrays, defaults, functions,
// here-documents, eval and bash -c. Conditions on strings and numbers are evaluated. Sourced files
// are read. Only the first iteration of a loop is taken. A condition on files or programs takes no
// branch.
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
  std::map<std::string, std::string> batch;  // "nodes" -> "4" for "#SBATCH --nodes=4"
  bool exits = false;                        // calls exit before its end
  std::set<std::string> exit_asks;           // unset variables that the script tested before exit
  std::vector<std::string> missing;          // sourced files that do not exist
};

// Returns the text of a sourced file. The path is relative to the script's folder. May be empty.
using ShellFileReader = std::function<Result<std::string>(const std::string&)>;

// Key of `given` for all arguments of the script, separated by blanks.
inline constexpr std::string_view kArguments = "@";

// Reads a script. `given` are environment variables, which override the script's assignments. Key
// "1" is the first argument, kArguments are all of them. `file` names the script in errors.
Result<ShellScript> read_shell_script(std::string_view text, const std::string& file,
                                      const std::map<std::string, std::string>& given = {},
                                      const ShellFileReader& open = {});

// Reads #SBATCH lines into script.batch. set_slurm_variables() sets SLURM_NNODES and related
// variables from them.
void read_batch_lines(std::string_view text, ShellScript& script);
void set_slurm_variables(ShellScript& script);

}  // namespace tpsim
