// tpsim calibrate: fits constants of a stack and a cluster to measurements.
#include "cli/options/calibrate.h"

#include "cli/commands/commands.h"
#include "cli/options/answers.h"
#include "cli/options/inputs.h"
#include "core/base/files.h"
#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/software/stack_json.h"
#include "evidence/calibration/nccl_tests.h"

namespace tpsim::cli {
namespace {

// Fits only the constants of the files that are saved: with --save-stack alone the cluster stays
// fixed, and vice versa. Without either option both are fitted.
Result<CalibrationAnswer> answer_of(const Arguments& arguments,
                                    const std::optional<OpenedLog>& first,
                                    const Terminal& terminal) {
  CalibrationAnswer answer;
  TPSIM_TRY(answer.inputs, calibration_inputs(arguments, first));
  const bool saves = arguments.has(Opt::kSaveStack) || arguments.has(Opt::kSaveCluster);
  answer.moves_stack = arguments.has(Opt::kSaveStack) || !saves;
  answer.moves_cluster = arguments.has(Opt::kSaveCluster) || !saves;
  ProgressBar progress(terminal, "fitting");
  CalibrationChoices choices;
  choices.stack = answer.moves_stack;
  choices.cluster = answer.moves_cluster;
  TPSIM_TRY(choices.threads, threads_of(arguments));
  choices.progress = progress.shower();
  TPSIM_TRY(answer.found, calibrate(answer.inputs.steps, choices));
  return answer;
}

Status save(const Arguments& arguments, const CalibrationAnswer& answer) {
  if (const auto& path = arguments[Opt::kSaveStack]) {
    TPSIM_TRY_STATUS(write_file_atomically(*path, to_json(calibrated_stack(answer))));
  }
  if (const auto& path = arguments[Opt::kSaveCluster]) {
    TPSIM_TRY_STATUS(write_file_atomically(*path, to_json(calibrated_cluster(answer))));
  }
  return Ok{};
}

}  // namespace

Status run_calibrate(const Arguments& arguments, const Terminal& terminal) {
  if (arguments.positional.empty()) {
    return bad_input("no measurement was given", "calibrate",
                     "tpsim calibrate runs.csv --save-stack stack.json");
  }
  std::optional<OpenedLog> first;
  if (!are_tables(arguments)) {
    TPSIM_TRY(first, open_log(arguments.positional));
    if (is_nccl_test(first->text)) return calibrate_link(arguments, *first, terminal);
  }
  TPSIM_TRY(const CalibrationAnswer answer, answer_of(arguments, first, terminal));
  TPSIM_TRY_STATUS(save(arguments, answer));
  return print(terminal, arguments.has(Opt::kJson) ? to_text(calibration_json(answer))
                                                   : calibration_text(terminal, arguments, answer));
}

}  // namespace tpsim::cli
