#include "cli/train_on_cpu.h"

#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/thread_world.h"

namespace tpsim {

Result<bool> speaks_for(const TrainingRun&) { return true; }

Status train_on_cpu(const TrainingRun& run, const TokenSource& tokens,
                    const std::function<void(const StepReport&)>& on_step,
                    const TrainingHooks& hooks) {
  const int ranks = static_cast<int>(gpu_count(run.plan));
  return run_on_threads(ranks, [&](World& world) -> Status {
    TPSIM_TRY(const auto device, CpuDevice::create());
    const auto report_first = [&](const StepReport& report) {
      if (world.rank() == 0) on_step(report);
    };
    return train(world, *device, run, tokens, report_first, hooks);
  });
}

}  // namespace tpsim
