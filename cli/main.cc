// Parses the command line, runs the command and turns its error into the exit code.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <variant>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace tpsim {
namespace {

Status run_command(const Arguments& arguments, const Terminal& terminal) {
  switch (arguments.command) {
    case Command::kPlan: return run_plan(arguments, terminal);
    case Command::kSimulate: return run_simulate(arguments, terminal);
    case Command::kExplain: return run_explain(arguments, terminal);
    case Command::kRun: return run_training(arguments, terminal);
    case Command::kValidate: return run_validate(arguments, terminal);
    case Command::kCampaign: return run_campaign(arguments, terminal);
    case Command::kExport: return run_export(arguments, terminal);
    case Command::kCheckLog: return run_check_log(arguments, terminal);
    case Command::kList: return run_list(arguments, terminal);
  }
  throw BugError("a command without an implementation");
}

Status run(int argc, const char* const* argv) {
  TPSIM_TRY(const auto parsed, parse_command_line(argc, argv));
  if (const auto* printout = std::get_if<Printout>(&parsed)) return print(printout->text);
  return run_command(std::get<Arguments>(parsed), Terminal::detect());
}

int report_bug(const char* what) {
  fmt::print(stderr, "tpsim: bug: {} (please report it with the command that led here)\n",
             printable(what));
  return static_cast<int>(ErrorKind::kBug);
}

int run_and_report(int argc, const char* const* argv) {
  try {
    const Status status = run(argc, argv);
    if (status.ok()) return 0;
    fmt::print(stderr, "tpsim: error: {}\n", printable(to_string(status.error())));
    return static_cast<int>(status.error().kind);
  } catch (const std::exception& error) {
    return report_bug(error.what());
  }
}

}  // namespace
}  // namespace tpsim

int main(int argc, char** argv) { return tpsim::run_and_report(argc, argv); }
