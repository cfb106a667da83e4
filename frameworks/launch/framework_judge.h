// Runs the argument code of a framework's checkout on launch arguments, by python/tpsim_recipes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json/json_value.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {

// Converts the text of a YAML value to a JSON value.
JsonValue option_json(const std::string& value);
// Returns the words of the command line that state the options, as a JSON list.
JsonValue judged_arguments(const std::vector<LaunchOption>& options);
// Returns the environment of rank 0: the "export NAME=VALUE" lines of the script's text, and the
// numbers of ranks that torchrun sets.
JsonValue judged_environment(std::string_view script, const LaunchSize& size);

// Returns the verdict of `framework` (a name of tools/tpsim_judges) on `given`:
// "accepted", "message", "where" and the resolved "settings". `files` are written to the folder of
// the input, for judges that read them. Error if the code of the checkouts cannot run.
Result<JsonValue> run_judge(std::string_view framework, const JsonValue& given,
                            const std::vector<std::string>& checkouts,
                            const std::vector<LaunchFile>& files = {});

// Imports a script that starts Megatron-LM. With --run and --checkout, Megatron's own parser in the
// checkout reads the arguments, so that arguments that the script omits have the defaults of that
// version. Error with Megatron's message if it refuses the arguments.
Result<ImportedPlan> import_megatron_script(LaunchCommand command, const LaunchFile& file,
                                            const ImportInputs& inputs);

}  // namespace tpsim
