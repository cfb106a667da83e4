#include "devices/local_devices.h"

#include <fmt/format.h>

#include "app/scenario/field.h"
#include "core/plan/plan_settings.h"
#include "kernels/cpu/narrow_floats.h"

namespace tpsim::app {
namespace {

Status check_number(const RankStarter& starter, std::int64_t wanted, const std::string& why) {
  if (starter.started == 0 || starter.started == wanted) return Ok{};
  return bad_input(fmt::format("{}, but {} process{} started", why, starter.started,
                               starter.started == 1 ? " was" : "es were"),
                   "", fmt::format("{} {}", starter.launch, wanted));
}

}  // namespace

Result<LocalDevices> local_devices(std::string_view device) {
  if (device == "cpu") return cpu_devices();
  if (device == "cuda") return cuda_devices();
  return bad_input(fmt::format("unknown device '{}'", device), "--device", "use cpu or cuda");
}

Status check_started(const RankStarter& starter, const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  const std::int64_t wanted = gpu_count(plan);
  const std::string context = d.cp > 1 ? fmt::format(" x cp {}", d.cp) : "";
  return check_number(starter, wanted,
                      fmt::format("the plan has tp {}{} x pp {} x dp {} = {} ranks", d.tp, context,
                                  d.pp, d.dp, wanted));
}

Status run_ranks(const LocalDevices& devices, int ranks, const DeviceRankBody& body) {
  TPSIM_TRY_STATUS(
      check_number(devices.ranks, ranks,
                   fmt::format("this command runs {} rank{}", ranks, ranks == 1 ? "" : "s")));
  return devices.ranks.run(ranks, body);
}

Status check_runs_on(const Plan& plan, std::string_view device) {
  if (plan.recompute == Recompute::kOps) {
    return app::field_error(Setting::kRecompute,
                            "tpsim can predict recompute of single ops, but cannot execute it",
                            "use --recompute full");
  }
  const bool is_run = is_emulated(plan.precision);
  if (!is_run || plan.fp8_param_gather) {
    const Setting setting = is_run ? Setting::kFp8ParamGather : Setting::kPrecision;
    const std::string text = to_string(setting_of(plan, setting));
    return app::field_error(setting, text + " can be predicted, but tpsim cannot execute it",
                            "tpsim executes fp8, fp8-current, fp8-block and mxfp8");
  }
  if (!offloads_optimizer(plan) || device != "cuda") return Ok{};
  return app::field_error(Setting::kOffload, "an offloaded optimizer runs on the CPU device only",
                          "use --device cpu, or --offload none");
}

}  // namespace tpsim::app
