#include "evidence/logs/log_formats.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "core/base/text.h"

namespace tpsim {
namespace {

bool has_label(std::string_view line, std::string_view label) {
  return line.find(label) != std::string_view::npos;
}

std::optional<double> count_after(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  return logged_count(line.substr(at + label.size()));
}

void add_step(TrainingLog& log, std::int64_t step, std::int64_t batch, double seconds) {
  log.steps.push_back({.iteration = step, .global_batch = batch, .time = Seconds(seconds)});
}

// Adds a step of a program that prints a rate instead of a time. Returns false without a rate.
bool add_rate(TrainingLog& log, std::int64_t step, double LoggedStep::*kind,
              std::optional<double> rate) {
  if (!rate || *rate < kLeastRate) return false;
  LoggedStep one;
  one.iteration = step;
  one.*kind = *rate;
  log.steps.push_back(one);
  return true;
}

// Returns the number after the first of `labels` that is followed by one.
std::optional<double> number_after_any(std::string_view line,
                                       std::initializer_list<std::string_view> labels) {
  for (const std::string_view label : labels) {
    if (const auto number = number_after(line, label)) return number;
  }
  return std::nullopt;
}

// Reads NeMo's log lines, and the progress bar of older releases: "train_step_timing in s=5.32".
bool read_nemo_step(std::string_view line, TrainingLog& log) {
  const auto time = number_after_any(line, {"train_step_timing in s:", "train_step_timing in s="});
  if (!time || *time <= 0) return false;
  const auto step = number_after_any(line, {"global_step:", "global_step="});
  log.program = LogProgram::kNemo;
  add_step(log, step ? whole(step) : next_step(log),
           whole(number_after(line, "global_batch_size:")), *time);
  return true;
}

// Reads a torchtitan step with its tokens per second and GPU. The label is "tps", and was "wps"
// before 2025.
bool read_titan_step(std::string_view line, TrainingLog& log) {
  const auto step = number_after(line, "step:");
  auto rate = count_after(line, " tps:");
  if (!rate) rate = count_after(line, " wps:");
  if (!step || !rate || *rate < kLeastRate) return false;
  LoggedStep one;
  one.iteration = whole(step);
  one.tokens_per_s_gpu = *rate;
  log.steps.push_back(one);
  log.program = LogProgram::kTorchTitan;
  if (const auto memory = number_after(line, "memory:"); memory && has_label(line, "GiB")) {
    Bytes& most = log.reserved[0];
    most = std::max(most, Bytes(*memory * kGiB));
  }
  return true;
}

bool read_nanotron_step(std::string_view line, TrainingLog& log) {
  const auto time = count_after(line, "elapsed_time_per_iteration_ms:");
  if (!time || *time <= 0) return false;
  add_step(log, whole(count_after(line, "iteration:")),
           whole(count_after(line, "global_batch_size:")), *time * 1e-3);
  return true;
}

// Returns the seconds after a label: "dt: 820.1ms". Returns nothing if the unit is missing. The
// label must start a word: "train_time:" does not match "time:".
std::optional<double> time_after(std::string_view line, std::string_view label) {
  std::size_t at = line.find(label);
  const auto is_inside = [&] {
    const char before = at > 0 ? line[at - 1] : ' ';
    return std::isalnum(static_cast<unsigned char>(before)) != 0 || before == '_';
  };
  while (at != std::string_view::npos && is_inside()) at = line.find(label, at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = trimmed(line.substr(at + label.size()));
  const auto number = logged_number(rest);
  if (!number) return std::nullopt;
  const std::size_t unit = rest.find_first_not_of("0123456789.eE+-");
  const std::string_view word = trimmed(rest.substr(std::min(unit, rest.size())));
  if (word.starts_with("ms")) return *number * 1e-3;
  if (word.starts_with("s")) return *number;
  return std::nullopt;
}

// Reads NeMo Automodel: "step 9 | ... | tps 11278.56(1409.82/gpu) |". The first rate is that of all
// GPUs.
bool read_rate_of_all(std::string_view line, std::int64_t step, TrainingLog& log) {
  return has_label(line, "/gpu)") &&
         add_rate(log, step, &LoggedStep::tokens_per_s, count_after(line, "| tps "));
}

// Reads DeepSpeed's pipeline engine: "steps: 10 loss: 6.5 iter time (s): 2.341 samples/sec: 437.3".
bool read_engine_step(std::string_view line, TrainingLog& log) {
  const auto time = number_after(line, "iter time (s):");
  const auto step = number_after(line, "steps:");
  if (!time || *time <= 0 || !step) return false;
  add_step(log, whole(step), 0, *time);
  return true;
}

// Reads LitGPT's micro-batches: "iter 77 step 39: ..., iter time: 214.40ms (optimizer.step)".
bool read_micro_batch(std::string_view line, TrainingLog& log) {
  const auto iter = number_after(line, "iter ");
  const auto step = number_after(line, "step ");
  const auto time = time_after(line, "iter time:");
  if (!iter || !step || !time || *time <= 0) return false;
  add_step(log, whole(iter), 0, *time);
  log.steps.back().part_of = whole(step);
  return true;
}

bool read_plain_step(std::string_view line, TrainingLog& log) {
  const auto step = number_after_any(line, {"step ", "iter ", "step:", "Step "});
  if (!step) return false;
  for (const char* label : {"iter time:", "step_avg:", "time:", "time ", "dt:", "dt ", "time="}) {
    const auto time = time_after(line, label);
    if (!time || *time <= 0) continue;
    add_step(log, whole(step), 0, *time);
    return true;
  }
  if (read_rate_of_all(line, whole(step), log)) return true;
  for (const char* unit : {" tok/s", " tokens/s", " tokens/sec"}) {
    const std::size_t at = line.find(unit);
    if (at == std::string_view::npos) continue;
    const std::size_t start = line.find_last_of(" |", at - 1);
    const auto rate = count_after(line.substr(start == std::string_view::npos ? 0 : start + 1), "");
    if (add_rate(log, whole(step), &LoggedStep::tokens_per_s, rate)) return true;
  }
  return false;
}

// Reads the training time of a reinforcement-learning step and skips the time to generate samples.
// verl: "step:10 - ... - timing_s/update_actor:12.3 - timing_s/step:52.1". slime: "perf 10:
// {'perf/actor_train_time': 3.9, ...}".
bool read_rl_step(std::string_view line, TrainingLog& log) {
  for (const char* label : {"timing_s/update_actor:", "perf/actor_train_time':"}) {
    const auto time = number_after(line, label);
    if (!time || *time <= 0) continue;
    const auto step = number_after_any(line, {"step:", "perf "});
    add_step(log, step ? whole(step) : next_step(log), 0, *time);
    log.training_part = std::string(label).substr(0, std::string_view(label).find_first_of(":'"));
    return true;
  }
  return false;
}

// Reads MaxText: "completed step: 10, seconds: 1.234, ..."; and fms-fsdp: "current step time:
// 5.31".
bool read_seconds(std::string_view line, TrainingLog& log) {
  const bool is_maxtext = has_label(line, "completed step:");
  const auto time = number_after(line, is_maxtext ? "seconds:" : "current step time:");
  if (!time || *time <= 0) return false;
  add_step(log, is_maxtext ? whole(number_after(line, "completed step:")) : next_step(log), 0,
           *time);
  return true;
}

}  // namespace

std::optional<double> logged_count(std::string_view text) {
  text = trimmed(text);
  std::string digits;
  std::size_t length = 0;
  while (length < text.size() && (std::isdigit(static_cast<unsigned char>(text[length])) != 0 ||
                                  text[length] == '.' || text[length] == ',')) {
    if (text[length] != ',') digits += text[length];
    ++length;
  }
  const auto number = logged_number(digits);
  if (!number) return std::nullopt;
  const char unit = length < text.size() ? text[length] : ' ';
  const double factor = unit == 'K' || unit == 'k'   ? 1e3
                        : unit == 'M'                ? 1e6
                        : unit == 'B' || unit == 'G' ? 1e9
                                                     : 1;
  return *number * factor;
}

std::int64_t next_step(const TrainingLog& log) {
  return log.steps.empty() ? 1 : log.steps.back().iteration + 1;
}

std::int64_t whole(std::optional<double> number) {
  return static_cast<std::int64_t>(std::min(number.value_or(0), 1e15));
}

bool read_mlperf_line(std::string_view line, TrainingLog& log, std::int64_t& batch) {
  const std::size_t mark = line.find(":::MLLOG");
  if (mark == std::string_view::npos) return false;
  line.remove_prefix(mark);
  constexpr std::string_view kKey = "\"key\":";
  const std::size_t at = line.find(kKey);
  if (at == std::string_view::npos) return false;
  const std::string_view key = trimmed(line.substr(at + kKey.size()));
  if (key.starts_with("\"global_batch_size\"")) {
    const auto stated = number_after(line, "\"value\":");
    if (stated && *stated >= 1) batch = whole(stated);
  }
  if (!key.starts_with("\"tracked_stats\"")) return true;
  // The step number counts sequences in some submissions.
  LoggedStep step;
  step.iteration = next_step(log);
  step.is_counted = true;
  step.time = Seconds(number_after(line, "\"train_step_time\":").value_or(0));
  if (step.time.value() < kLeastRate) {
    step.time = Seconds();
    step.samples_per_s = number_after(line, "\"throughput\":").value_or(0);
    if (step.samples_per_s < kLeastRate) return true;
  }
  log.steps.push_back(step);
  return true;
}

bool read_foreign_step(std::string_view line, TrainingLog& log) {
  return read_rl_step(line, log) || read_nemo_step(line, log) || read_nanotron_step(line, log) ||
         read_engine_step(line, log) || read_seconds(line, log) || read_titan_step(line, log) ||
         read_micro_batch(line, log) || read_plain_step(line, log);
}

// Returns the mean step time from {'train_runtime': 812.4, ..., 'train_steps_per_second': 0.123},
// also quoted as '0.123', or from trainer_state.json.
std::optional<double> summed_up_step(std::string_view line) {
  constexpr std::string_view kKey = "train_steps_per_second";
  const std::size_t at = line.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = line.substr(at + kKey.size());
  rest.remove_prefix(std::min(rest.find_first_of("0123456789"), rest.size()));
  const auto rate = logged_number(rest);
  if (!rate || *rate < kLeastRate) return std::nullopt;
  return 1 / *rate;
}

void read_logged_memory(std::string_view line, TrainingLog& log) {
  // ms-swift, verl, torchtune, axolotl, and NeMo, which prints bytes.
  constexpr std::pair<std::string_view, double> kReserved[] = {
      {"memory(GiB)':", kGiB},
      {"\"memory(GiB)\":", kGiB},
      {"perf/max_memory_reserved_gb:", kGiB},
      {"peak_memory_reserved:", kGiB},
      {"memory/device_mem_reserved(gib)':", kGiB},
      {"memory/device_reserved (GiB)':", kGiB},
      {"max_memory_reserved:", 1}};
  for (const auto& [label, unit] : kReserved) {
    const auto reserved = number_after(line, label);
    if (!reserved || *reserved <= 0) continue;
    Bytes& most = log.reserved[0];
    most = std::max(most, Bytes(*reserved * unit));
    return;
  }
}

void read_logged_tflops(std::string_view line, TrainingLog& log) {
  for (const char* label :
       {"throughput per GPU (TFLOP/s/GPU):", "TFLOPs:", "tflops:", "model_tflops_per_gpu:",
        "GPU utilization:", "TFLOP/s/device:", "approx flops per GPU:"}) {
    const auto rate = number_after(line, label);
    if (!rate || *rate <= 0) continue;
    log.tflops.push_back(*rate);
    return;
  }
}

}  // namespace tpsim
