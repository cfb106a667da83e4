// tpsim calibrate: fits constants of a stack and a cluster to measurements.
#include "app/answers/calibrate_answer.h"
#include "app/reports/answer_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/views/evidence_view.h"
#include "core/base/files.h"
#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/software/stack_json.h"

namespace tpsim::cli {
namespace {

Status save(const Arguments& arguments, const CalibrationAnswer& answer) {
  if (const auto& path = arguments["--save-stack"]) {
    TPSIM_TRY_STATUS(write_file_atomically(*path, to_json(calibrated_stack(answer))));
  }
  if (const auto& path = arguments["--save-cluster"]) {
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
  TPSIM_TRY(CalibrateRequest request, calibrate_request(arguments));
  std::optional<OpenedLog> first;
  if (!are_tables(request)) {
    TPSIM_TRY(first, open_log(arguments.positional));
    if (is_nccl_test(first->text)) return calibrate_link(arguments, request, *first, terminal);
  }
  const Result<CalibrationAnswer> answer = [&] {
    ProgressBar progress(terminal, "fitting");
    request.progress = progress.shower();
    return calibrate_answer(request, first);
  }();
  if (!answer.ok()) return answer.error();
  TPSIM_TRY_STATUS(save(arguments, *answer));
  return print(terminal, arguments.has("--json") ? to_text(calibration_json(*answer))
                                                 : calibration_text(terminal, arguments, *answer));
}

}  // namespace tpsim::cli
