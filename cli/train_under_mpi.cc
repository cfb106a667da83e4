// Linked into tpsim-mpi in place of train_on_cpu.cc.
#include <fmt/format.h>

#include "cli/train_on_cpu.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/mpi/mpi_world.h"

namespace tpsim {

Result<bool> speaks_for(const TrainingRun& run) {
  const auto world = mpi_world();
  const std::int64_t wanted = gpu_count(run.plan);
  if (world->size() == wanted) return world->rank() == 0;
  const ParallelDegrees& d = run.plan.degrees;
  return Error{
      ErrorKind::kBadInput,
      fmt::format("the plan has tp {} x pp {} x dp {} = {} ranks, but {} process{} started", d.tp,
                  d.pp, d.dp, wanted, world->size(), world->size() == 1 ? " was" : "es were"),
      "", fmt::format("mpirun -n {}", wanted)};
}

Status train_on_cpu(const TrainingRun& run, const TokenSource& tokens,
                    const std::function<void(const StepReport&)>& on_step,
                    const TrainingHooks& hooks) {
  const auto world = mpi_world();
  TPSIM_TRY(const auto device, CpuDevice::create());
  const auto report_first = [&](const StepReport& report) {
    if (world->rank() == 0) on_step(report);
  };
  return train(*world, *device, run, tokens, report_first, hooks);
}

}  // namespace tpsim
