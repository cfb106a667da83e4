#include "lowering/trace/meta_rank.h"

#include <memory>

#include "ranks/meta/meta_communicator.h"

namespace tpsim {

MetaRank::MetaRank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
                   const RankCoordinates& at)
    : groups_(formed_groups(plan, options, global_rank(plan, at)),
              [&](const FormedGroup& group) {
                const GroupPosition position =
                    group_position(plan, group.kind, global_rank(plan, at));
                return std::make_unique<MetaCommunicator>(device_, group.kind,
                                                          static_cast<int>(position.index),
                                                          static_cast<int>(position.size));
              }),
      context_{device_, groups_.groups(), at, model, plan, options} {
  device_.set_recorder(&recorder_);
}

}  // namespace tpsim
