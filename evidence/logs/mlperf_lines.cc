#include "evidence/logs/mlperf_lines.h"

#include <optional>
#include <string>

#include "core/json/json_document.h"
#include "evidence/logs/log_formats.h"

namespace tpsim {
namespace {

constexpr std::string_view kMark = ":::MLLOG";

std::optional<double> number_at(const JsonValue* object, std::string_view key) {
  const JsonValue* value = object == nullptr ? nullptr : object->find(key);
  if (value == nullptr) return std::nullopt;
  constexpr double kMost = 1e15;  // sums of larger values would overflow
  std::optional<double> number;
  if (const auto* whole_number = value->as<std::int64_t>()) {
    number = static_cast<double>(*whole_number);
  } else if (const auto* real = value->as<double>()) {
    number = *real;
  }
  return number && *number >= 0 && *number <= kMost ? number : std::nullopt;
}

// Numbers the steps in the order of their lines, because the step number counts sequences in some
// submissions.
void add_stats(const JsonValue* stats, TrainingLog& log) {
  LoggedStep step;
  step.iteration = next_step(log);
  step.is_counted = true;
  const auto time = number_at(stats, "train_step_time");
  const auto rate = number_at(stats, "throughput");
  if (time && *time >= kLeastRate) {
    step.time = Seconds(*time);
  } else if (rate && *rate >= kLeastRate) {
    step.samples_per_s = *rate;
  } else {
    return;
  }
  log.steps.push_back(step);
}

}  // namespace

bool read_mlperf_line(std::string_view line, TrainingLog& log, std::int64_t& batch) {
  const std::size_t mark = line.find(kMark);
  const std::size_t open = line.find('{', mark == std::string_view::npos ? 0 : mark);
  if (mark == std::string_view::npos || open == std::string_view::npos) return false;
  const std::size_t close = line.find_last_of('}');
  if (close == std::string_view::npos || close < open) return false;
  const Result<JsonValue> event = parse_json(line.substr(open, close - open + 1), "MLLOG");
  if (!event.ok()) return false;
  const JsonValue* key = event->find("key");
  const auto* name = key == nullptr ? nullptr : key->as<std::string>();
  if (name == nullptr) return true;
  if (*name == "tracked_stats") add_stats(event->find("value"), log);
  if (*name == "global_batch_size") {
    if (const auto stated = number_at(&*event, "value"); stated && *stated >= 1) {
      batch = whole(stated);
    }
  }
  return true;
}

}  // namespace tpsim
