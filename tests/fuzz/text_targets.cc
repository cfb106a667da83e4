// Targets for text files: accepted input is written, and reads back as the same text.
#include "campaigns/assumptions.h"
#include "campaigns/batch_ramp.h"
#include "core/base/leading_number.h"
#include "core/base/units.h"
#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "core/machine/profile_json.h"
#include "core/model/expert_counts.h"
#include "core/model/model_json.h"
#include "core/scenario/plan_json.h"
#include "core/software/stack_json.h"
#include "evidence/runs/run_table.h"
#include "gui/views/saved_view.h"
#include "tests/fuzz/fuzz_target.h"

namespace tpsim::fuzz {
namespace {

constexpr const char* kFile = "input";

// A refused text gives an error message; an accepted text reads back.
template <class Parse, class Write>
void check_round_trip(std::string_view bytes, const Parse& parse, const Write& write) {
  const auto first = parse(bytes);
  if (!first.ok()) return demand(!first.error().message.empty(), "an error says what is wrong");
  const std::string text = write(*first);
  const auto second = parse(text);
  demand(second.ok(), "what is written is read");
  demand(write(*second) == text, "what is read back is the same");
}

template <class Q, class Parse>
void check_quantity(std::string_view text, const Parse& parse) {
  const Result<Q> value = parse(text);
  if (!value.ok()) return;
  demand(value->value() >= 0, "no quantity of a file is negative");
  const Result<Q> again = parse(to_exact_string(*value));
  demand(again.ok() && *again == *value, "an exact text reads back exactly");
  demand(!to_string(*value).empty(), "every quantity can be shown");
}

}  // namespace

void read_model(std::string_view bytes) {
  check_round_trip(
      bytes, [](auto text) { return parse_model(text, kFile); },
      [](const ModelSpec& model) { return to_json(model); });
}

void read_cluster(std::string_view bytes) {
  check_round_trip(
      bytes, [](auto text) { return parse_cluster(text, kFile); },
      [](const ClusterSpec& cluster) { return to_json(cluster); });
}

void read_stack(std::string_view bytes) {
  check_round_trip(
      bytes, [](auto text) { return parse_stack(text, kFile); },
      [](const StackSpec& stack) { return to_json(stack); });
}

void read_profile(std::string_view bytes) {
  check_round_trip(
      bytes, [](auto text) { return parse_profile(text, kFile); },
      [](const Profile& profile) { return to_json(profile); });
}

void read_plan_file(std::string_view bytes) {
  check_round_trip(
      bytes, [](auto text) { return parse_plan(text, kFile); },
      [](const PlanFile& file) { return to_json(file); });
}

void read_assumption_file(std::string_view bytes) {
  const auto read = parse_assumptions(bytes, kFile);
  if (!read.ok()) return;
  for (const AssumptionRow& row : assumption_rows()) {
    const double value = read->values[static_cast<std::size_t>(row.assumption)].value;
    demand(value >= row.least && value <= row.most, "an assumption lies in its range");
    const auto again = parse_assumption(row, assumption_text(row, value));
    demand(again.ok() && *again == value, "an assumption's text reads back");
  }
}

void read_json_text(std::string_view bytes) {
  check_round_trip(
      bytes, [](auto text) { return parse_json(text, kFile); },
      [](const JsonValue& value) { return to_text(value); });
}

void read_saved_view(std::string_view bytes) {
  const auto root = parse_json(bytes, kFile);
  if (!root.ok()) return;
  gui::AppState state;
  if (!gui::read_view(*root, kFile, state).ok()) return;
  const std::string text = to_text(gui::view_to_json(state, std::nullopt));
  gui::AppState again;
  demand(gui::read_view(*parse_json(text, kFile), kFile, again).ok(), "a written view is read");
}

void read_values(std::string_view bytes) {
  check_quantity<Bytes>(bytes, parse_bytes);
  check_quantity<Seconds>(bytes, parse_seconds);
  check_quantity<BytesPerSecond>(bytes, parse_bandwidth);
  check_quantity<FlopsPerSecond>(bytes, parse_flops_rate);
  for (const AssumptionRow& row : assumption_rows()) {
    const auto value = parse_assumption(row, bytes);
    if (value.ok()) demand(*value >= row.least && *value <= row.most, "a number in its range");
  }
  const auto counts = parse_expert_counts(bytes, 4, kFile);
  if (counts.ok()) demand(counts->size() % 4 == 0, "as many counts as experts");
  static_cast<void>(leading_number(bytes));
  static_cast<void>(parse_settings(bytes));
}

void read_run_table_text(std::string_view bytes) {
  const auto runs = parse_run_table(bytes, kFile);
  if (!runs.ok()) return;
  for (const PublishedRun& run : *runs) demand(run.line > 0, "a row knows its line");
}

}  // namespace tpsim::fuzz
