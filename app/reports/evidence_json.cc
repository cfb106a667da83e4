#include "app/reports/evidence_json.h"

#include "app/answers/run_answers.h"

namespace tpsim::app {
namespace {

JsonValue json_if(bool said, double value) { return said ? JsonValue(value) : JsonValue(); }

JsonValue kernel_json(const KernelTimes& kernels, const std::vector<KernelRow>& rows) {
  return json_object(
      {{"steps", std::ssize(kernels.steps)},
       {"rank", kernels.rank},
       {"parts", json_array(rows,
                            [](const KernelRow& row) {
                              return json_object({{"what", row.what},
                                                  {"measured_s", row.measured.value()},
                                                  {"predicted_s", row.predicted.value()}});
                            })},
       {"collectives", json_array(kernels.collectives, [](const TracedCollective& one) {
          return json_object(
              {{"name", one.name}, {"calls", one.calls}, {"time_s", one.time.value()}});
        })}});
}

JsonValue number_or_null(const std::optional<double>& number, double factor = 1) {
  return number ? JsonValue(factor * *number) : JsonValue();
}

JsonValue predicted_or_null(const RunOutcome& run, double value) {
  return run.predicted ? JsonValue(value) : JsonValue();
}

JsonValue row_json(const RunOutcome& run) {
  return json_object(
      {{"id", run.id},
       {"outcome", run.outcome},
       {"calibration", run.calibration},
       {"measured_step_s", number_or_null(run.measured_step_s)},
       {"predicted_step_s", predicted_or_null(run, run.step_s)},
       {"low_s", predicted_or_null(run, run.low_s)},
       {"high_s", predicted_or_null(run, run.high_s)},
       {"error_pct", number_or_null(run.error(), 100)},
       {"half_peak_s", predicted_or_null(run, run.half_peak_s)},
       {"measured_mem_gb", number_or_null(run.measured_memory_gib)},
       {"predicted_mem_gb", predicted_or_null(run, run.memory_gib)},
       {"predicted_fits", run.predicted ? JsonValue(run.p_oom <= kRefusedChance) : JsonValue()},
       {"p_oom", predicted_or_null(run, run.p_oom)},
       {"skipped_because",
        run.skipped_because.empty() ? JsonValue() : JsonValue(run.skipped_because)},
       {"cluster", run.cluster},
       {"stack", run.stack},
       {"parts", run.parts},
       {"assumed", json_array(run.assumed)},
       {"without_effect", json_array(run.without_effect)}});
}

JsonValue summary_json(const ValidationSummary& s) {
  return json_object(
      {{"n", s.n},
       {"mape", 100 * s.mape},
       {"half_peak_mape", 100 * s.half_peak_mape},
       {"median_ape", 100 * s.median_ape},
       {"p95_ape", 100 * s.p95_ape},
       {"max_ape", 100 * s.max_ape},
       {"bias_pct", 100 * s.bias},
       {"kendall_tau", s.pairs > 0 ? JsonValue(s.kendall_tau) : JsonValue()},
       {"pair_spread_pct", s.pairs > 0 ? JsonValue(100 * s.pair_spread) : JsonValue()},
       {"top1_regret_pct", 100 * s.top1_regret},
       {"interval_coverage_90", s.interval_coverage},
       {"mem_n", s.memory_n},
       {"mem_mape", 100 * s.memory_mape},
       {"mem_max_ape", 100 * s.memory_max_ape},
       {"oom_total", s.oom_total},
       {"oom_caught", s.oom_caught},
       {"false_oom", s.false_oom}});
}

}  // namespace

JsonValue export_json(const ExportAnswer& answer) {
  JsonValue json = json_object(
      {{"version", "tpsim-export-report/1"}, {"to", std::string(name_of(answer.stack))}});
  json.set("files", json_array(answer.files, [](const LaunchFile& file) {
             return json_object({{"name", file.name}, {"text", file.text}});
           }));
  if (!answer.run) return json.set("unchecked", answer.unchecked), json;
  const Prediction& predicted = answer.run->predicted;
  const ExportLoss& loss = answer.loss;
  json.set("fits", fits_in_memory(predicted));
  json.set("p_oom", predicted.p_oom);
  json.set("lost", json_array(loss.lost, [](const LostSetting& one) {
             return json_object({{"key", one.key}, {"from", one.from}, {"to", one.to}});
           }));
  json.set("step_s", loss.step.value());
  json.set("memory_gib", gib(loss.memory));
  if (!loss.refusal.empty()) return json.set("import_refuses", loss.refusal), json;
  json.set("step_s_back", loss.step_back.value());
  json.set("memory_gib_back", gib(loss.memory_back));
  json.set("step_change", loss.step_change());
  json.set("memory_change", loss.memory_change());
  return json;
}

JsonValue check_log_json(const CheckedLog& checked) {
  const LogCheck& check = checked.check;
  JsonValue json = json_object({
      {"version", "tpsim-log-report/1"},
      {"as_predicted", check.as_predicted()},
      {"steps", check.steps_used},
      {"measured_step_s", check.measured.value()},
      {"predicted_step_s", check.predicted.value()},
      {"step_s_low", check.low.value()},
      {"step_s_high", check.high.value()},
      {"time_as_predicted", check.time_as_predicted},
      {"memory_as_predicted", check.memory_as_predicted},
      {"memory_gib", json_array(check.memory,
                                [](const StageReserved& row) {
                                  return json_object({{"stage", row.stage},
                                                      {"reserved", row.measured.value() / kGiB},
                                                      {"predicted", row.predicted.value() / kGiB}});
                                })},
      {"gap", check.gap()},
      {"warm_up_steps", check.warm_up},
      {"other_batch_steps", check.other_batch},
      {"nan_losses", check.nan_losses},
      {"skipped_steps", check.skipped},
      {"load_balancing_loss", json_if(check.balancing_loss >= 0, check.balancing_loss)},
      {"z_loss", json_if(check.z_loss >= 0, check.z_loss)},
      {"logged_expert_load", json_if(check.logged_load > 0, check.logged_load)},
      {"training_part", check.training_part.empty() ? JsonValue() : JsonValue(check.training_part)},
      {"logged_tflops_per_gpu", check.logged_tflops},
      {"measured_tflops_per_gpu", check.model_tflops},
      {"measured_half_mask_tflops_per_gpu", check.half_mask_tflops},
      {"model_tflops_per_gpu", checked.predicted.model_tflops_per_gpu},
      {"likely",
       json_array(checked.likely,
                  [](const LikelyCause& cause) {
                    return json_object({{"what", cause.what}, {"step_s", cause.step.value()}});
                  })},
      {"findings", json_array(check.findings,
                              [](const Finding& finding) {
                                return json_object({{"cause", name_of(finding.cause)},
                                                    {"evidence", finding.evidence}});
                              })},
  });
  if (checked.kernels) json.set("kernels", kernel_json(*checked.kernels, checked.kernel_rows));
  return json;
}

JsonValue validate_json(const std::vector<RunOutcome>& outcomes) {
  return json_object(
      {{"version", "tpsim-validate-report/1"},
       {"rows", json_array(outcomes, row_json)},
       {"summary", summary_json(summarize(outcomes))},
       {"summary_test_rows", summary_json(summarize(rows_of(outcomes, false)))},
       {"summary_calibration_rows", summary_json(summarize(rows_of(outcomes, true)))}});
}

}  // namespace tpsim::app
