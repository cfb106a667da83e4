// Steps as other programs print them.
#include "stacks/log_formats.h"

#include <catch2/catch.hpp>

namespace tpsim {

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
          .time.value() == Approx(0.35214));
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

}  // namespace tpsim
