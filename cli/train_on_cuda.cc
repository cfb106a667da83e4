#include "cli/train_on_cuda.h"

#include "kernels/cuda/cuda_device.h"
#include "kernels/lone_world.h"
#include "kernels/nccl/nccl_world.h"

namespace tpsim {

Result<bool> speaks_for_gpus(const TrainingRun& run) {
  if (const GpuCount count = visible_gpus(); count.gpus == 0) return no_gpu(count.why_none);
  TPSIM_TRY(const std::optional<Launch> launch, launch_from(process_environment));
  if (launch) return launch->rank == 0;
  if (gpu_count(run.plan) == 1) return true;
  return Error{ErrorKind::kBadInput, "the plan has several ranks, and no launcher started them",
               "--device cuda", "start one process per GPU with torchrun, srun or mpirun"};
}

Status train_on_cuda(const TrainingRun& run, const TokenSource& tokens,
                     const std::function<void(const StepReport&)>& on_step,
                     const TrainingHooks& hooks) {
  const auto body = [&](World& world, Device& device) -> Status {
    const auto report_first = [&](const StepReport& report) {
      if (world.rank() == 0) on_step(report);
    };
    return train(world, device, run, tokens, report_first, hooks);
  };
  TPSIM_TRY(const std::optional<Launch> launch, launch_from(process_environment));
  if (launch) return run_under_nccl(*launch, body);
  TPSIM_TRY(const auto device, CudaDevice::create());
  return run_alone([&](World& world) -> Status { return body(world, *device); });
}

}  // namespace tpsim
