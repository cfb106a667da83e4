// Reads training logs. Formats are detected line by line:
//
// - Megatron-LM and Megatron-Bridge:
//     " iteration 10/ 500 | ... elapsed time per iteration (ms): 12936.1 | ..."
//   and with experts "... | load_balancing_loss: 1.012E+00 | z_loss: 2.3E-01 | ..."
// - Megatron-DeepSpeed:
//     "iteration 10/ 500 | ... elapsed time per iteration (s): 105.2 | ... TFLOPs: 150.0 |"
// - NeMo: "... | global_step: 5 | ... | train_step_timing in s: 6.32 | ..."
// - torchtitan: "step: 10  loss: 4.2  memory: 34.2GiB(43.1%)  tps: 6,210  tflops: 310.2  mfu: 31 %"
// - nanotron: "iteration: 10 / 100 | ... | elapsed_time_per_iteration_ms: 1.23K | ..."
// - Hugging Face's Trainer: the longest progress bar, " 10/100 [01:20<12:00, 8.01s/it]"
// - ms-swift, LLaMA-Factory: 'elapsed_time' with 'global_step/max_steps' or "current_steps"
// - verl and slime, whose steps train and generate: "timing_s/update_actor:12.3" and
//   "'perf/actor_train_time': 3.9", only the training
// - MLPerf's results files: ":::MLLOG {"key": "tracked_stats", "value": {"train_step_time": 2.6}}"
// - tpsim run:
//     "    10   9.812345     1.2345     1.25 s        1638     93.10    12.5 GiB"
// - MaxText: "completed step: 10, seconds: 1.234, TFLOP/s/device: 310.2, ..."
// - fms-fsdp: "current step time: 5.31"
// - LitGPT: "iter 10 step 5 | ... | iter time: 352.1 ms (step)", of micro-batches; their number per
//   step follows from both counters
// - InternEvo: "tgs (tokens/gpu/second)=4062.03 ... step=10"
// - OLMo: "throughput/device/tokens_per_second=6,210"; Composer: "...tokens_per_sec: 6210.0"
// - picotron: "Step: 10 | ... | Tokens/s/GPU: 3.1K"
// - DeepSpeed: "global_step=10, RunningAvgSamplesPerSec=95.1, CurrSamplesPerSec=96.0, ..."
// - DeepSpeed's pipeline engine: "steps: 10 loss: 6.5 iter time (s): 2.341 samples/sec: 437.3"
// - NeMo Automodel: "step 9 | ... | tps 11278.56(1409.82/gpu) | ..."
// - Trainer without progress bar: its last line, "'train_steps_per_second': 0.123", as one mean
//   step; also in trainer_state.json; axolotl: "'tokens_per_second_per_gpu': 1409.8"
// - plain: "step 10 ... time 820.1ms", "iter 10: ... dt: 0.82s", "step 10 ... 639000 tok/s"
// - metrics by name (evidence/logs/log_metrics.cc), also as JSON lines or comma-separated tables
//
// If a log has several of these formats, step times are preferred to progress bars, and progress
// bars to rates. A step that several ranks print counts once.
//
// Megatron and torchtitan print their parallel layout at the start (evidence/logs/log_layout.h).
// Megatron's timers are read in two formats. One is "    forward-compute ....: (min, max)" after a
// line "(min, max) time across ranks (ms)". The other is "time (ms) | optimizer: 12.3 | ...".
//
// Megatron's memory in MiB is read from "[Rank 3] ... max reserved: 11000.0". tpsim and torchtitan
// print the memory of one rank. Terminal colors are removed. Other lines are skipped.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "evidence/logs/training_log.h"

namespace tpsim {

// Returns the text without terminal escape sequences (colors, cursor movements, titles).
std::string without_escapes(std::string_view text);

// Returns an error if the log has no steps. `file` names the log in errors.
Result<TrainingLog> parse_training_log(std::string_view text, const std::string& file);

}  // namespace tpsim
