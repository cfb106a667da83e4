#include "gui/views/breakdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/numbers.h"

namespace tpsim::gui {
namespace {

constexpr double kWorthARow = 0.002;  // share of the step

// Returns the minimum time of a term that gets its own row, if there are at most `most` rows.
Seconds least_time(const Prediction& predicted, std::size_t most) {
  std::vector<Seconds> times;
  for (const Term& term : predicted.breakdown) times.push_back(term.time);
  std::sort(times.rbegin(), times.rend());
  const Seconds worth = kWorthARow * predicted.step;
  const auto large = static_cast<std::size_t>(
      std::count_if(times.begin(), times.end(), [&](Seconds time) { return time >= worth; }));
  if (large == times.size() && large <= most) return times.back();
  if (large + 1 <= most) return worth;
  return most > 1 ? times[most - 2] : times.front();
}

}  // namespace

std::vector<BreakdownRow> breakdown_rows(const Prediction& predicted, std::size_t most) {
  std::vector<BreakdownRow> rows;
  if (predicted.breakdown.empty()) return rows;
  const Seconds least = least_time(predicted, most);
  BreakdownRow rest;
  Seconds largest, before;
  int count = 0;
  for (const Term& term : predicted.breakdown) {
    // A term that equals the minimum gets a row only while rows are left, else it is added to the
    // sum.
    if (term.time >= least && (rows.size() + 1 < most || term.time > least)) {
      rows.push_back({plain(name_of(term.kind)), before, term.time, class_of(term.kind), &term});
      before += term.time;
      continue;
    }
    ++count;
    rest.time += term.time;
    if (term.time.value() <= 0) continue;
    rest.terms += fmt::format("\n{}  {}", time_text(term.time), plain(name_of(term.kind)));
    if (term.time > largest) largest = term.time, rest.kind = class_of(term.kind);
  }
  if (count == 0) return rows;
  rest.name = fmt::format("{} smaller {}", count, count == 1 ? "term" : "terms");
  rest.before = before;
  rows.push_back(std::move(rest));
  return rows;
}

const Term* largest_communication(const Prediction& predicted) {
  const Term* largest = nullptr;
  for (const Term& term : predicted.breakdown) {
    if (class_of(term.kind) != TermClass::kCommunication || term.time.value() <= 0) continue;
    if (largest == nullptr || term.time > largest->time) largest = &term;
  }
  return largest;
}

double bubble_share(const Prediction& predicted) {
  return time_of(predicted, StepTerm::kBubble) / predicted.step;
}

}  // namespace tpsim::gui
