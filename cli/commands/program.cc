#include "cli/commands/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <string>

#include "app/reports/brief.h"
#include "app/reports/error_json.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "core/base/standard_streams.h"
#include "core/json/json_document.h"

namespace tpsim::cli {
namespace {

// Prints the report, as JSON if there is a document. Returns the error that follows the report.
Status print_answer(const Answer& answer, const Terminal& terminal) {
  if (!answer.document.is_null()) TPSIM_TRY_STATUS(print(to_text(answer.document)));
  if (answer.document.is_null()) {
    TPSIM_TRY_STATUS(answer.is_prose ? print(terminal, answer.text) : print(answer.text));
  }
  return answer.outcome ? answer.verdict : answer.outcome;
}

// Rejects "-" (standard output) as an output file, because the report is printed there.
Status check_files(const Arguments& arguments) {
  for (const Opt opt :
       std::initializer_list<Opt>{"--save", "--plot", "--html", "--screenshot", "--save-stack",
                                  "--save-cluster", "-o", "--dump-gradients"}) {
    if (arguments[opt] != "-") continue;
    return option_error(opt, "'-' is not a file: the report is already on stdout",
                        "write ./- for a file of that name");
  }
  return Ok{};
}

}  // namespace

Status run_program(const CommandLine& line) {
  // Writing beyond the file size limit then fails with an error, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  Terminal terminal = Terminal::detect();
  if (const auto* text = std::get_if<Answer>(&line)) return print_answer(*text, terminal);
  auto arguments = std::get<Arguments>(line);
  const bool is_brief = arguments.has("--brief") && arguments.command != Command::kBatch;
  if (is_brief) arguments.set("--json", "");
  constexpr std::array<std::string_view, 3> kWhen = {"auto", "always", "never"};
  TPSIM_TRY(const std::vector<std::size_t> when, chosen_names(arguments, "--color", kWhen));
  TPSIM_TRY_STATUS(check_single(arguments, "--color", when.size()));
  if (!when.empty() && when.front() > 0) terminal.color = when.front() == 1;
  TPSIM_TRY_STATUS(check_files(arguments));
  if (arguments.has("--quiet")) terminal.progress = terminal.lines = false;
  // Output that other programs read is not wrapped.
  if (arguments.has("--json") || arguments.has("--markdown")) terminal.columns = 0;
  TPSIM_TRY(Answer answer, row_of(arguments.command).run(arguments, terminal));
  if (is_brief && !answer.document.is_null()) answer.document = brief_report(answer.document);
  return print_answer(answer, terminal);
}

ErrorOutput error_output(int argc, const char* const* argv) {
  const auto is_json = [](const char* word) { return std::string_view(word) == "--json"; };
  return std::any_of(argv, argv + argc, is_json) ? ErrorOutput::kTextAndJson : ErrorOutput::kText;
}

int report(const Error& error, ErrorOutput output) {
  const std::string text = printable(to_string(error));
  const std::string line =
      error.kind == ErrorKind::kBug
          ? fmt::format("tpsim: bug: {} (please report it with the command that led here)\n", text)
          : fmt::format("tpsim: error: {}\n", text);
  say(fitted(line, columns_of(STDERR_FILENO)));
  if (output == ErrorOutput::kTextAndJson && !has_printed()) {
    static_cast<void>(print(to_text(error_report(error))));
  }
  return static_cast<int>(error.kind);
}

int guarded(const std::function<int()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return report(error_from(error));
  }
}

int run_and_report(const CommandLine& line, ErrorOutput output) {
  return guarded([&] {
    const Status status = run_program(line);
    return status.ok() ? 0 : report(status.error(), output);
  });
}

}  // namespace tpsim::cli
