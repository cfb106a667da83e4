#include "gui/views/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/numbers.h"
#include "core/plan/plan_settings.h"

namespace tpsim::gui {
std::vector<TermDifference> largest_differences(const Prediction& a, const Prediction& b,
                                                std::size_t most) {
  const auto size = [](const TermDifference& term) { return std::abs(term.difference().value()); };
  std::vector<TermDifference> terms = term_differences(a, b);
  std::stable_sort(terms.begin(), terms.end(),
                   [&](const auto& x, const auto& y) { return size(x) > size(y); });
  std::size_t kept = 0;
  while (kept < terms.size() && size(terms[kept]) >= 1e-3 * a.step.value()) ++kept;
  if (kept + 1 > most) kept = std::max<std::size_t>(most, 1) - 1;
  TermDifference rest;
  std::size_t count = 0;
  for (std::size_t i = kept; i < terms.size(); ++i) {
    if (size(terms[i]) <= 0) continue;
    rest.best += terms[i].best;
    rest.other += terms[i].other;
    ++count;
  }
  terms.resize(kept);
  if (count == 0) return terms;
  rest.name = fmt::format("{} smaller {}", count, count == 1 ? "term" : "terms");
  terms.push_back(std::move(rest));
  return terms;
}

std::string summary_of(const PlanView& a, const PlanView& b) {
  const Seconds difference = b.predicted.step - a.predicted.step;
  const bool ties =
      b.predicted.step <= a.predicted.step_high && b.predicted.step >= a.predicted.step_low;
  const Bytes memory = b.predicted.peak - a.predicted.peak;
  return fmt::format(
      "B is {} {}{}; {} GiB {} memory", time_text(Seconds(std::abs(difference.value()))),
      difference.value() < 0 ? "faster" : "slower", ties ? ", within A's interval" : "",
      gib_text(Bytes(std::abs(memory.value()))), memory.value() < 0 ? "less" : "more");
}

std::string settings_difference(const Plan& a, const Plan& b) {
  std::string text;
  for (const SettingRow& row : setting_rows()) {
    if (row.counts_for != nullptr) continue;  // part of another setting's text
    const std::string left = text_of(a, row.setting), right = text_of(b, row.setting);
    if (left == right) continue;
    text += fmt::format("{}{} {} → {}", text.empty() ? "A → B: " : ", ", row.title, left, right);
  }
  return text.empty() ? "A and B are the same plan" : text;
}

}  // namespace tpsim::gui
