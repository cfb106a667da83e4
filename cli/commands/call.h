// tpsim call: requests of other programs on standard input, one JSON document a line, each answered
// by one line on standard output. docs/json.md has both formats; python/ is written on top of them.
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

// A request: options by keyword, with values as the command line takes them.
struct CallRequest {
  std::string call;
  std::map<std::string, std::string> options;  // {"micro_batch", "1,2"}; a switch holds ""
  std::optional<std::string> plan;             // the text of a plan file
  std::optional<std::string> path;             // of the file that the call reads
  std::function<void(double)> progress;        // hears the done share; stops the work by throwing
};

struct CallAnswer {
  JsonValue document;                // what the command prints with --json
  std::vector<std::string> files{};  // the plan files of the plans in the document, in their order
};

// One thing that can be called. `command` is the command whose options it takes, if it takes any.
struct CallRow {
  enum class Input { kNone, kMayTake, kNeeds };

  std::string_view name;
  std::optional<Command> command;
  Input plan;
  Input path;
  Result<CallAnswer> (*answer)(const Arguments& arguments, const CallRequest& request);
};
const std::vector<CallRow>& call_rows();

// A keyword of a call: "micro_batch" of --micro-batch, what --help says it takes (nothing for a
// switch), and whether a list of values may stand there.
struct CallKeyword {
  Opt opt{};
  std::string name;
  std::string value;
  bool takes_list = false;
};
// The options of a command but those that say where its output goes, run ranks on this machine, or
// stand as the request's plan.
std::vector<CallKeyword> call_keywords(Command command);

// The answer to the text of one request, on one line without a newline. An error is an answer too.
std::string answer_line(std::string_view request, const std::function<void(double)>& progress = {});

}  // namespace tpsim::cli
