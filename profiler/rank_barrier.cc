#include "profiler/rank_barrier.h"

namespace tpsim {
RankBarrier::RankBarrier(World& world, Device& device)
    : device_(device),
      ranks_(world.communicator(device, GroupKind::kWorld, all_ranks(world))),
      votes_(device.allocate({1}, DType::kFloat32, MemoryCategory::kWorkspace, "barrier")) {}

void RankBarrier::wait() { static_cast<void>(all_agree(true)); }

bool RankBarrier::all_agree(bool mine) {
  const float against = mine ? 0.0F : 1.0F;
  device_.upload(std::as_bytes(std::span(&against, 1)), votes_);
  ranks_->all_reduce(votes_, ReduceOp::kSum, {ModelPart::kCoordination, "barrier"});
  device_.synchronize();
  return download_scalar(device_, votes_) == 0.0F;
}

}  // namespace tpsim
