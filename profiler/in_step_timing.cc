#include "kernels/timing_recorder.h"
#include "profiler/profiler.h"
#include "ranks/modelled/modelled_world.h"
#include "reference_model/parallel/process_groups.h"
#include "reference_model/step/rank_model.h"
#include "reference_model/training/tokens.h"

namespace tpsim {
namespace {

void add_means(const StepTimes& times, Samples& samples) {
  for (const OpTime& op : times.ops) {
    samples.add(op.record.key, op.time.value() / static_cast<double>(op.count));
  }
}

}  // namespace

Status time_in_steps(Device& device, LoadMeter& meter, RankBarrier& barrier, const InStepRun& run,
                     const InStepSettings& settings, Samples& samples) {
  const Plan& plan = run.plan;
  const ModelSpec& shape = run.model;
  ModelledWorld alone(
      static_cast<int>(run.rank), static_cast<int>(gpu_count(plan)),
      [](const CollectiveRecord&) { return 0.0; }, shape.vocab);
  const OwnedGroups groups = form_groups(alone, device, plan);
  RankModel model(
      RankContext{device, groups.groups(), coordinates(plan, run.rank), shape, plan, run.options},
      {});
  model.materialize(1);
  const TokenSource tokens = TokenSource::synthetic(shape.seq, shape.vocab, 1);
  const auto data = [&](std::int64_t micro_batch) {
    return micro_batch_samples(tokens, plan, {0, micro_batch, model.context().at.dp});
  };

  TimingRecorder timer(device);
  std::vector<double> undisturbed;  // seconds
  for (int step = 0; step < settings.most_steps; ++step) {
    barrier.wait();
    timer.clear();
    meter.start();
    const DeviceMark begin = device.mark();
    model.train_step(step + 1, data);
    const double seconds = device.seconds_between(begin, device.mark());
    const bool alone_on_core = meter.was_alone();
    const StepTimes times = timer.take();
    const bool warm = step > 0;
    if (warm && alone_on_core) {
      add_means(times, samples);
      undisturbed.push_back(seconds);
    }
    if (barrier.all_agree(undisturbed.size() >= settings.least_steps)) break;
  }
  samples.add_steps(undisturbed);
  return Ok{};
}

}  // namespace tpsim
