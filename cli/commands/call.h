// tpsim call: answers requests of other programs. Each line of standard input is a JSON request,
// each line of standard output its answer.
//
// docs/json.md has both formats; python/ is built on them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/options.h"
#include "core/base/result.h"
#include "core/json/json_value.h"

namespace tpsim::cli {

inline constexpr std::string_view kRequestFormat = "tpsim-request/1";
inline constexpr std::string_view kAnswerFormat = "tpsim-answer/1";

// A request: options by keyword, with values as on the command line.
struct CallRequest {
  std::string call;
  std::map<std::string, std::string> options;  // {"micro_batch", "1,2"}; a switch has ""
  std::optional<std::string> plan;             // text of a plan file
  std::optional<std::string> path;             // of the file to read
  std::function<void(double)> progress;        // gets the completed share; stops the work by
                                               // throwing
};

struct CallAnswer {
  JsonValue document;                // output of the command with --json
  std::vector<std::string> files{};  // plan files of the plans in the document, in the same order
};

// One possible call. `command` is the command whose options it takes, if any.
struct CallRow {
  enum class Input { kNone, kMayTake, kNeeds };

  std::string_view name;
  std::optional<Command> command;
  Input plan;
  Input path;
  Result<CallAnswer> (*answer)(const Arguments& arguments, const CallRequest& request);
};
const std::vector<CallRow>& call_rows();

// A keyword of a call: "micro_batch" for --micro-batch. `value` is the placeholder in --help (empty
// for a switch). `takes_list`: whether a list of values is allowed.
struct CallKeyword {
  Opt opt{};
  std::string name;
  std::string value;
  bool takes_list = false;
};
// Returns the options of a command as keywords. Options for output files, for running ranks on this
// machine, and for the request's plan are excluded.
std::vector<CallKeyword> call_keywords(Command command);

// Returns the answer to one request, on one line without newline. Errors are answers too.
std::string answer_line(std::string_view request, const std::function<void(double)>& progress = {});

}  // namespace tpsim::cli
