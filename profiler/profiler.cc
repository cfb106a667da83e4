#include "profiler/profiler.h"

#include <fmt/format.h>

#include <chrono>
#include <set>

#include "kernels/checks/op_check.h"
#include "profiler/reduced_key.h"

namespace tpsim {

Status check_ops(Device& device, const std::vector<OpKey>& keys,
                 const std::function<void(double)>& progress) {
  std::set<OpKey> small;
  for (const OpKey& key : keys) small.insert(reduced_key(key));
  std::size_t done = 0;
  for (const OpKey& key : small) {
    for (const ResultError& error : errors_against_slow(device, key, 1)) {
      if (error.within_tolerance()) continue;
      return Error{ErrorKind::kBug,
                   fmt::format("{} of {} has an error of {:.2g}, more than the tolerance of "
                               "{:.2g}: the device computes wrong results",
                               error.result, to_string(key), error.error, error.tolerance),
                   "", ""};
    }
    progress(static_cast<double>(++done) / static_cast<double>(small.size()));
  }
  return Ok{};
}

namespace {

// Times ops that keep the tensor cores busy long enough to heat the device.
void time_sustained(OpTimer& timer, RankBarrier& barrier, const std::vector<OpKey>& keys,
                    Samples& samples) {
  constexpr double kLeastSeconds = 20e-6;
  for (const OpKey& key : keys) {
    const bool heats = runs_on_matrix_units(key.kind);
    if (!heats || !barrier.all_agree(samples.median(key) >= kLeastSeconds)) continue;
    for (const double seconds : timer.sustained_times(key)) samples.add_sustained(key, seconds);
  }
}

}  // namespace

Result<Samples> profile_rank(World& world, Device& device, LoadMeter& meter,
                             const ProfileRequest& request,
                             const std::function<void(double)>& progress) {
  RankBarrier barrier(world, device);
  Samples samples;
  const auto ranks = static_cast<std::size_t>(world.size());
  const std::size_t rounds = (request.in_step_runs.size() + ranks - 1) / ranks;
  const auto all = static_cast<double>(rounds + request.ops.size() + 1);
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  const auto is_spent = [&] {
    const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
    return request.budget && barrier.all_agree(passed > request.budget->value());
  };
  for (std::size_t round = 0; round < rounds; ++round) {
    if (is_spent()) break;
    const std::size_t turn = round * ranks + static_cast<std::size_t>(world.rank());
    TPSIM_TRY_STATUS(time_in_steps(device, meter, barrier,
                                   request.in_step_runs[turn % request.in_step_runs.size()],
                                   request.in_step, samples));
    progress(static_cast<double>(round + 1) / all);
  }
  OpTimer timer(device, meter, barrier, request.op_timer);
  begin = Clock::now();
  for (std::size_t i = 0; i < request.ops.size() && !is_spent(); ++i) {
    // All ranks time an op if any rank has no samples of it. The ranks have samples of different
    // ops, because they ran steps of different plans and plan ranks.
    const bool known = samples.has(request.ops[i]);
    if (!barrier.all_agree(known)) {
      for (const double seconds : timer.times(request.ops[i])) {
        if (!known) samples.add(request.ops[i], seconds);
      }
    }
    progress(static_cast<double>(rounds + i + 1) / all);
  }
  if (request.sustained) time_sustained(timer, barrier, request.ops, samples);
  time_collectives(world, device, barrier, request.collectives, request.collective_timer, samples);
  progress(1);
  return samples;
}

}  // namespace tpsim
