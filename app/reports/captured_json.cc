#include "app/reports/captured_json.h"

namespace tpsim::app {
namespace {

JsonValue times_json(const std::vector<CapturedTime>& rows) {
  return json_array(rows, [](const CapturedTime& row) {
    return json_object({{"what", row.what}, {"count", row.count}, {"seconds", row.time.value()}});
  });
}

JsonValue texts_json(const std::vector<std::pair<std::string, std::string>>& rows) {
  JsonValue json = json_object();
  for (const auto& [key, text] : rows) json.set(key, text);
  return json;
}

}  // namespace

JsonValue captured_report(const CapturedAnswer& answer) {
  const auto& [step, machine, p] = answer;
  JsonValue memory = json_object();
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    memory.set(std::string(name_of(static_cast<MemoryCategory>(i))),
               gib(p.memory.by_category[static_cast<std::size_t>(i)]));
  }
  memory.set("context", gib(p.memory.context));
  memory.set("fragmentation", gib(p.memory.fragmentation));
  JsonValue phases = json_object();
  for (std::size_t i = 0; i < p.by_phase.size(); ++i) {
    phases.set(std::string(kEnumNames<CapturedPhase>[i]), p.by_phase[i].value());
  }
  return json_object({{"version", "tpsim-captured-report/1"},
                      {"cluster", machine.cluster.name},
                      {"profile", machine.profile.name},
                      {"stack", machine.stack.name},
                      {"gpus", step.world},
                      {"rank", step.rank},
                      {"software", texts_json(step.software)},
                      {"assumed_values", texts_json(step.assumed)},
                      {"step_s", p.step.value()},
                      {"step_low_s", p.step_low.value()},
                      {"step_high_s", p.step_high.value()},
                      {"busy_s", p.busy.value()},
                      {"exposed_s", p.exposed.value()},
                      {"host_wait_s", p.host_wait.value()},
                      {"matrix_flops", p.flops},
                      {"ops", times_json(p.ops)},
                      {"collectives", times_json(p.collectives)},
                      {"phases", std::move(phases)},
                      {"modules", times_json(p.modules)},
                      {"rough", times_json(p.rough)},
                      {"peak_gib", gib(p.peak)},
                      {"capacity_gib", gib(p.capacity)},
                      {"p_oom", p.p_oom},
                      {"memory", std::move(memory)}});
}

}  // namespace tpsim::app
