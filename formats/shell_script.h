// What a shell script would run, as far as its own text says: it is read from top to bottom with
// variables, arrays, defaults, conditions on strings and numbers, functions, here-documents, eval
// and bash -c; files that it sources are read. Of a loop the first turn is taken; of a condition
// that depends on files or programs no branch.
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
  std::vector<std::string> words;  // as expanded
};

struct ShellScript {
  std::vector<ShellCommand> commands;        // in the order that they would run
  ShellVariables variables;                  // at its end
  std::map<std::string, std::string> files;  // what it writes with here-documents, by name
  std::map<std::string, std::string> batch;  // "#SBATCH --nodes=4": "nodes" and "4"
  bool exits = false;                        // before its end, as it says itself
  std::set<std::string> exit_asks;           // variables without a value that it looked at before
  std::vector<std::string> missing;          // files that it sources and that are not there
};

// The text of a file that a script sources, by a path from the script's folder; may be empty.
using ShellFileReader = std::function<Result<std::string>(const std::string&)>;

// All arguments of the script's call, between blanks.
inline constexpr std::string_view kArguments = "@";

// `given` are variables that the environment would hold, and win over what the script assigns; "1"
// is the first argument, kArguments are all. `file` names the script in errors.
Result<ShellScript> read_shell_script(std::string_view text, const std::string& file,
                                      const std::map<std::string, std::string>& given = {},
                                      const ShellFileReader& open = {});

// What a job script tells Slurm fills script.batch, and sets SLURM_NNODES and its kin where the
// lines say them.
void read_batch_lines(std::string_view text, ShellScript& script);
void set_slurm_variables(ShellScript& script);

}  // namespace tpsim
