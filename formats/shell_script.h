// The commands that a shell script starts.
//
// A text of plain words is read without bash. Any other script runs under bash, in a jail in which
// stubs stand for all programs that it could start (python/tpsim_recipes/shell.py).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "formats/launch_file.h"

namespace tpsim {

struct ShellCommand {
  std::vector<std::string> words;  // unknown values are marked (formats/unset_marks.h)
  std::map<std::string, std::string> environment;
  std::string folder = {};  // in which the command starts; empty if unknown
};

// The commands if a value that the script does not state is another one.
struct ShellVariant {
  std::string unknown;  // "$NAME", "$(COMMAND)", a command or a path
  std::string kind;     // "variable", "output", "status" of a command, or "file"
  std::vector<ShellCommand> commands;
  std::map<std::string, std::string> files;  // files that the script wrote, by absolute path
};

struct ShellVariable {
  std::string name;
  std::vector<std::string> values;
  bool is_used = false;  // whether the script expands it
};

struct ShellScript {
  std::vector<ShellCommand> commands;  // those that may start a training
  std::vector<ShellVariant> variants;
  std::vector<ShellVariable> variables;      // at the end of the script
  std::map<std::string, std::string> files;  // files that the script wrote, by absolute path
  std::string folder;                        // working folder at the start; empty if unknown
  std::vector<std::string> missing;          // sourced files that do not exist
  std::vector<std::string> replaced = {};    // "PATH: OTHER", a file of the same repository
  std::vector<std::string> asked;            // variables in the last condition of the script
  std::string not_isolated;  // why the script ran without a jail; empty if it did not
};

struct ShellInputs {
  std::map<std::string, std::string> given;  // variables and arguments, by --set
  std::vector<std::string> answers;          // "COMMAND=TEXT", by --answer
  bool runs = true;                          // false: a script that needs bash is an error
  bool trusts = false;                       // run without a jail if the kernel forbids it
  bool runs_python = false;                  // run Python whose output the script uses, by --run
};

// Key of `given` whose value is all arguments of the script, separated by spaces.
inline constexpr std::string_view kArguments = "@";

Result<ShellScript> read_shell_script(const LaunchFile& file, const ShellInputs& inputs);

// Reads a text of assignments and at most one command, without expansions. Nothing for other texts.
std::optional<ShellScript> read_plain_script(std::string_view text);
// Runs any other script.
Result<ShellScript> run_script(const LaunchFile& file, const ShellInputs& inputs);

// Normalizes a path, so that all spellings of a path give the same text: "./conf/../ds.json" gives
// "ds.json". The folder itself is ".".
std::string plain_path(std::string_view path);

}  // namespace tpsim
