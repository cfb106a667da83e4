// tpsim call: serves requests of other programs. Reads one JSON request per line of standard input
// and writes one JSON answer per line of standard output.
//
// The formats are described in docs/json.md. The Python package uses this interface.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "core/base/result.h"

namespace tpsim::cli {

inline constexpr std::string_view kRequestFormat = "tpsim-request/1";
inline constexpr std::string_view kAnswerFormat = "tpsim-answer/1";

// One type of request. `command` is the tpsim command whose options the request accepts, if any.
struct CallRow {
  enum class Input { kNone, kMayTake, kNeeds, kNeedsSome };  // some: one or a list

  std::string_view name;
  std::optional<Command> command;
  Input plan;
  Input path;
  Result<Answer> (*answer)(const Arguments& arguments, const Terminal& terminal);
  Input report = Input::kNone;  // a report of --json; its text becomes Arguments::positional
};
const std::vector<CallRow>& call_rows();
const CallRow* find_call(std::string_view name);  // null if there is none

// An option as a keyword of a request: "micro_batch" for --micro-batch. `value` is its placeholder
// in --help, empty for a switch. `takes_list`: the keyword accepts a list of values.
struct CallKeyword {
  Opt opt;
  std::string name;
  std::string value;
  bool takes_list = false;
  std::string help = {};
  std::string_view group = {};
};
// Returns the keywords for the options of a command. Excludes options for output files, for running
// ranks on this machine, and for the plan, which is a separate field of the request.
std::vector<CallKeyword> call_keywords(Command command);
// Returns the keywords for all options of a command but those that change how its report is
// printed.
std::vector<CallKeyword> command_keywords(Command command);

// Returns the answer to a request, or its error, as docs/json.md describes them. `request`: the
// parsed document, or why it cannot be parsed. `progress` gets the completed share of work, and
// stops it by throwing.
JsonValue answer_request(const Result<JsonValue>& request,
                         const std::function<void(double)>& progress = {});
// Returns the answer to one request as one line without newline. If the request fails, the line has
// the error.
std::string answer_line(std::string_view request, const std::function<void(double)>& progress = {});

}  // namespace tpsim::cli
