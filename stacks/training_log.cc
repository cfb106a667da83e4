#include "stacks/training_log.h"

#include <algorithm>
#include <optional>

#include "core/leading_number.h"
#include "core/text.h"
#include "stacks/log_formats.h"

namespace tpsim {
namespace {

// The number that `text` starts with, if it is finite and not negative.
std::optional<double> number_in(std::string_view text) {
  const auto leading = leading_number(trimmed(text));
  // More than any clock or memory counts is garbage, and sums of it would leave the numbers.
  constexpr double kMost = 1e15;
  if (!leading || !(leading->value >= 0 && leading->value <= kMost)) return std::nullopt;
  return leading->value;
}

}  // namespace

std::optional<double> logged_number(std::string_view text) { return number_in(text); }

std::optional<double> number_after(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  return number_in(line.substr(at + label.size()));
}

namespace {

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
  const double batch = number_after(line, "global batch size:").value_or(0);
  log.steps.push_back({static_cast<std::int64_t>(std::min(*iteration, 1e15)),
                       static_cast<std::int64_t>(std::min(batch, 1e15)), Seconds(*time * unit)});
  // Also those of sequences and of the global batch: "seq_load_balancing_loss:".
  const auto balancing = number_after(line, "load_balancing_loss:");
  if (balancing && *balancing >= 0) log.balancing_losses.push_back(*balancing);
  const auto z = number_after(line, " z_loss:");
  if (z && *z >= 0) log.z_losses.push_back(*z);
  return true;
}

// "using world size: 384, data-parallel-size: 8, tensor-model-parallel size: 4, ..."; BigScience's
// fork writes one more dash.
bool read_layout(std::string_view line, TrainingLog& log) {
  const auto gpus = number_after(line, "using world size:");
  if (!gpus) return false;
  const auto whole = [&](std::string_view label) {
    return static_cast<std::int64_t>(number_after(line, label).value_or(0));
  };
  log.layout.gpus = static_cast<std::int64_t>(*gpus);
  log.layout.dp = std::max(whole("data-parallel size:"), whole("data-parallel-size:"));
  log.layout.tp = whole("tensor-model-parallel size:");
  log.layout.pp = whole("pipeline-model-parallel size:");
  // Its first number: "hierarchical context-parallel sizes:" is another label.
  log.layout.cp = whole("context-parallel size:");
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

// "    forward-compute ........: (1.00, 2.00)"
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

// "time (ms) | forward-compute: 1.00 | optimizer: 2.00"
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

// A row of `tpsim run`: step, loss, gradient norm, time and its unit, two rates, memory and its
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

// Without the colours of a terminal.
std::string uncoloured(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\033') {
      plain += line[i];
      continue;
    }
    while (i < line.size() && line[i] != 'm') ++i;
  }
  return plain;
}

// Losses that are no numbers, and steps that changed nothing.
void read_soundness(std::string_view line, TrainingLog& log) {
  for (const std::string_view label : {"loss: nan", "loss: NaN", "'loss': nan", "loss nan"}) {
    if (line.find(label) == std::string_view::npos) continue;
    ++log.nan_losses;
    break;
  }
  const auto skipped = number_after(line, "number of skipped iterations:");
  if (skipped && *skipped > 0) ++log.skipped;
}

void read_line(std::string_view line, TrainingLog& log) {
  read_soundness(line, log);
  read_logged_tflops(line, log);
  if (read_layout(line, log) || read_own(line, log) || read_memory(line, log) ||
      read_timer_row(line, log) || read_iteration(line, log)) {
    return;
  }
  if (read_foreign_step(line, log)) return;
  if (const auto step = summed_up_step(line)) log.summed_up = Seconds(*step);
  read_timer_range(line, log);
}

}  // namespace

Result<TrainingLog> parse_training_log(std::string_view text, const std::string& file) {
  TrainingLog log;
  while (!text.empty()) {
    // Bars are drawn anew on one line.
    const std::string_view line = cut_off(text, "\n\r");
    if (line.find('\033') == std::string_view::npos) {
      read_line(line, log);
    } else {
      read_line(uncoloured(line), log);
    }
  }
  if (log.steps.empty() && log.summed_up > Seconds()) log.steps.push_back({1, 0, log.summed_up});
  if (log.steps.empty()) {
    return bad_input(
        "holds no training step", file,
        "logs of Megatron-LM, Megatron-DeepSpeed, NeMo, torchtitan, nanotron, Trainer and "
        "tpsim are read");
  }
  return log;
}

}  // namespace tpsim
