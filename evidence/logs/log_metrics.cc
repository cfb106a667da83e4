#include "evidence/logs/log_metrics.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

#include "core/base/text.h"
#include "evidence/logs/log_formats.h"

namespace tpsim {
namespace {

enum class Metric : std::uint8_t { kStepNumber, kStepTime, kRateOfGpu, kRate, kSamples };

// Names in lower case, with one '_' for each run of other characters. Times are in seconds, unless
// a unit follows the number or the name ends with a unit.
struct MetricNames {
  Metric metric;
  std::string_view names;  // separated by spaces
};
constexpr MetricNames kNames[] = {
    {Metric::kStepNumber, "step iter iteration global_step current_steps"},
    {Metric::kStepTime,
     "step_time iter_time iteration_time time_per_step time_per_iter time_per_iteration time_step "
     "seconds_per_step sec_per_step train_step_timing time_metrics_end_to_end perf_time_per_step"},
    // The first is InternEvo's, "throughput_tps" torchtitan's.
    {Metric::kRateOfGpu,
     "tgs_tokens_gpu_second throughput_device_tokens_per_second throughput_device_tokens_per_sec "
     "throughput_device_tps throughput_tps tokens_train_per_sec_per_gpu tokens_per_second_per_gpu "
     "tokens_per_sec_per_gpu tokens_per_gpu_per_second tokens_s_gpu tokens_s_device tokens_sec_gpu "
     "tokens_gpu_sec tok_s_gpu tps_per_gpu"},
    {Metric::kRate,
     "tokens_per_second tokens_per_sec tokens_per_s tokens_second tokens_sec tokens_s tok_sec "
     "tok_s"},
    // DeepSpeed's own timer, over all GPUs; the second is its name in 2021.
    {Metric::kSamples, "currsamplespersec samplespersec"},
};

// Returns "throughput_device_tokens_per_sec" for "Train throughput/device/tokens_per_sec".
std::string plain_name(std::string_view text) {
  std::string name;
  for (const char letter : text) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  if (name.ends_with('_')) name.pop_back();
  constexpr std::string_view kTrain = "train_";
  const bool is_own = name.starts_with("train_step_timing");
  return name.starts_with(kTrain) && !is_own ? name.substr(kTrain.size()) : name;
}

std::optional<Metric> metric_named(std::string_view name) {
  const auto* row = std::find_if(std::begin(kNames), std::end(kNames), [&](const MetricNames& one) {
    return matches_any(name, one.names);
  });
  return row == std::end(kNames) ? std::nullopt : std::optional(row->metric);
}

struct NamedMetric {
  Metric metric;
  double factor = 1;  // converts a time to seconds
};

std::optional<NamedMetric> metric_of(std::string_view text) {
  const std::string name = plain_name(text);
  if (const auto metric = metric_named(name)) return NamedMetric{*metric};
  struct Unit {
    std::string_view end;
    double factor;
  };
  for (const auto& [end, factor] :
       {Unit{"_in_s", 1}, Unit{"_s", 1}, Unit{"_sec", 1}, Unit{"_seconds", 1}, Unit{"_ms", 1e-3}}) {
    if (!name.ends_with(end)) continue;
    const auto metric = metric_named(std::string_view(name).substr(0, name.size() - end.size()));
    if (metric == Metric::kStepTime) return NamedMetric{*metric, factor};
  }
  return std::nullopt;
}

// Metrics of one step that a line states. The first number of each kind counts.
struct Said {
  std::optional<double> step, time, rate_of_gpu, rate, samples;

  void add(const NamedMetric& named, double value) {
    std::optional<double>& place = named.metric == Metric::kStepNumber  ? step
                                   : named.metric == Metric::kStepTime  ? time
                                   : named.metric == Metric::kRateOfGpu ? rate_of_gpu
                                   : named.metric == Metric::kRate      ? rate
                                                                        : samples;
    if (!place) place = value * named.factor;
  }
};

// Adds the step. A step time is preferred to a rate, and a rate per GPU to a total rate.
bool add_said(const Said& said, TrainingLog& log) {
  LoggedStep one;
  const auto is_some = [](const std::optional<double>& number) {
    return number && *number >= kLeastRate;
  };
  if (is_some(said.time)) {
    one.time = Seconds(*said.time);
  } else if (is_some(said.rate_of_gpu)) {
    one.tokens_per_s_gpu = *said.rate_of_gpu;
  } else if (is_some(said.rate)) {
    one.tokens_per_s = *said.rate;
  } else if (is_some(said.samples)) {
    one.samples_per_s = *said.samples;
  } else {
    return false;
  }
  one.is_counted = !said.step;
  one.iteration = said.step ? whole(said.step) : next_step(log);
  log.steps.push_back(one);
  return true;
}

bool is_digit(std::string_view line, std::size_t at) {
  return at < line.size() && std::isdigit(static_cast<unsigned char>(line[at])) != 0;
}

// Returns the end of the number whose first digit is at `at`: "6,210", "1.5e-05".
std::size_t end_of_number(std::string_view line, std::size_t at) {
  while (at < line.size()) {
    const bool goes_on =
        is_digit(line, at) || line[at] == '.' || (line[at] == ',' && is_digit(line, at + 1));
    const bool is_power = (line[at] == 'e' || line[at] == 'E') &&
                          (is_digit(line, at + 1) ||
                           (at + 1 < line.size() && (line[at + 1] == '-' || line[at + 1] == '+') &&
                            is_digit(line, at + 2)));
    if (!goes_on && !is_power) break;
    at += is_power ? 2 : 1;
  }
  return at;
}

// Returns the metric that the text before a number names. A step number may follow other text:
// "INFO:root:step=" and "INFO step ".
std::optional<NamedMetric> named_before(std::string_view text) {
  if (const auto named = metric_of(text)) return named;
  text = text.substr(0, text.find_last_not_of(" =:") + 1);
  const auto last = metric_named(plain_name(text.substr(text.find_last_of(" :") + 1)));
  return last == Metric::kStepNumber ? std::optional(NamedMetric{*last}) : std::nullopt;
}

struct NumberUnit {
  double factor = 1;
  std::size_t length = 0;  // including the blanks before it
};

// Returns the unit after a number as a factor: "ms" and "sec" for a time, "K" for a rate.
NumberUnit unit_at(std::string_view rest) {
  const std::size_t blanks = rest.starts_with(' ') ? 1 : 0;
  std::size_t end = blanks;
  while (end < rest.size() && std::isalpha(static_cast<unsigned char>(rest[end])) != 0) ++end;
  const std::string_view word = rest.substr(blanks, end - blanks);
  if (word == "ms") return {1e-3, end};
  for (const std::string_view seconds : {"s", "sec", "secs", "seconds"}) {
    if (word == seconds) return {1, end};
  }
  if (blanks == 0 && (word == "K" || word == "k")) return {1e3, end};
  if (blanks == 0 && word == "M") return {1e6, end};
  return {};
}

// Reads every number of a line with the name before it.
Said said_in(std::string_view line) {
  Said said;
  std::size_t name_start = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '|' || line[at] == ',' || line[at] == ';') name_start = at + 1;
    const char before = at > 0 ? line[at - 1] : ' ';
    const bool is_inside = std::isalnum(static_cast<unsigned char>(before)) != 0 || before == '_';
    if (!is_digit(line, at) || is_inside) continue;
    const std::size_t end = end_of_number(line, at);
    const auto number = logged_count(line.substr(at, end - at));
    const NumberUnit unit = unit_at(line.substr(end));
    const auto named = named_before(line.substr(name_start, at - name_start));
    if (named && number) said.add(*named, *number * unit.factor);
    name_start = end + unit.length;
    at = std::max(at, name_start - 1);
  }
  return said;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view cell = trimmed(line.substr(0, comma));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
      cell = cell.substr(1, cell.size() - 2);
    }
    cells.push_back(cell);
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

bool MetricLines::read_header(std::string_view line) {
  if (line.find(',') == std::string_view::npos) return false;
  bool has_metric = false;
  std::vector<std::string> columns;
  for (const std::string_view cell : cells_of(line)) {
    if (cell.empty() || cell.find_first_of(":={}[]|") != std::string_view::npos) return false;
    if (logged_number(cell)) return false;
    const auto named = metric_of(cell);
    has_metric = has_metric || (named && named->metric != Metric::kStepNumber);
    columns.emplace_back(cell);
  }
  if (!has_metric) return false;
  columns_ = std::move(columns);
  return true;
}

bool MetricLines::read_row(std::string_view line, TrainingLog& log) const {
  if (columns_.empty()) return false;  // the case of most lines
  const std::vector<std::string_view> cells = cells_of(line);
  if (cells.size() != columns_.size()) return false;
  Said said;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto number = logged_number(cells[i]);
    const auto named = metric_of(columns_[i]);
    if (named && number) said.add(*named, *number);
    if (plain_name(columns_[i]).ends_with("loss") &&
        in_lower_case(std::string(cells[i])) == "nan") {
      ++log.nan_losses;
    }
  }
  return add_said(said, log);
}

bool MetricLines::read(std::string_view line, TrainingLog& log) {
  return read_row(line, log) || read_header(line) || add_said(said_in(line), log);
}

}  // namespace tpsim
