// Time of causal flash attention, forward and backward.
//
// The forward pass is
//   t = latency + max(flops / (rate peak), longest block, traffic / bandwidth)
//   rate = forward efficiency * (d / 128)^0.35 * s / (s + 600)        s tokens, d head_dim
// "Longest block" is the time of the thread block with the last 128 queries of a head, which see
// all keys; it runs on one SM. If there are more keys than queries, s is the length of a sequence
// whose queries see as many keys on average: s = 2 keys - queries. Measured forward samples of
// similar shapes correct the time. The backward time is the forward time, scaled by FLOPs and
// efficiencies and corrected by backward samples if there are any. Attention whose values are not
// as wide as the keys (MLA) uses separate kernels and is corrected by its own samples if there are
// any. The constants 0.35, 600 and the latency were fitted on the A100 (FlashAttention-2) and H200
// (FlashAttention-3) tables of data/microbench.
#pragma once

#include <array>

#include "core/machine/profile.h"
#include "costs/residual_field.h"

namespace tpsim {

struct FlashEstimate {
  Seconds time;
  Seconds bound;  // before the correction by samples
  double correction = 1;
  bool near_samples = false;
};

class FlashModel {
 public:
  explicit FlashModel(const Profile& profile);
  // Returns the time of a kFlashForward or kFlashBackward op.
  FlashEstimate estimate(const OpRecord& op) const;

 private:
  Seconds forward_bound(const OpKey& key) const;
  Seconds bound(const OpKey& key) const;

  DeviceFacts device_;
  DeviceModel model_;
  const ResidualField& field_for(const OpKey& key) const;

  // Corrections of forward and backward with value_dim = head_dim, then with other value widths.
  std::array<ResidualField, 4> fields_;
  double best_flops_share_ = 0;
};

}  // namespace tpsim
