// Step lines of other programs.
#include "evidence/logs/log_formats.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "evidence/logs/log_reader.h"

namespace tpsim {
namespace {

TrainingLog log_of(const std::string& text) { return parse_training_log(text, "it.log").value(); }

}  // namespace

TEST_CASE("logs that count steps or state other rates are read") {
  const auto first = [](const std::string& text) {
    const TrainingLog log = parse_training_log(text, "it.log").value();
    return log.steps.front();
  };
  const LoggedStep maxtext = first(
      "completed step: 7, seconds: 5.301, TFLOP/s/device: 310.441, Tokens/s/device: 6182.9, "
      "total_weights: 262144, loss: 9.113\n");
  CHECK(maxtext.time.value() == Approx(5.301));
  CHECK(maxtext.iteration == 7);
  const TrainingLog fsdp =
      parse_training_log(
          "step: 100\nloss: 3.1\ncurrent step time: 4.21\nstep: 200\ncurrent step time: 4.25\n",
          "it.log")
          .value();
  REQUIRE(fsdp.steps.size() == 2);
  CHECK(fsdp.steps[1].time.value() == Approx(4.25));
  CHECK(fsdp.steps[1].iteration == fsdp.steps[0].iteration + 1);
  CHECK(
      first("Epoch 1 | iter 10 step 5 | loss train: 2.11, val: n/a | iter time: 352.14 ms (step)\n")
          .time.value() == Approx(2 * 0.35214));
  const LoggedStep evo = first(
      "INFO train.py, line 310, in record_current_batch_training_metrics -- "
      "tflops=189.38 step=12 loss=7.6 tgs (tokens/gpu/second)=4062.03 lr=4.0e-06\n");
  CHECK(evo.tokens_per_s_gpu == Approx(4062.03));
  CHECK(evo.iteration == 12);
  CHECK(first("[step=20/1000] throughput/device/tokens_per_second=11,204\n").tokens_per_s_gpu ==
        11204);
  CHECK(first("\t Train throughput/device/tokens_per_sec: 6210.5\n").tokens_per_s_gpu == 6210.5);
  CHECK(first("[rank 0] Step: 10    | Loss: 7.2 | Global batch size: 2.1M | Tokens/s: 98.3K | "
              "Tokens/s/GPU: 3.1K | MFU: 41.0%\n")
            .tokens_per_s_gpu == Approx(3100));
  const LoggedStep deepspeed = first(
      "[INFO] [timer.py:260:stop] epoch=0/micro_step=10/global_step=10, "
      "RunningAvgSamplesPerSec=95.10, CurrSamplesPerSec=96.04, MemAllocated=9.1GB\n");
  CHECK(deepspeed.samples_per_s == Approx(96.04));
  CHECK(deepspeed.iteration == 10);
}

TEST_CASE("the training part of a reinforcement-learning step is read, with its memory") {
  const TrainingLog verl = log_of(
      "(TaskRunner pid=12) step:7 - actor/pg_loss:0.1 - perf/max_memory_reserved_gb:60.25 - "
      "timing_s/gen:40.1 - timing_s/update_actor:5.5 - timing_s/step:52.3 - perf/throughput:900\n");
  REQUIRE(verl.steps.size() == 1);
  CHECK(verl.steps[0].iteration == 7);
  CHECK(verl.steps[0].time.value() == Approx(5.5));
  CHECK(verl.training_part == "timing_s/update_actor");
  CHECK(verl.reserved.at(0).value() == Approx(60.25 * kGiB));
  const TrainingLog slime = log_of(
      "data.py:100 - perf 4: {'perf/train_wait_time': 41.2, 'perf/train_time': 5.2, "
      "'perf/actor_train_time': 3.9, 'perf/step_time': 46.4}\n");
  REQUIRE(slime.steps.size() == 1);
  CHECK(slime.steps[0].iteration == 4);
  CHECK(slime.steps[0].time.value() == Approx(3.9));
  CHECK(slime.training_part == "perf/actor_train_time");
  CHECK(log_of("step 3 time: 2.5s\n").training_part.empty());
}

TEST_CASE("reserved memory is read under the name and unit of each program") {
  for (const auto& [name, bytes] :
       {std::pair{"| max_memory_reserved: 57466159104 | max_memory_allocated: 53930270720",
                  57466159104.0},
        std::pair{"peak_memory_alloc:30.5 peak_memory_reserved:60.25", 60.25 * kGiB},
        std::pair{"'memory/device_mem_reserved(gib)': 60.25", 60.25 * kGiB},
        std::pair{"'memory/max_allocated (GiB)': 30.5, 'memory/device_reserved (GiB)': 60.25",
                  60.25 * kGiB}}) {
    CAPTURE(name);
    const TrainingLog log = log_of(fmt::format("step 3 time: 2.5s {}\n", name));
    REQUIRE(log.reserved.contains(0));
    CHECK(log.reserved.at(0).value() == Approx(bytes));
  }
}

TEST_CASE("the formats of single programs are read") {
  struct Format {
    const char* program;
    const char* text;
    double seconds, tokens_per_s_gpu, tokens_per_s;
    std::size_t steps;
  };
  constexpr Format kFormats[] = {
      {"torchtitan of 2024",
       "[rank0]:2024-09-02 10:00:01,000 - root - INFO - step: 10  loss:  6.9171  memory: "
       "27.45GiB(28.90%)  wps: 5,613  mfu: 31.12%\n",
       0, 5613, 0, 1},
      {"torchtitan, all ranks",
       "[titan] 2026-02-02 10:00:00,508 - root - INFO - step:  4  loss:  7.62  grad_norm: 26.6250  "
       "memory: 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%\n"
       "[titan] 2026-02-02 10:00:00,508 - root - INFO - step:  4  loss:  7.62  grad_norm: 26.6250  "
       "memory: 66.91GiB(37.51%)  tps: 10,049  tflops: 314.68  mfu: 13.99%\n"
       "[titan] 2026-02-02 10:00:02,145 - root - INFO - step:  5  loss:  7.07  grad_norm: 46.5000  "
       "memory: 66.91GiB(37.51%)  tps: 10,007  tflops: 313.36  mfu: 13.93%\n",
       0, 10050, 0, 2},
      {"GPT-NeoX",
       " samples/sec: 62.518 | iteration       20/   20000 | elapsed time per iteration (ms): "
       "16379.7 | learning rate: 5.4E-07 | approx flops per GPU: 118.2TFLOPS | lm_loss: 1.05E+01 | "
       "loss scale: 65536.0 | number of skipped iterations:   0 | number of nan iterations:   0 "
       "|\n",
       16.3797, 0, 0, 1},
      {"DeepSpeed's pipeline engine",
       "[2024-03-01 10:00:00,120] [INFO] [logging.py:96:log_dist] [Rank 0] steps: 40 loss: 5.9917 "
       "iter time (s): 3.217 samples/sec: 318.3\n",
       3.217, 0, 0, 1},
      {"NeMo 2",
       "Training epoch 0, iteration 9/99 | lr: 1.499e-06 | global_batch_size: 512 | global_step: 9 "
       "| reduced_train_loss: 11.03 | train_step_timing in s: 8.214 | consumed_samples: 5120\n",
       8.214, 0, 0, 1},
      {"NeMo Automodel",
       "2026-08-10 15:55:20 | INFO | root | step 9 | epoch 0 | loss 0.6974 | grad_norm 1.5436 | lr "
       "1.00e-05 | mem 24.90 GiB | tps 11278.56(1409.82/gpu) | num_label_tokens 21541\n",
       0, 0, 11278.56, 1},
      {"Megatron-Bridge",
       "Step Time : 14.26s GPU utilization: 58.2TFLOP/s/GPU\n"
       " [2025-10-02 22:54:30] iteration       20/      50 | consumed samples:        10240 | "
       "elapsed time per iteration (ms): 14260.3 | learning rate: 2.6E-04 | global batch size:   "
       "512 | lm loss: 8.79E-02 | loss scale: 1.0 | grad norm: 0.170 | number of skipped "
       "iterations:   0 | number of nan iterations:   0 |\n",
       14.2603, 0, 0, 1},
      {"Trainer's bar",
       " 32%|###       | 281/873 [25:36<52:46,  5.35s/it]\r 32%|###       | 281/873 [25:37<52:46,  "
       "5.35s/it]\r\n{'loss': 0.8635, 'learning_rate': 0.00013, 'epoch': 0.97}\n"
       " 33%|###       | 282/873 [25:41<49:29,  5.02s/it]\n",
       5.35, 0, 0, 2},
      {"Trainer's end",
       "{'loss': 1.21, 'grad_norm': 2.0, 'learning_rate': 2e-05, 'epoch': 0.1}\n"
       "{'train_runtime': 812.4, 'train_samples_per_second': 12.6, 'train_steps_per_second': "
       "0.125, "
       "'train_loss': 1.5, 'epoch': 1.0}\n",
       8, 0, 0, 1},
      {"trainer_state.json",
       "{\"log_history\": [{\"loss\": 1.2, \"step\": 10},\n{\"train_runtime\": 812.4,\n"
       "\"train_steps_per_second\": 0.25,\n\"step\": 20}]}\n",
       4, 0, 0, 1},
      {"axolotl",
       "{'loss': 0.89, 'grad_norm': 3.1, 'learning_rate': 4.8e-06, 'memory/max_active (GiB)': "
       "34.89, "
       "'tokens_per_second_per_gpu': 4120.5, 'epoch': 0.2}\n",
       0, 4120.5, 0, 1},
      {"OLMo-core", "[step=20/1000,epoch=1]\n    throughput/device/TPS=11,204\n", 0, 11204, 0, 1},
      {"nanoGPT", "iter 1631: loss 4.0863, time 561.94ms, mfu 38.1%\n", 0.56194, 0, 0, 1},
      {"modded nanoGPT", "step:40/1750 train_time:5312ms step_avg:132.80ms\n", 0.1328, 0, 0, 1},
      {"llm.c",
       "step   10/19560 | loss 9.5 (+0.00z)| norm 2.1 (+0.00z)| lr 8.6e-06 | 1480.11 ms | 48.1% "
       "bf16 "
       "MFU | 354000 tok/s\n",
       0, 0, 354000, 1},
  };
  for (const Format& format : kFormats) {
    CAPTURE(format.program);
    const auto log = parse_training_log(format.text, "it.log");
    REQUIRE(log.ok());
    CHECK(log->steps.size() == format.steps);
    const LoggedStep& one = log->steps.front();
    CHECK(one.time.value() == Approx(format.seconds));
    CHECK(one.tokens_per_s_gpu == Approx(format.tokens_per_s_gpu));
    CHECK(one.tokens_per_s == Approx(format.tokens_per_s));
  }
  const auto neox = parse_training_log(kFormats[2].text, "it.log");
  CHECK(neox->tflops == std::vector<double>{118.2});
}

TEST_CASE("lines with common names of quantities are read without a known format") {
  struct Line {
    const char* text;
    double seconds, tokens_per_s_gpu, tokens_per_s;
  };
  constexpr Line kLines[] = {
      {"step 00000007/00000015 | step-time 28.437 sec | tokens-per-second 73,748\n", 28.437, 0, 0},
      {"[12:00:00] Step    7 | Loss: 2.1 | Step time: 1.250s | Tokens/sec: 419,430\n", 1.25, 0, 0},
      {"INFO step=7, loss=2.1, time/step=1250.0ms, tok/s=419430\n", 1.25, 0, 0},
      {"Step 7 | loss:1.21 lr:2e-05 tokens_per_second_per_gpu:7010.5 peak_memory:30.1\n", 0, 7010.5,
       0},
      {"step: 7     train loss: 3.11    tokens/gpu/sec: 9378.40     MFU: 63.91%\n", 0, 9378.4, 0},
      {"step=7 loss=8.910 tokens/s=76477\n", 0, 0, 76477},
      {"step 7 | loss 8.910 | tokens/s: 76,477.1\n", 0, 0, 76477.1},
      {"Step 7/1000, loss: 8.910, 76.5k tok/s\n", 0, 0, 76500},
      {"{\"step\": 7, \"loss\": 2.1, \"step_time\": 1.25, \"tokens_per_second\": 419430}\n", 1.25,
       0, 0},
      {"step,loss,step_time_ms\n7,2.1,1250\n", 1.25, 0, 0},
      {"epoch,step,reduced_train_loss,train_step_timing in s\n0,7,2.1,1.25\n", 1.25, 0, 0},
  };
  for (const Line& line : kLines) {
    CAPTURE(line.text);
    const auto log = parse_training_log(line.text, "it.log");
    REQUIRE(log.ok());
    REQUIRE(log->steps.size() == 1);
    const LoggedStep& one = log->steps.front();
    CHECK(one.iteration == 7);
    CHECK(one.time.value() == Approx(line.seconds));
    CHECK(one.tokens_per_s_gpu == Approx(line.tokens_per_s_gpu));
    CHECK(one.tokens_per_s == Approx(line.tokens_per_s));
  }
  const TrainingLog old = log_of("[INFO] [timer.py:157:stop] 0/10, SamplesPerSec=8.88\n");
  CHECK(old.steps.front().samples_per_s == Approx(8.88));
  CHECK_FALSE(parse_training_log("average step time: 1.25 s\nloss 3.1, lr 0.1\n", "it.log").ok());
}

TEST_CASE("the longest progress bar of a log is the training's") {
  std::string text =
      "Loading checkpoint shards: 100%|####| 4/4 [00:18<00:00,  4.54s/it]\n"
      "  Total train batch size (w. parallel, distributed & accumulation) = 1,024\n";
  for (int i = 1; i <= 6; ++i) {
    text += fmt::format("  1%|#   | {}/873 [{:02}:{:02}<1:52:46,  8.0{}s/it]\r", i, 8 * i / 60,
                        8 * i % 60, i);
    for (int k = 1; k <= 50; ++k)
      text += fmt::format("{}/50 [00:{:02}<00:12,  4.1it/s]\r", k, k / 5);
  }
  text += "{'loss': 0.9, 'tokens_per_second_per_gpu': 11.5, 'epoch': 0.2}\n";
  const TrainingLog log = log_of(text);
  REQUIRE(log.steps.size() == 6);
  CHECK(log.steps[0].time.value() == Approx(8.01));
  CHECK(log.steps[0].global_batch ==
        1024);  // the progress bar has priority: the rate excludes padding tokens
}

TEST_CASE("step times follow from the elapsed times of two lines") {
  const TrainingLog swift = log_of(
      "{'loss': 1.5, 'global_step/max_steps': '5/94', 'elapsed_time': '58m 50s', 'x': 1}\n"
      "{'loss': 1.5, 'global_step/max_steps': '15/94', 'elapsed_time': '1h 0m 10s', 'x': 1}\n");
  REQUIRE(swift.steps.size() == 1);
  CHECK(swift.steps[0].time.value() == Approx(8));
  const TrainingLog factory = log_of(
      "{\"current_steps\": 10, \"elapsed_time\": \"0:59:30\", \"remaining_time\": \"0:03:25\"}\n"
      "{\"current_steps\": 20, \"elapsed_time\": \"1:00:30\", \"remaining_time\": \"0:03:25\"}\n"
      "{\"current_steps\": 30, \"elapsed_time\": \"1 day, 0:01:30\", \"remaining_time\": \"0\"}\n");
  REQUIRE(factory.steps.size() == 2);
  CHECK(factory.steps[0].time.value() == Approx(6));
  CHECK(factory.steps[1].time.value() == Approx((86400 + 90 - 3630) / 10.0));
}

TEST_CASE("the micro-batches of a step follow from the counters of both") {
  std::string text;
  for (int i = 76; i < 96; ++i) {
    text += fmt::format("iter {} step {}: loss 10.8, iter time: {}.00ms{}\n", i, (i + 1) / 2,
                        i % 2 == 1 ? 215 : 198, i % 2 == 1 ? " (optimizer.step)" : "");
  }
  const TrainingLog log = log_of(text);
  CHECK(log.steps.size() == 11);
  CHECK(log.steps[5].time.value() == Approx(0.215 + 0.198));
}

TEST_CASE("a step that several ranks print counts once") {
  std::string text;
  for (int i = 1; i <= 4; ++i) {
    for (int rank = 0; rank < 3; ++rank) {
      text += fmt::format("[rank{}]: iteration {}/ 9 | elapsed time per iteration (ms): 5.0 |\n",
                          rank, i);
    }
  }
  CHECK(log_of(text).steps.size() == 4);
}

TEST_CASE("cursor movements and titles are removed from lines") {
  CHECK(without_escapes("\033[2K\033[1G\033[Kitem\033[38;5;9mized\033[0m\n") == "itemized\n");
  CHECK(without_escapes("\033]0;train\a1\0337 2\033[") == "1 2");
}

TEST_CASE("a NaN loss is found in every spelling") {
  const auto losses = [](const char* text) { return log_of(text).nan_losses; };
  const std::string step = "iteration 3/ 9 | elapsed time per iteration (ms): 5.0 | ";
  const auto line = [&](const char* end) { return losses((step + end + "\n").c_str()); };
  CHECK(line("lm loss: NAN | loss scale: 1.0 |") == 1);
  CHECK(line("lm loss: 9.1 | loss scale: 1.0 | number of nan iterations:   2 |") == 1);
  // Megatron prints no loss if it is NaN, and none for skipped steps.
  CHECK(line("loss scale: 1.0 | grad norm: nan | number of skipped iterations:   0 |") == 1);
  CHECK(line("loss scale: 1.0 | number of skipped iterations:   1 |") == 0);
  CHECK(line("lm loss: 9.1 | loss scale: 1.0 | number of skipped iterations:   0 |") == 0);
  CHECK(losses("step: 4  loss:      nan  memory: 1.0GiB(1%)  tps: 5,613\n") == 1);
  CHECK(losses("{\"step\": 4, \"loss\": NaN, \"step_time\": 1.25}\n") == 1);
  CHECK(losses("step 4/9 | loss 3.2 (+nanz)| norm 1.4 (+nanz)| 91886 tok/s\n") == 0);
  CHECK(losses("step 4 | loss 3.2 | val loss nan | dt: 0.8s\n") == 0);
}

TEST_CASE("steps that were skipped are counted by iteration, not by line") {
  std::string text;
  for (int i = 10; i <= 60; i += 10) {
    text += fmt::format(
        "iteration {}/ 90 | elapsed time per iteration (ms): 5.0 | lm loss: 9.1 | number of "
        "skipped "
        "iterations:   1 |\n",
        i);
  }
  const TrainingLog megatron = log_of(text);
  CHECK(megatron.skipped == 6);
  CHECK(megatron.iterations == 60);
  const TrainingLog deepspeed = log_of(
      "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8, reducing to 4\n"
      "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4, reducing to 2\n"
      "[timer.py:199:stop] epoch=0/micro_step=40/global_step=10, CurrSamplesPerSec=96.0\n"
      "[timer.py:199:stop] epoch=0/micro_step=80/global_step=20, CurrSamplesPerSec=96.0\n");
  CHECK(deepspeed.skipped == 2);
  CHECK(deepspeed.iterations == 20);
}

TEST_CASE("MLPerf's results files have a step's time, or sequences per second") {
  const auto line = [](const std::string& key, const std::string& value, int step) {
    return fmt::format(
        ":::MLLOG {{\"time_ms\": 17, \"key\": \"{}\", \"value\": {}, \"metadata\": "
        "{{\"step\": {}}}}}\n",
        key, value, step);
  };
  const std::string batch = "0: " + line("global_batch_size", "48", 0);
  const std::string timed =
      line("tracked_stats", R"({"train_step_time": 3.5, "throughput": 9})", 1);
  const TrainingLog log =
      log_of(batch + timed + line("tracked_stats", R"({"reduced_train_loss": 2.1})", 2) +
             line("eval_accuracy", "2.1", 2) + ":::MLLOG {broken\n" +
             line("tracked_stats", R"({"train_step_time": 3.25})", 2));
  REQUIRE(log.steps.size() == 2);
  CHECK(log.steps[0].time.value() == Approx(3.5));
  CHECK(log.steps[1].time.value() == Approx(3.25));
  CHECK(log.steps[1].global_batch == 48);
  const TrainingLog rates = log_of(line("tracked_stats", R"({"throughput": 24.5})", 12288) +
                                   line("tracked_stats", R"({"throughput": 24})", 24576));
  REQUIRE(rates.steps.size() == 2);
  CHECK(rates.steps[0].samples_per_s == Approx(24.5));
  CHECK(rates.iterations == 2);  // steps in the metadata are counts of sequences
  for (const char* bad : {"-1", "0", "1e300", "\"x\"", "null"}) {
    const std::string text = line("tracked_stats", fmt::format(R"({{"throughput": {}}})", bad), 1);
    CHECK_FALSE(parse_training_log(text, "it.log").ok());
  }
}

}  // namespace tpsim
