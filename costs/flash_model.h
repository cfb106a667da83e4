// Time of flash attention, causal.
//
// The forward pass is
//   t = latency + max(flops / (rate peak), longest block, traffic / bandwidth)
//   rate = forward efficiency * (d / 128)^0.35 * s / (s + 600)        s tokens, d head_dim
// The longest block is the last 128 queries of one head, which see all keys and run on one SM.
// Queries with additional earlier keys ramp up like a longer sequence with as many keys per query
// (s = 2 keys - queries). Measured forward samples of similar shapes correct the time. The backward
// pass scales the forward time by FLOPs and efficiencies, corrected by backward samples if
// available. Attention with another width of values (latent attention) uses separate kernels and is
// corrected only by its own samples. The ramp constants and the latency were fitted on the A100
// (FlashAttention-2) and H200 (FlashAttention-3) tables of data/microbench.
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
  // Forward or backward, by the op's kind.
  FlashEstimate estimate(const OpRecord& op) const;

 private:
  Seconds forward_bound(const OpKey& key) const;
  Seconds bound(const OpKey& key) const;

  DeviceFacts device_;
  DeviceModel model_;
  const ResidualField& field_for(const OpKey& key) const;

  // Forward and backward, for equal width of values and for other widths.
  std::array<ResidualField, 4> fields_;
  double best_flops_share_ = 0;
};

}  // namespace tpsim
