#include "campaigns/batch_ramp.h"

#include <fmt/format.h>

#include <algorithm>

namespace tpsim {

Status validate(const BatchRamp& ramp, std::int64_t full_batch) {
  if (ramp.start == 0) return Ok{};
  const auto wrong = [](std::string message) {
    return bad_input(std::move(message), "--ramp",
                     "write START,INCREMENT,SAMPLES, for example 192,16,9765625");
  };
  if (ramp.start < 1 || ramp.increment < 1 || ramp.samples < 1) {
    return wrong("a ramp needs a start, an increment and a number of samples above zero");
  }
  if (ramp.start >= full_batch) {
    return wrong(
        fmt::format("the ramp starts at {} sequences, which is not less than the full batch of {}",
                    ramp.start, full_batch));
  }
  if ((full_batch - ramp.start) % ramp.increment != 0) {
    return wrong(fmt::format("increments of {} do not lead from {} to the full batch of {}",
                             ramp.increment, ramp.start, full_batch));
  }
  return Ok{};
}

std::vector<RampPhase> ramp_phases(const BatchRamp& ramp, std::int64_t full_batch,
                                   std::int64_t samples) {
  std::vector<RampPhase> phases;
  std::int64_t consumed = 0;
  const auto run_until = [&](std::int64_t batch, std::int64_t goal) {
    // Rounds up: the step that reaches the goal runs in full.
    const std::int64_t steps = (std::min(goal, samples) - consumed + batch - 1) / batch;
    if (steps <= 0) return;
    phases.push_back({batch, steps});
    consumed += steps * batch;
  };
  if (ramp.start > 0) {
    // As in Megatron's --rampup-batch-size, every size consumes the same number of samples.
    const std::int64_t sizes = (full_batch - ramp.start) / ramp.increment;
    for (std::int64_t i = 0; i < sizes; ++i) {
      const double share = static_cast<double>(i + 1) / static_cast<double>(sizes);
      run_until(ramp.start + i * ramp.increment,
                static_cast<std::int64_t>(share * static_cast<double>(ramp.samples)));
    }
  }
  run_until(full_batch, samples);
  return phases;
}

}  // namespace tpsim
