// tpsim export: writes a plan as launch files of a training stack. First imports the files again to
// check that they reproduce the plan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <system_error>

#include "app/answers/export_answer.h"
#include "app/reports/evidence_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "core/base/files.h"
#include "core/base/standard_streams.h"
#include "frameworks/launch/judged_export.h"

namespace tpsim::cli {
namespace {

// Writes the files to the folder. Returns one line of report per file.
Result<std::string> write_all(const std::filesystem::path& folder,
                              const std::vector<LaunchFile>& files) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    return option_error("-o",
                        fmt::format("cannot create the folder '{}': {}", folder.string(),
                                    std::filesystem::exists(folder) ? "a file with this name exists"
                                                                    : code.message()));
  }
  std::string said;
  for (const LaunchFile& file : files) {
    TPSIM_TRY_STATUS(write_file_atomically(folder / file.name, file.text));
    said += fmt::format("wrote {}\n", printable((folder / file.name).string()));
  }
  return said;
}

// Prints to stderr which settings the files cannot express, since stdout may have the files.
void say_losses(const ExportAnswer& answer) {
  if (!answer.unchecked.empty()) {
    say(fmt::format("tpsim: the files were not checked: {}\n", printable(answer.unchecked)));
  }
  if (!answer.loss.refusal.empty() && !answer.refused) {
    say(fmt::format("tpsim: import cannot read these files: {}\n", printable(answer.loss.refusal)));
  }
  if (answer.loss.lost.empty()) return;
  say(fmt::format("tpsim: files for {} cannot express these settings of the plan:\n{}",
                  name_of(answer.stack), loss_text(answer.loss)));
}

std::string files_text(const Terminal& terminal, const std::vector<LaunchFile>& files) {
  std::string text;
  for (const LaunchFile& launch : files) {
    if (files.size() > 1) text += terminal.paint("# " + launch.name, Ink::kDim) + "\n";
    text += launch.text;
  }
  return text;
}

// Loads the files with the framework's own parser from its checkout (--check). The error has the
// framework's message if it rejects the files.
Status check_by_framework(const Arguments& arguments, const ExportAnswer& answer,
                          const PlanFile& file) {
  const std::string folder = *arguments["--check"];
  std::vector<std::string> checkouts = {folder};
  TPSIM_TRY(const std::vector<std::string> more, checkouts_of(arguments));
  checkouts.insert(checkouts.end(), more.begin(), more.end());
  TPSIM_TRY(const Judgement judgement,
            judged_export(answer.stack, answer.files, file.model, file.profile, checkouts));
  if (!judgement.is_accepted) {
    return Error{
        ErrorKind::kDoesNotFit,
        fmt::format("{} rejects these files: {}", name_of(answer.stack), judgement.message),
        judgement.where, "--ignore-stack-limits allows plans that the launcher rejects"};
  }
  if (!judgement.changed.empty()) {
    std::vector<std::string> each;
    for (const LostSetting& one : judgement.changed) {
      each.push_back(fmt::format("{} {} becomes {}", one.key, one.from, one.to));
    }
    return Error{ErrorKind::kDoesNotFit,
                 fmt::format("{} accepts these files, but changes settings: {}",
                             name_of(answer.stack), fmt::join(each, ", ")),
                 folder, ""};
  }
  if (arguments.has("--quiet")) return Ok{};
  say(fmt::format(
      "tpsim: the argument checks of {} accept the files; {} settings have the files' values\n",
      printable(folder), judgement.held));
  for (const std::string& note : judgement.notes) say(fmt::format("tpsim: {}\n", printable(note)));
  if (!judgement.stubs.empty()) {
    say(fmt::format("tpsim: stubs replaced modules that are not installed: {}\n",
                    printable(fmt::format("{}", fmt::join(judgement.stubs, ", ")))));
  }
  if (!judgement.not_isolated.empty()) {
    say(fmt::format("tpsim: the framework's code ran without isolation ({})\n",
                    printable(judgement.not_isolated)));
  }
  return Ok{};
}

}  // namespace

Result<Answer> run_export(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY_STATUS(launch_stack_of(arguments, "--to"));
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  if (!file) {
    return bad_input("no plan file was given", "export",
                     "tpsim plan ... --save plan.json writes one");
  }
  TPSIM_TRY(const ExportRequest request, export_request(arguments, *file));
  TPSIM_TRY(const ExportAnswer written, export_answer(request));
  const bool json = arguments.has("--json");
  if (!json && (written.refused || !arguments.has("--quiet"))) say_losses(written);
  Answer answer{.is_prose = false};
  if (json) answer.document = export_json(written);
  answer.outcome = [&]() -> Status {
    if (written.refused) return *written.refused;
    if (arguments.has("--check")) TPSIM_TRY_STATUS(check_by_framework(arguments, written, *file));
    if (arguments.has("-o")) {
      TPSIM_TRY(answer.text, write_all(*arguments["-o"], written.files));
    } else {
      answer.text = files_text(terminal, written.files);
    }
    return Ok{};
  }();
  return answer;
}

}  // namespace tpsim::cli
