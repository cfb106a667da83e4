#include "evidence/logs/log_reader.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "evidence/logs/log_bars.h"
#include "evidence/logs/log_formats.h"
#include "evidence/logs/log_layout.h"
#include "evidence/logs/log_metrics.h"

namespace tpsim {
namespace {

// Returns the number at the start of `text`, if it is finite and >= 0.
std::optional<double> number_in(std::string_view text) {
  const auto leading = leading_number(trimmed(text));
  // Larger values are ignored, because their sums would overflow.
  constexpr double kMost = 1e15;
  if (!leading || !(leading->value >= 0 && leading->value <= kMost)) return std::nullopt;
  return leading->value;
}

bool read_iteration(std::string_view line, TrainingLog& log) {
  const auto iteration = number_after(line, "iteration ");
  if (!iteration) return false;
  double unit = 1e-3;
  auto time = number_after(line, "elapsed time per iteration (ms):");
  if (!time) {
    time = number_after(line, "elapsed time per iteration (s):");
    unit = 1;
  }
  if (!time || *time <= 0) return false;
  log.program = LogProgram::kMegatron;
  const double batch = number_after(line, "global batch size:").value_or(0);
  log.steps.push_back({static_cast<std::int64_t>(std::min(*iteration, 1e15)),
                       static_cast<std::int64_t>(std::min(batch, 1e15)), Seconds(*time * unit)});
  // Also matches the losses per sequence and per global batch: "seq_load_balancing_loss:".
  const auto balancing = number_after(line, "load_balancing_loss:");
  if (balancing && *balancing >= 0) log.balancing_losses.push_back(*balancing);
  const auto z = number_after(line, " z_loss:");
  if (z && *z >= 0) log.z_losses.push_back(*z);
  return true;
}

void add_memory(TrainingLog& log, double rank, Bytes bytes) {
  Bytes& most = log.reserved[static_cast<std::int64_t>(std::min(rank, 1e9))];
  most = std::max(most, bytes);
}

bool read_memory(std::string_view line, TrainingLog& log) {
  const auto rank = number_after(line, "[Rank ");
  const auto reserved = number_after(line, "max reserved:");
  if (!rank || !reserved) return false;
  add_memory(log, *rank, Bytes(*reserved * kMiB));
  return true;
}

// Reads "    forward-compute ........: (1.00, 2.00)".
bool read_timer_range(std::string_view line, TrainingLog& log) {
  const std::size_t open = line.find(": (");
  const std::size_t comma = line.find(',', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || comma == std::string_view::npos) return false;
  const auto least = number_in(line.substr(open + 3));
  const auto most = number_in(line.substr(comma + 1));
  if (!least || !most || line.find(')', comma) == std::string_view::npos) return false;
  std::string_view name = trimmed(line.substr(0, open));
  name = trimmed(name.substr(0, name.find('.')));
  if (name.empty()) return false;
  log.timers[std::string(name)].push_back({Seconds(*least * 1e-3), Seconds(*most * 1e-3)});
  return true;
}

// Reads "time (ms) | forward-compute: 1.00 | optimizer: 2.00".
bool read_timer_row(std::string_view line, TrainingLog& log) {
  const std::size_t start = line.find("time (ms) |");
  if (start == std::string_view::npos) return false;
  std::string_view rest = line.substr(start + 11);
  while (!rest.empty()) {
    const std::string_view entry = cut_off(rest, "|");
    const std::size_t colon = entry.find(':');
    if (colon == std::string_view::npos) continue;
    if (const auto value = number_in(entry.substr(colon + 1))) {
      log.timers[std::string(trimmed(entry.substr(0, colon)))].push_back(
          {Seconds(*value * 1e-3), Seconds(*value * 1e-3)});
    }
  }
  return true;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (line = trimmed(line); !line.empty(); line = trimmed(line)) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

// Reads a row of `tpsim run`: step, loss, gradient norm, time with unit, two rates, memory with
// unit.
bool read_own(std::string_view line, TrainingLog& log) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() != 9 || words[3].data() + words[3].size() + 1 != words[4].data()) return false;
  const auto step = number_in(words[0]);
  const std::size_t time_length = words[3].size() + 1 + words[4].size();
  const std::size_t memory_length = words[7].size() + 1 + words[8].size();
  const Result<Seconds> time = parse_seconds({words[3].data(), time_length});
  if (words[7].data() + words[7].size() + 1 != words[8].data()) return false;
  const Result<Bytes> memory = parse_bytes({words[7].data(), memory_length});
  if (!step || !time.ok() || !memory.ok() || *time <= Seconds()) return false;
  log.steps.push_back({static_cast<std::int64_t>(std::min(*step, 1e15)), 0, *time});
  add_memory(log, 0, *memory);
  return true;
}

bool is_word(std::string_view text, std::size_t at) {
  return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at])) != 0;
}

// Whether the line has a NaN or infinite training loss: "lm loss: NAN", "loss:     nan", "'loss':
// nan", "loss=inf". Evaluation losses are excluded.
bool has_bad_loss(std::string_view line) {
  constexpr std::string_view kLoss = "loss";
  const std::string lower = in_lower_case(std::string(line));
  for (std::size_t at = lower.find(kLoss); at != std::string::npos;
       at = lower.find(kLoss, at + 1)) {
    const std::string_view before = std::string_view(lower).substr(0, at);
    const auto is_of = [&](std::string_view part) { return before.ends_with(part); };
    if (is_of("val_") || is_of("val ") || is_of("val/") || is_of("validation ")) continue;
    std::string_view rest = std::string_view(lower).substr(at + kLoss.size());
    if (rest.starts_with(" train:")) rest.remove_prefix(6);
    rest.remove_prefix(std::min(rest.find_first_not_of(" :='\"-"), rest.size()));
    if ((rest.starts_with("nan") || rest.starts_with("inf")) && !is_word(rest, 3)) return true;
  }
  return false;
}

// Whether a Megatron step line has no loss. Megatron omits the loss if it is NaN or the step was
// skipped.
bool leaves_out_loss(std::string_view line) {
  if (line.find("loss scale") == std::string_view::npos) return false;
  for (std::size_t at = line.find("loss"); at != std::string_view::npos;
       at = line.find("loss", at + 1)) {
    const bool is_routers =
        line.substr(0, at).ends_with("balancing_") || line.substr(0, at).ends_with("z_");
    if (!is_routers && !line.substr(at).starts_with("loss scale")) return false;
  }
  return true;
}

// Maximum number of iterations that one line may cover. Larger numbers are ignored, because their
// sums would overflow.
constexpr std::int64_t kMostToALine = 1'000'000;

// Counts lines with NaN or infinite losses, and skipped steps.
void read_soundness(std::string_view line, TrainingLog& log) {
  const auto skipped = number_after(line, "number of skipped iterations:");
  if (skipped) log.skipped += std::min(whole(skipped), kMostToALine);
  const bool is_nan = number_after(line, "number of nan iterations:").value_or(0) > 0;
  if (is_nan || has_bad_loss(line) || (skipped == 0.0 && leaves_out_loss(line))) ++log.nan_losses;
}

// Returns the global batch that a log states for all steps before the first one; 0 for other lines.
std::int64_t read_batch(std::string_view line) {
  constexpr std::string_view kTrainer = "Total train batch size";
  const std::size_t trainer = line.find(kTrainer);
  const std::string_view label = trainer == std::string_view::npos ? "global batch size " : "=";
  const std::string_view rest = trainer == std::string_view::npos ? line : line.substr(trainer);
  const std::size_t at = rest.find(label);
  if (at == std::string_view::npos) return 0;
  std::string_view number = rest.substr(at + label.size());
  number = number.substr(0, number.find(", "));  // drop the text after the number
  return whole(logged_count(number));
}

// State while reading the lines of one log.
struct LogReader {
  TrainingLog log;
  DrawnSteps drawn;
  MetricLines metrics;
  std::int64_t batch = 0;      // global batch of all steps; 0: not stated
  std::int64_t overflows = 0;  // overflow lines of DeepSpeed, one per skipped step

  void read_line(std::string_view line);
  void finish();
};

// Removes the last step if another rank has already printed the same step number.
void drop_again(std::vector<LoggedStep>& steps) {
  const LoggedStep& last = steps.back();
  const LoggedStep& before = steps[steps.size() - 2];
  const bool are_numbered = !last.is_counted && !before.is_counted;
  if (are_numbered && last.iteration == before.iteration) steps.pop_back();
}

void LogReader::read_line(std::string_view line) {
  read_soundness(line, log);
  read_logged_tflops(line, log);
  read_logged_memory(line, log);
  if (line.find("OVERFLOW! Rank 0 Skipping step") != std::string_view::npos) ++overflows;
  if (const std::int64_t stated = read_batch(line); stated > 0) batch = stated;
  if (read_mlperf_line(line, log, batch)) return;
  const std::size_t before = log.steps.size();
  if (read_layout(line, log) || read_own(line, log) || read_memory(line, log) ||
      read_timer_row(line, log)) {
    return;
  }
  const bool is_step = read_iteration(line, log) || read_foreign_step(line, log) ||
                       drawn.read_bar(line) || drawn.read_clock(line) || metrics.read(line, log);
  if (before > 0 && log.steps.size() > before) drop_again(log.steps);
  if (is_step) return;
  if (const auto step = summed_up_step(line)) log.summed_up = Seconds(*step);
  read_timer_range(line, log);
}

// Combines micro-batches to steps. The number of micro-batches per step is the ratio of the two
// counters, since the log may not print every micro-batch.
std::vector<LoggedStep> whole_steps(const std::vector<LoggedStep>& parts) {
  const LoggedStep& first = parts.front();
  const LoggedStep& last = parts.back();
  const bool moves = last.part_of > first.part_of && last.iteration > first.iteration;
  const auto iterations = static_cast<double>(last.iteration - (moves ? first.iteration : 0));
  const auto steps = static_cast<double>(last.part_of - (moves ? first.part_of : 0));
  const double count = std::max(1.0, std::round(iterations / std::max(1.0, steps)));
  std::vector<LoggedStep> whole;
  std::map<std::int64_t, std::pair<Seconds, int>> sums;
  for (const LoggedStep& part : parts) {
    auto& [time, logged] = sums[part.part_of];
    time += part.time;
    ++logged;
  }
  for (const auto& [step, sum] : sums) {
    whole.push_back({.iteration = step, .time = count / sum.second * sum.first});
  }
  return whole;
}

// Returns the number of iterations that the lines cover. A line covers the iterations since the
// previous line. The first line counts like the second.
std::int64_t iterations_of(const std::vector<LoggedStep>& steps) {
  std::int64_t sum = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::int64_t passed = steps[i].iteration - steps[i - 1].iteration;
    sum += (i == 1 ? 2 : 1) * std::clamp<std::int64_t>(passed, 1, kMostToALine);
  }
  return std::max<std::int64_t>(1, sum);
}

void LogReader::finish() {
  std::vector<LoggedStep>& steps = log.steps;
  const auto is_timed = [](const LoggedStep& step) { return step.time > Seconds(); };
  if (std::any_of(steps.begin(), steps.end(), is_timed)) {
    std::erase_if(steps, [&](const LoggedStep& step) { return !is_timed(step); });
  } else if (std::vector<LoggedStep> bar = drawn.steps(); !bar.empty()) {
    steps = std::move(bar);
  }
  // Steps without a step number ("Step Time : 14.3s") are dropped if other lines state step
  // numbers, because both describe the same steps.
  const auto is_counted = [](const LoggedStep& step) { return step.is_counted; };
  if (!std::all_of(steps.begin(), steps.end(), is_counted)) std::erase_if(steps, is_counted);
  if (steps.empty() && log.summed_up > Seconds()) steps.push_back({1, 0, log.summed_up});
  if (steps.empty()) return;
  if (steps.front().part_of >= 0) steps = whole_steps(steps);
  for (LoggedStep& step : steps) {
    if (step.global_batch == 0) step.global_batch = batch;
  }
  log.skipped = std::max(log.skipped, overflows);
  log.iterations = std::max(iterations_of(steps), static_cast<std::int64_t>(steps.size()));
}

}  // namespace

std::optional<double> logged_number(std::string_view text) { return number_in(text); }

std::optional<double> number_after(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  return number_in(line.substr(at + label.size()));
}

std::string without_escapes(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\033') {
      plain += text[i];
      continue;
    }
    // "ESC [ 38 ; 5 m" ends with its first letter, "ESC ] title BEL" with the bell character.
    const bool is_title = i + 1 < text.size() && text[i + 1] == ']';
    const bool is_sequence = i + 1 < text.size() && text[i + 1] == '[';
    i += is_title || is_sequence ? 2 : 1;
    const auto ends = [&](char letter) {
      return is_title ? letter == '\a' : !is_sequence || (letter >= '@' && letter <= '~');
    };
    while (i < text.size() && text[i] != '\n' && !ends(text[i])) ++i;
    if (i < text.size() && text[i] == '\n') plain += '\n';
  }
  return plain;
}

Result<TrainingLog> parse_training_log(std::string_view text, const std::string& file) {
  LogReader reader;
  while (!text.empty()) {
    // Progress bars separate their updates by "\r".
    const std::string_view line = cut_off(text, "\n\r");
    if (line.find('\033') == std::string_view::npos) {
      reader.read_line(line);
    } else {
      reader.read_line(without_escapes(line));
    }
  }
  reader.finish();
  if (reader.log.steps.empty()) {
    return bad_input(
        "contains no training step", file,
        "no line has a step time, tokens/s or sequences/s; docs/check-log.md lists the formats");
  }
  return std::move(reader.log);
}

}  // namespace tpsim
