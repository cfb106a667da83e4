#include "app/reports/calibrate_json.h"

#include <fmt/format.h>

#include "evidence/calibration/contradictions.h"

namespace tpsim::app {
namespace {

JsonValue constant_json(const FittedConstant& fitted) {
  return json_object({{"file", name_of(fitted.constant->owner)},
                      {"key", fitted.constant->key},
                      {"before", fitted.before},
                      {"after", fitted.after},
                      {"error", fitted.error_of_value()},
                      {"told", fitted.information()}});
}

JsonValue part_json(const FittedPart& part) {
  return json_object({{"key", row_of(part.part).key},
                      {"before", text_of(row_of(part.part), part.before)},
                      {"after", text_of(row_of(part.part), part.after)}});
}

JsonValue step_json(const FittedStep& step) {
  return json_object({{"id", step.id},
                      {"measured_step_s", step.measured},
                      {"before_step_s", step.before},
                      {"after_step_s", step.after},
                      {"left_out_step_s", step.left_out}});
}

}  // namespace

JsonValue calibration_json(const CalibrationAnswer& answer) {
  const Calibration& found = answer.found;
  return json_object(
      {{"version", "tpsim-calibrate-report/1"},
       {"stack", answer.moves_stack ? JsonValue(answer.inputs.stack.name) : JsonValue()},
       {"cluster", answer.moves_cluster ? JsonValue(answer.inputs.cluster.name) : JsonValue()},
       {"on", answer.inputs.of},
       {"rows", json_array(found.steps, step_json)},
       {"constants", json_array(found.constants, constant_json)},
       {"parts", json_array(found.parts, part_json)},
       {"suspected_precision",
        found.suspected_precision ? JsonValue(name_of(*found.suspected_precision)) : JsonValue()},
       {"mean_error_before", found.error_before()},
       {"mean_error_after", found.error_after()},
       {"mean_error_left_out", found.error_left_out()},
       {"way", found.shrinkage},
       {"residual_spread", found.spread},
       {"contradicting", json_array(contradicting_steps(found.steps),
                                    [&](std::size_t i) { return JsonValue(found.steps[i].id); })},
       {"skipped", json_array(answer.inputs.skipped)}});
}

JsonValue link_json(const LinkAnswer& answer) {
  const FittedLink& link = answer.link;
  const auto constant = [&](const char* key, double before, double after, double error) {
    return json_object({{"file", "cluster"},
                        {"key", answer.key() + "." + key},
                        {"before", before},
                        {"after", after},
                        {"error", error}});
  };
  std::vector<JsonValue> constants = {
      constant("efficiency", link.before.efficiency, link.after.efficiency,
               link.efficiency_error * link.after.efficiency),
      constant("latency", link.before.latency.value(), link.after.latency.value(),
               link.latency_error * link.after.latency.value())};
  return json_object({{"version", "tpsim-calibrate-report/1"},
                      {"stack", JsonValue()},
                      {"cluster", answer.cluster.name},
                      {"on", fmt::format("{} messages of {}", answer.messages, answer.files)},
                      {"constants", json_array(constants)},
                      {"mean_error_before", link.error_before},
                      {"mean_error_after", link.error_after},
                      {"mean_error_left_out", link.error_left_out}});
}

}  // namespace tpsim::app
