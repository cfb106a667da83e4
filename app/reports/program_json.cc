#include "app/reports/program_json.h"

#include <array>

#include "app/answers/term_texts.h"
#include "app/answers/top_ops.h"
#include "app/reports/report_json.h"

namespace tpsim::app {
namespace {

JsonValue event_json(const LoweredOp& op) {
  const OpKey& key = op.key;
  std::size_t count = key.dims.size();
  while (count > 0 && key.dims[count - 1] == 0) --count;
  JsonValue json = json_object({{"op", name_of(key.kind)},
                                {"dtype", name_of(key.dtype)},
                                {"dims", json_array(std::span(key.dims).first(count))},
                                {"variant", static_cast<std::int64_t>(key.variant)},
                                {"kernels", op.launches},
                                {"flops", op.flops},
                                {"bytes", op.bytes},
                                {"label", op.label.text}});
  if (op.repeats != 1) json.set("repeats", op.repeats);
  const std::string pass = name_of_pass(op);
  if (!pass.empty()) json.set("pass", pass);
  return json;
}

JsonValue event_json(const LoweredCollective& record) {
  return json_object({{"collective", name_of(record.kind)},
                      {"group", name_of(record.group)},
                      {"ranks", record.ranks},
                      {"bytes", record.bytes},
                      {"calls", record.calls},
                      {"mover", name_of(record.mover)},
                      {"label", record.label.text}});
}
JsonValue event_json(const IssuedWait& wait) {
  return json_object(
      {{"hidden_by", json_array(wait.hidden_by)}, {"label", wait.record.label.text}});
}
JsonValue event_json(const LoweredCopy& copy) {
  return json_object(
      {{"copy", copy.kernels}, {"bytes", copy.moved.value()}, {"label", copy.label.text}});
}
JsonValue event_json(const HostWork& work) {
  return json_object(
      {{"host", work.busy.value()}, {"synchronizes", work.synchronizes}, {"label", work.label}});
}
JsonValue event_json(const IssuedMemory& memory) {
  return json_object({{"memory", memory.is_free ? "free" : "allocate"},
                      {"tensor", static_cast<std::int64_t>(memory.tensor)},
                      {"category", name_of(memory.record.category)},
                      {"bytes", memory.record.bytes},
                      {"label", memory.record.label}});
}

JsonValue event_json(const IssuedEvent& event) {
  JsonValue json = std::visit([](const auto& one) { return event_json(one); }, event.what);
  if (std::holds_alternative<IssuedMemory>(event.what)) return json;
  json.set("stream", name_of(event.stream));
  json.set("time_s", event.time.value());
  if (!event.source.empty()) json.set("source", event.source);
  const bool waits = std::holds_alternative<IssuedWait>(event.what);
  if (event.call > 0) json.set(waits ? "waits_for" : "starts", event.call);
  return json;
}

JsonValue event_json(const EventDifference& one) {
  JsonValue json = json_object();
  if (one.first) json.set("first", event_json(*one.first));
  if (one.second) json.set("second", event_json(*one.second));
  return json;
}

// Returns a phase of a program, or the differences of a phase.
template <class Shown>
JsonValue phase_json(const Shown& phase) {
  return json_object(
      {{"phase", name_of(phase.phase)},
       {"events", json_array(phase.events, [](const auto& event) { return event_json(event); })}});
}

// Sets the keys that only parts with blocks have.
template <class Part>
void set_block(JsonValue& json, const Part& part) {
  if (part.part != ProgramPart::kBlock) return;
  json.set("block", part.block);
  json.set("recomputed", part.is_recomputed);
}

JsonValue program_json(const PartProgram& program) {
  JsonValue json = json_object({{"part", name_of(program.part)}, {"count", program.count}});
  set_block(json, program);
  json.set("phases", json_array(program.phases, phase_json<PhaseProgram>));
  return json;
}

JsonValue pass_json(const TimeAfterPass& time) {
  return json_object(
      {{"pass", time.pass}, {"first_s", time.first.value()}, {"second_s", time.second.value()}});
}

JsonValue part_difference_json(const PartDifference& part) {
  JsonValue json = json_object({{"part", name_of(part.part)}});
  set_block(json, part);
  if (!part.times.empty()) json.set("times", json_array(part.times, pass_json));
  json.set("phases", json_array(part.phases, phase_json<PhaseDifference>));
  return json;
}

JsonValue live_json(const LiveMemory& live) {
  return json_object({{"category", name_of(live.group.category)},
                      {"part", live.group.part},
                      {"label", live.group.label},
                      {"bytes", live.bytes}});
}

JsonValue peak_json(const PeakMemory& peak) {
  return json_object({{"stage", peak.stage},
                      {"task", name_of(peak.task.kind)},
                      {"chunk", peak.task.chunk},
                      {"micro_batch", peak.task.micro_batch},
                      {"live", json_array(peak.live, live_json)}});
}

JsonValue compared_bytes_json(const ComparedBytes& row) {
  return json_object({{"what", row.what},
                      {"measured_bytes", row.measured.value()},
                      {"predicted_bytes", row.predicted.value()}});
}

JsonValue site_json(const SiteMemory& site) {
  return json_object({{"site", site.site}, {"blocks", site.blocks}, {"bytes", site.bytes.value()}});
}

JsonValue snapshot_json(const ComparedSnapshot& measured) {
  return json_object({{"rank", measured.rank},
                      {"stage", measured.stage},
                      {"events", measured.peak.events},
                      {"missing_bytes", measured.peak.missing.value()},
                      {"start_up_bytes", measured.peak.start_up.value()},
                      {"compared", json_array(measured.rows, compared_bytes_json)},
                      {"live", json_array(measured.peak.live, site_json)}});
}

JsonValue part_json(const NamedScenario& named, StackPart part) {
  const PartRow& row = row_of(part);
  return json_object({{"name", row.key},
                      {"value", text_of(row, row.get(named.scenario.stack))},
                      {"asked_for", named.parts.contains(part)}});
}

JsonValue term_json(const Term& term, const TermText& text, const NamedScenario& named) {
  return json_object({{"name", name_of(term.kind)},
                      {"time_s", term.time.value()},
                      {"formula", text.formula},
                      {"inputs", text.inputs},
                      {"parts", json_array(parts_of(term.kind, named.scenario.stack),
                                           [&](StackPart part) { return part_json(named, part); })},
                      {"source", text.source}});
}

}  // namespace

JsonValue explain_report(const NamedScenario& named, const PlannedRun& run) {
  JsonValue json = report_head("tpsim-explain-report/1", named, gpu_count(run.plan));
  json.set("plan", run_json(run));
  const TermTexts texts = term_texts(named.scenario, run);
  json.set("terms", json_array(run.predicted.breakdown, [&](const Term& term) {
             return term_json(term, texts[static_cast<std::size_t>(term.kind)], named);
           }));
  add_assumed(json, named.assumed);
  return json;
}

JsonValue program_report(const NamedScenario& named, const PlannedRun& run,
                         const std::vector<PartProgram>& programs) {
  JsonValue json = report_head("tpsim-program-report/1", named, gpu_count(run.plan));
  json.set("plan", run_json(run));
  json.set("programs", json_array(programs, program_json));
  add_assumed(json, named.assumed);
  return json;
}

JsonValue memory_report(const NamedScenario& named, const PlannedRun& run,
                        const MemoryAnswer& answer) {
  JsonValue json = report_head("tpsim-memory-report/1", named, gpu_count(run.plan));
  json.set("plan", run_json(run));
  json.set("stages", json_array(answer.peaks, peak_json));
  if (answer.measured) json.set("measured", snapshot_json(*answer.measured));
  add_assumed(json, named.assumed);
  return json;
}

JsonValue pass_difference_report(const NamedScenario& named, const PlannedRun& run,
                                 const ComparedPasses& passes,
                                 const std::vector<PartDifference>& parts) {
  JsonValue json = report_head("tpsim-program-difference-report/1", named, gpu_count(run.plan));
  json.set("plan", run_json(run));
  json.set("passes", json_array(std::array{passes.first, passes.second}));
  json.set("parts", json_array(parts, part_difference_json));
  return json;
}

JsonValue program_difference_report(const NamedScenario& named, const PlannedRun& run,
                                    const SimulatedPlan& other,
                                    const std::vector<PartDifference>& parts) {
  JsonValue json = report_head("tpsim-program-difference-report/1", named, gpu_count(run.plan));
  json.set("plan", run_json(run));
  json.set("other", run_json(other.run));
  json.set("parts", json_array(parts, part_difference_json));
  return json;
}

}  // namespace tpsim::app
