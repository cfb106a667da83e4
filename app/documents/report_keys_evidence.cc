// Objects of the reports of run, validate, check-log and calibrate.
#include "app/documents/report_keys.h"

namespace tpsim::app {
namespace {

constexpr ReportKey kEvidenceKeys[] = {
    object("run_report"),
    {"version", "text", "kind and version of the report"},
    {"model plan dtype", "text", "what is trained, its layout in short, and its dtype"},
    {"ranks", "whole", "number of ranks"},
    {"steps", "list of trained_step",
     "one object for each step, printed as it ends; the output of a killed run lacks the closing "
     "brackets"},
    {"completed", "bool", "all steps are done; `false` after SIGINT or SIGTERM"},
    {"ops", "list of run_op", "time of the ops on the first rank, all steps together"},
    {"collectives", "list of run_collective", "the same for collectives"},

    object("trained_step"),
    {"step", "whole", "from 1; a resumed run begins after the step of the saved state"},
    {"loss", "number", "mean cross entropy over the step's tokens"},
    {"grad_norm", "number", "norm of all gradients, before clipping"},
    {"step_s tokens_per_s", "number", "step time, and tokens per second of the whole run"},
    {"model_gflops_per_rank", "number", "model FLOPs per second and rank, in GFLOP/s"},
    {"peak_memory_mib", "number", "highest memory that the first rank has allocated, in MiB"},
    {"used_memory_mib", "number", "memory in use on its device as the driver reports; 0 on a CPU"},

    object("run_op"),
    {"op key label", "text", "kind of op, its sizes, and its place in the model"},
    {"count", "whole", "executions"},
    {"seconds", "number", "their time together"},

    object("run_collective"),
    {"collective group label", "text", "kind of collective, its ranks, and its place in the model"},
    {"ranks bytes count", "whole", "ranks, bytes of the whole array, and executions"},
    {"seconds", "number", "their time together"},

    object("validate_report"),
    {"version", "text", "kind and version of the report"},
    {"rows", "list of validated_row", "one object for each row of the table, in order"},
    {"summary", "error_summary", "errors over the rows that count"},
    {"summary_test_rows summary_calibration_rows", "error_summary",
     "the same over rows on which no constant was fitted, and over the others"},

    object("validated_row"),
    {"id outcome", "text", "as in the table"},
    {"calibration", "bool", "whether constants were fitted on this row"},
    {"measured_step_s predicted_step_s low_s high_s", "number?",
     "step time measured and predicted, and the ends of the 90 % interval"},
    {"error_pct", "number?", "predicted / measured - 1, in percent"},
    {"half_peak_s", "number?",
     "a baseline: model FLOPs and those of recompute at half of the dtype's dense datasheet peak"},
    {"measured_mem_gb predicted_mem_gb", "number?", "memory of the fullest stage, in GiB"},
    {"predicted_fits", "bool?", "whether the plan fits"},
    {"p_oom", "number?", "probability that it does not"},
    {"skipped_because", "text?", "why the row is not in the summary; null if it is"},
    {"cluster stack parts", "text?", "inputs of the prediction"},
    {"assumed", "list of text", "inputs that the row does not state"},

    object("error_summary"),
    {"n", "whole", "rows with a time"},
    {"mape median_ape p95_ape max_ape bias_pct", "number?",
     "mean, median, 95th percentile and maximum of the absolute errors, and mean error; in "
     "percent"},
    {"half_peak_mape", "number?", "mean absolute error of `half_peak_s`"},
    {"kendall_tau", "number?", "agreement of order within pairs of like rows, -1 to 1"},
    {"pair_spread_pct", "number?",
     "difference of the errors of the two rows of such a pair, root mean square"},
    {"top1_regret_pct", "number?",
     "how much slower than the best measured row the predicted pick is, mean over sweeps"},
    {"interval_coverage_90", "number?", "share of rows within their interval"},
    {"mem_n", "whole", "rows with a memory"},
    {"mem_mape mem_max_ape", "number?", "mean and maximum of the absolute errors of memory"},
    {"oom_total oom_caught false_oom", "whole",
     "runs that ran out of memory, those predicted, and false alarms"},

    object("measured_report"),
    {"version", "text", "kind and version of the report"},
    {"model plan profile", "text", "names of the compared plan"},
    {"steps warm_up_steps", "whole", "measured steps, and steps before these, left out"},
    {"step_spread", "number", "median absolute deviation of the steps over their median"},
    {"least_step_s", "number", "the shortest step"},
    {"share_on_core", "number",
     "share of the time outside collectives in which ranks had a core, for the rank that had it "
     "least. Below 0.9 the report warns of a busy machine. 1 on GPUs"},
    {"cores", "whole", "cores that this process could use; 0 on GPUs and under a launcher"},
    {"predicted_step_s low_s high_s measured_step_s", "number", "the step and its interval"},
    {"error_pct", "number", "predicted / measured - 1, in percent"},
    {"accounted_pct", "number", "share of the ranks' time in recorded ops and collectives"},
    {"predicted_wait_s measured_wait_s", "number",
     "pipeline bubble and slower ranks, mean over ranks; measured: time in collectives beyond "
     "their own"},
    {"memory", "list of measured_memory", "memory of each stage"},
    {"op_kinds ops collectives measure_again", "list of compared_time",
     "times in one step, mean over ranks; `measure_again`: ops whose profile should be measured "
     "again"},

    object("measured_memory"),
    {"stage", "whole", "number of the stage"},
    {"predicted_gib measured_gib", "number", "peak in GiB"},
    {"error_pct", "number", "predicted / measured - 1, in percent"},

    object("compared_time"),
    {"what", "text", "the op or collective"},
    {"count", "number", "executions"},
    {"predicted_s measured_s", "number", "time of all executions"},
    {"error_pct", "number?", "predicted / measured - 1, in percent"},

    object("rank_report"),
    {"version", "text", "kind and version of the report"},
    {"model plan", "text", "the plan"},
    {"rank steps", "whole", "the rank that ran alone, and its steps"},
    {"step_s predicted_step_s", "number", "its step"},
    {"step_spread", "number", "median absolute deviation of the steps over their median"},
    {"modelled_wait_s", "number", "time in which it would wait for other ranks, by the model"},
    {"accounted_pct", "number", "share of its time in recorded ops and collectives"},
    {"peak_memory_gib allocated_memory_gib predicted_peak_memory_gib", "number",
     "memory in use on the device, allocated by tensors, and predicted; in GiB"},
    {"op_kinds ops collectives", "list of compared_time", "times in one step"},

    object("log_report"),
    {"version", "text", "kind and version of the report"},
    {"as_predicted time_as_predicted memory_as_predicted", "bool",
     "whether time and memory are within their intervals"},
    {"steps warm_up_steps other_batch_steps skipped_steps nan_losses", "whole",
     "steps compared, and steps left out as warm-up, with another batch, skipped by the loss "
     "scaler, or with a loss that is not a number"},
    {"measured_step_s predicted_step_s step_s_low step_s_high", "number",
     "median step of the log, and the prediction with its interval"},
    {"memory_gib", "list of logged_memory", "memory of each stage that the log states"},
    {"gap", "number", "measured / predicted - 1"},
    {"load_balancing_loss z_loss logged_expert_load", "number?", "last values of the log"},
    {"training_part", "text?", "why only a part of the logged step was compared"},
    {"logged_tflops_per_gpu", "number", "as the log states it; 0 if it does not"},
    {"measured_tflops_per_gpu measured_half_mask_tflops_per_gpu model_tflops_per_gpu", "number",
     "model TFLOP/s per GPU by the measured step, the same with half of the causal mask, and "
     "predicted"},
    {"likely", "list of likely_cause", "changes of the inputs that would explain the gap"},
    {"findings", "list of finding", "causes that the log shows"},
    {"kernels", "traced_kernels", "kernels of a profiler's trace, if the log is one"},

    object("logged_memory"),
    {"stage", "whole", "number of the stage"},
    {"reserved predicted", "number", "reserved by the allocator, and predicted; in GiB"},

    object("likely_cause"),
    {"what", "text", "the change"},
    {"step_s", "number", "predicted step with the change"},

    object("finding"),
    {"cause evidence", "text", "the cause, and the lines that show it"},

    object("traced_kernels"),
    {"steps", "whole", "steps of the trace"},
    {"rank", "whole", "the traced rank"},
    {"parts", "list of traced_part", "parts of the step"},
    {"collectives", "list of traced_collective", "collectives by kernel"},

    object("traced_part"),
    {"what", "text", "kind of kernel, or waiting"},
    {"measured_s predicted_s", "number", "time in one step"},

    object("traced_collective"),
    {"name", "text", "name of the kernel"},
    {"calls", "number", "launches in one step"},
    {"time_s", "number", "their time"},

    object("calibrate_report"),
    {"version", "text", "kind and version of the report"},
    {"stack cluster", "text?", "names of the files whose constants were fitted; null if unchanged"},
    {"on", "text", "the runs that were used"},
    {"rows", "list of calibrated_row", "the runs"},
    {"constants", "list of fitted_constant", "constants before and after"},
    {"parts", "list of fitted_part", "software parts that the runs decide"},
    {"mean_error_before mean_error_after mean_error_left_out", "number",
     "mean absolute error of the runs: before, after, and of each run with constants fitted on the "
     "others"},
    {"way", "number", "shrinkage: share of the fitted change that is applied, 0 to 1"},
    {"residual_spread", "number", "spread of the errors that remain"},
    {"contradicting", "list of text", "runs that contradict the others"},
    {"skipped", "list of text", "runs that were not used, with the reason"},

    object("calibrated_row"),
    {"id", "text", "name of the run"},
    {"measured_step_s before_step_s after_step_s left_out_step_s", "number",
     "step measured, and predicted before, after, and with constants fitted on the other runs"},

    object("fitted_constant"),
    {"file key", "text", "the constant"},
    {"before after", "number", "its values"},
    {"error", "number", "standard error of the value, relative"},
    {"told", "number", "information that the runs hold on the constant, 0 to 1"},

    object("fitted_part"),
    {"key before after", "text", "the part and its values"},
};

}  // namespace

std::span<const ReportKey> evidence_keys() { return kEvidenceKeys; }

}  // namespace tpsim::app
