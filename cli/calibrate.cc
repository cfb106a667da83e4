// tpsim calibrate: constants of a stack and a cluster from what was measured with them.
#include "cli/calibrate.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/log_text.h"
#include "core/cluster_json.h"
#include "core/files.h"
#include "core/json_document.h"
#include "core/stack_json.h"
#include "stacks/nccl_tests.h"

namespace tpsim::cli {
namespace {

// What is asked for is what may move: a constant that no file would keep must not explain anything.
Result<CalibrationAnswer> answer_of(const Arguments& arguments, const Terminal& terminal) {
  CalibrationAnswer answer;
  TPSIM_TRY(answer.inputs, calibration_inputs(arguments));
  const bool saves = arguments.has(Opt::kSaveStack) || arguments.has(Opt::kSaveCluster);
  answer.moves_stack = arguments.has(Opt::kSaveStack) || !saves;
  answer.moves_cluster = arguments.has(Opt::kSaveCluster) || !saves;
  ProgressBar progress(terminal, "fitting");
  CalibrationChoices choices;
  choices.stack = answer.moves_stack;
  choices.cluster = answer.moves_cluster;
  TPSIM_TRY(choices.threads, threads_of(arguments));
  choices.progress = [&](double share) { progress.show(share); };
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

// Traces say how long kernels took, and of a layout nothing.
Error trace_error(const std::string& file) {
  return Error{ErrorKind::kBadInput,
               "is a trace: it has no layout, and kernels are not told apart yet", file,
               "a log of the same run with its plan.json, or a table of runs"};
}

bool is_trace(const std::string& text) {
  constexpr std::size_t kHead = 4096;
  const std::string head = text.substr(0, kHead);
  return head.find("traceEvents") != std::string::npos ||
         head.find("deviceProperties") != std::string::npos;
}

Status refuse_traces(const std::string& file) {
  if (!file.ends_with(".sqlite") && !file.ends_with(".nsys-rep")) return Ok{};
  return Error{ErrorKind::kBadInput, "is a report of Nsight Systems, which is not read", file,
               "nsys stats --report cuda_gpu_kern_sum shows its kernels; calibrate takes logs with "
               "their plans, tables of runs and output of nccl-tests"};
}

}  // namespace

Status run_calibrate(const Arguments& arguments, const Terminal& terminal) {
  if (arguments.positional.empty()) {
    return Error{ErrorKind::kBadInput, "what was measured? Nothing was given", "calibrate",
                 "tpsim calibrate runs.csv --save-stack stack.json"};
  }
  if (!arguments.positional.ends_with(".csv")) {
    TPSIM_TRY_STATUS(refuse_traces(arguments.positional));
    TPSIM_TRY(const std::string text, read_log_text(arguments.positional));
    if (is_nccl_test(text)) return calibrate_link(arguments, terminal);
    if (is_trace(text)) return trace_error(arguments.positional);
  }
  TPSIM_TRY(const CalibrationAnswer answer, answer_of(arguments, terminal));
  TPSIM_TRY_STATUS(save(arguments, answer));
  return print(arguments.has(Opt::kJson) ? to_text(calibration_json(answer))
                                         : calibration_text(terminal, arguments, answer));
}

}  // namespace tpsim::cli
