// Table of tpsim's commands, for --help, the manual and messages. Their texts are in commands.txt.
#include <array>
#include <deque>
#include <string>

#include "cli/commands/commands.h"
#include "core/base/check.h"
#include "core/base/text.h"
#include "core/base/text_table.h"

namespace tpsim::cli {

extern const std::span<const unsigned char> kCommandTexts;  // commands.txt

namespace {

using Run = Result<Answer> (*)(const Arguments& arguments, const Terminal& terminal);
constexpr std::array<Run, kCommandCount> kRuns = {
    run_plan,       run_simulate,  run_explain, run_profile, run_training,
    run_validate,   run_campaign,  run_export,  run_import,  run_check_log,
    run_list,       run_gui,       run_report,  run_show,    run_compare,
    run_completion, run_calibrate, run_call,    run_batch,   run_mcp};

// Returns a text that lives as long as the program.
const char* kept(std::string_view text) {
  static std::deque<std::string> all;
  return all.emplace_back(text).c_str();
}

// Splits "plan.json the saved plan" into the argument's name and its meaning. Leaves both null if
// the text is empty: the command takes no such argument.
void set_argument(std::string_view text, const char*& name, const char*& meaning) {
  if (text.empty()) return;
  name = kept(cut_off(text, " "));
  meaning = kept(text);
}

std::vector<CommandRow> read_rows() {
  std::vector<CommandRow> rows;
  for (const TableBlock& block : read_table(kCommandTexts)) {
    CommandRow& row = rows.emplace_back();
    row.command = static_cast<Command>(rows.size() - 1);
    row.run = kRuns.at(rows.size() - 1);
    row.name = kept(block.name);
    row.summary = kept(block.rest_of("summary"));
    set_argument(block.rest_of("takes"), row.positional, row.positional_help);
    set_argument(block.rest_of("more"), row.more, row.more_help);
    std::string examples;
    for (const auto& [word, line] : block.lines) {
      if (word == "example") examples += (examples.empty() ? "" : "\n") + std::string(line);
    }
    row.examples = kept(examples);
  }
  TPSIM_CHECK(rows.size() == kRuns.size(), "commands.txt describes every command once");
  return rows;
}

}  // namespace

std::span<const CommandRow> command_rows() {
  static const std::vector<CommandRow> kRows = read_rows();
  return kRows;
}

const CommandRow& row_of(Command command) {
  return command_rows()[static_cast<std::size_t>(command)];
}

}  // namespace tpsim::cli
