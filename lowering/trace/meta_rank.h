// A rank of the reference model on the meta device.
#pragma once

#include "core/plan/plan.h"
#include "core/plan/rank_layout.h"
#include "core/scenario/scenario.h"
#include "kernels/meta/meta_device.h"
#include "reference_model/parallel/process_groups.h"

namespace tpsim {

// A rank on the meta device: runs the reference model without data or communication and records it.
class MetaRank {
 public:
  MetaRank(const ModelSpec& model, const Plan& plan, const TrainingOptions& options,
           const RankCoordinates& at);
  MetaRank(const MetaRank&) = delete;
  MetaRank& operator=(const MetaRank&) = delete;

  RankContext& context() { return context_; }
  TraceRecorder& recorder() { return recorder_; }

 private:
  TraceRecorder recorder_;  // must outlive the device, whose storages report to it
  MetaDevice device_;
  OwnedGroups groups_;
  RankContext context_;
};

}  // namespace tpsim
