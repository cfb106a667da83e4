#include "evidence/logs/log_bars.h"

#include <algorithm>
#include <cctype>

#include "evidence/logs/log_formats.h"

namespace tpsim {
namespace {

// Parses "1:02:03", "2:03", "1 day, 2:03:04" and "1h 2m 3s", up to the first of `ends`.
Seconds clock_time(std::string_view text, std::string_view ends) {
  text = text.substr(0, text.find_first_of(ends));
  double total = 0;
  double colons = 0;
  while (!text.empty()) {
    text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    const double number = logged_number(text.substr(0, end)).value_or(0);
    text.remove_prefix(end);
    if (text.starts_with(':')) {
      colons = (colons + number) * 60;
      continue;
    }
    const std::size_t unit = text.find_first_not_of(' ');
    switch (unit == std::string_view::npos ? ' ' : text[unit]) {
      case 'd': total += 86400 * number; break;
      case 'h': total += 3600 * number; break;
      case 'm': total += 60 * number; break;
      default: total += colons + number; colons = 0;
    }
  }
  return Seconds(total);
}

}  // namespace

bool DrawnSteps::read_bar(std::string_view line) {
  const std::size_t slow = line.find("s/it");
  const std::size_t fast = line.find("it/s");
  const std::size_t end = std::min(slow, fast);
  const std::size_t open = line.rfind('[', end);
  if (end == std::string_view::npos || open == std::string_view::npos) return false;
  const std::size_t start = line.find_last_of(", ", end - 1);
  const auto rate = logged_number(line.substr(start == std::string_view::npos ? 0 : start + 1));
  const std::size_t slash = line.rfind('/', open);
  if (!rate || *rate < kLeastRate || slash == std::string_view::npos) return false;
  std::size_t digit = slash;
  while (digit > 0 && std::isdigit(static_cast<unsigned char>(line[digit - 1])) != 0) --digit;
  const std::int64_t step = whole(logged_number(line.substr(digit, slash - digit)));
  Bar& bar = bars_[whole(logged_number(line.substr(slash + 1)))];
  bar.elapsed = std::max(bar.elapsed, clock_time(line.substr(open + 1), "<,]"));
  if (bar.steps.empty() || bar.steps.back().iteration != step) {
    bar.steps.push_back({.iteration = step, .time = Seconds(end == slow ? *rate : 1 / *rate)});
  }
  return true;
}

bool DrawnSteps::read_clock(std::string_view line) {
  constexpr std::string_view kElapsed = "elapsed_time";
  const std::size_t elapsed = line.find(kElapsed);
  if (elapsed == std::string_view::npos) return false;
  for (const std::string_view label : {"global_step/max_steps", "current_steps"}) {
    const std::size_t at = line.find(label);
    if (at == std::string_view::npos) continue;
    std::string_view number = line.substr(at + label.size());
    number.remove_prefix(std::min(number.find_first_of("0123456789"), number.size()));
    const auto step = logged_number(number);
    std::string_view time = line.substr(elapsed + kElapsed.size());
    time.remove_prefix(std::min(time.find_first_of("0123456789"), time.size()));
    if (!step || time.empty()) return false;
    clock_.emplace_back(whole(step), clock_time(time, "'\"}"));
    return true;
  }
  return false;
}

std::vector<LoggedStep> DrawnSteps::steps() const {
  const auto longest = std::max_element(
      bars_.begin(), bars_.end(),
      [](const auto& a, const auto& b) { return a.second.elapsed < b.second.elapsed; });
  if (longest != bars_.end()) return longest->second.steps;
  std::vector<LoggedStep> steps;
  for (std::size_t i = 1; i < clock_.size(); ++i) {
    const auto passed = static_cast<double>(clock_[i].first - clock_[i - 1].first);
    const Seconds time = clock_[i].second - clock_[i - 1].second;
    if (passed <= 0 || time <= Seconds()) continue;  // the job was restarted
    steps.push_back({.iteration = clock_[i].first, .time = time / passed});
  }
  return steps;
}

}  // namespace tpsim
