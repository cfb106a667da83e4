// Reads training logs. Formats are told apart line by line:
//
// - Megatron-LM and Megatron-Bridge:
//     " iteration 10/ 500 | ... elapsed time per iteration (ms): 12936.1 | ..."
//   and with experts "... | load_balancing_loss: 1.012E+00 | z_loss: 2.3E-01 | ..."
// - Megatron-DeepSpeed:
//     "iteration 10/ 500 | ... elapsed time per iteration (s): 105.2 | ... TFLOPs: 150.0 |"
// - NeMo: "... | global_step: 5 | ... | train_step_timing in s: 6.32 | ..."
// - torchtitan: "step: 10  loss: 4.2  memory: 34.2GiB(43.1%)  tps: 6,210  tflops: 310.2  mfu: 31 %"
// - nanotron: "iteration: 10 / 100 | ... | elapsed_time_per_iteration_ms: 1.23K | ..."
// - Hugging Face's Trainer: its bar, " 10/100 [01:20<12:00, 8.01s/it]", the one that ran longest
// - ms-swift, LLaMA-Factory: 'elapsed_time' beside 'global_step/max_steps' or "current_steps"
// - verl and slime, whose step trains and generates: "timing_s/update_actor:12.3" and
//   "'perf/actor_train_time': 3.9", the training part
// - MLPerf's results files: ":::MLLOG {"key": "tracked_stats", "value": {"train_step_time": 2.6}}"
// - tpsim run:
//     "    10   9.812345     1.2345     1.25 s        1638     93.10    12.5 GiB"
// - MaxText: "completed step: 10, seconds: 1.234, TFLOP/s/device: 310.2, ..."
// - fms-fsdp: "current step time: 5.31"; LitGPT: "iter 10 step 5 | ... | iter time: 352.1 ms
// (step)", of micro-batches, as many to a step as both numbers say
// - InternEvo: "tgs (tokens/gpu/second)=4062.03 ... step=10"
// - OLMo: "throughput/device/tokens_per_second=6,210"; Composer: "...tokens_per_sec: 6210.0"
// - picotron: "Step: 10 | ... | Tokens/s/GPU: 3.1K"
// - DeepSpeed: "global_step=10, RunningAvgSamplesPerSec=95.1, CurrSamplesPerSec=96.0, ..."
// - DeepSpeed's pipeline engine: "steps: 10 loss: 6.5 iter time (s): 2.341 samples/sec: 437.3"
// - NeMo Automodel: "step 9 | ... | tps 11278.56(1409.82/gpu) | ..."
// - Trainer without its bar: the line of its end, "'train_steps_per_second': 0.123", one mean step;
//   so says trainer_state.json; axolotl: "'tokens_per_second_per_gpu': 1409.8"
// - plain: "step 10 ... time 820.1ms", "iter 10: ... dt: 0.82s", "step 10 ... 639000 tok/s"
//
// - numbers under names that say what they are (evidence/logs/log_metrics.cc), also as one line of
// JSON
//   each and as a table of comma-separated values
//
// Of several ways in which one log says its steps a time goes before a bar, and a bar before a
// rate. Ranks that print the same step say it once.
//
// Megatron and torchtitan print their layout at the start (evidence/logs/log_layout.h). Timers are
// read where Megatron prints them: as "    forward-compute ....: (min, max)" after a line "(min,
// max) time across ranks (ms)", or as "time (ms) | optimizer: 12.3 | ...". Memory is read from
// "[Rank 3]
// ... max reserved: 11000.0" in MiB; tpsim and torchtitan state one rank's. Colours are removed;
// every other line is passed over.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"
#include "evidence/logs/training_log.h"

namespace tpsim {

// Without the colours and cursor moves of a terminal.
std::string without_escapes(std::string_view text);

// `file` names it in errors. A log without one step is an error.
Result<TrainingLog> parse_training_log(std::string_view text, const std::string& file);

}  // namespace tpsim
