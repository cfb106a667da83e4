#include "lowering/trace/rank_trace.h"

#include <vector>

#include "core/plan/rank_layout.h"
#include "lowering/trace/meta_rank.h"
#include "reference_model/step/rank_model.h"

namespace tpsim {

RankTrace trace_rank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                     std::int64_t rank, std::int64_t steps) {
  MetaRank meta(model, plan, options, coordinates(plan, rank));
  RankTrace trace;
  {
    RankModel rank_model(meta.context(), {});
    rank_model.materialize(0);
    trace.step = meta.recorder().mark();
    for (std::int64_t step = 1; step <= steps; ++step) {
      rank_model.train_step(step, [](std::int64_t) { return std::vector<std::int32_t>(); });
    }
  }
  trace.program = meta.recorder().take();
  return trace;
}

}  // namespace tpsim
