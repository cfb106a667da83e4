// tpsim calibrate: fits constants of a stack and a cluster to measurements. With the output of
// nccl-tests, fits the bandwidth efficiency of the cluster's links.
#include "app/answers/calibrate_answer.h"
#include "app/reports/calibrate_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/views/answer_views.h"
#include "core/base/files.h"
#include "core/machine/cluster_json.h"
#include "core/software/stack_json.h"

namespace tpsim::cli {
namespace {

Result<Answer> calibrate_link(const Arguments& arguments, const CalibrateRequest& request,
                              const OpenedLog& first, const Terminal& terminal) {
  TPSIM_TRY(const LinkAnswer found, link_answer(request, first));
  if (const auto& path = arguments["--save-cluster"]) {
    TPSIM_TRY_STATUS(write_file_atomically(*path, to_json(calibrated_cluster(found))));
  }
  return answered(
      arguments, terminal, [&] { return link_json(found); },
      [&](TextReport& out) { write_link(out, arguments, found); });
}

}  // namespace

Result<Answer> run_calibrate(const Arguments& arguments, const Terminal& terminal) {
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
  ProgressBar progress(terminal, "fitting");
  request.progress = progress.shower();
  TPSIM_TRY(const CalibrationAnswer found, calibrate_answer(request, first));
  if (const auto& path = arguments["--save-stack"]) {
    TPSIM_TRY_STATUS(write_file_atomically(*path, to_json(calibrated_stack(found))));
  }
  if (const auto& path = arguments["--save-cluster"]) {
    TPSIM_TRY_STATUS(write_file_atomically(*path, to_json(calibrated_cluster(found))));
  }
  return answered(
      arguments, terminal, [&] { return calibration_json(found); },
      [&](TextReport& out) { write_calibration(out, arguments, found); });
}

}  // namespace tpsim::cli
