// How long IO-aware causal attention takes.
//
// The forward pass follows
//   t = latency + max(flops / (rate peak), longest block, traffic / bandwidth)
//   rate = forward efficiency * (d / 128)^0.35 * s / (s + 600)        s tokens, d head_dim
// where the longest block is the last 128 queries of one head, which see all keys and run on one
// processor, and queries that are the last of more keys ramp up like a longer sequence of which a
// query sees as many keys (s = 2 keys - queries); measured forward samples of similar shapes
// correct it. The backward pass takes the forward's time by their FLOPs and efficiencies, corrected
// by backward samples where a profile has them. Attention whose values have a width of their own
// (latent attention) runs kernels of its own: its samples correct it alone. The ramp constants and
// the latency fit the A100 (FlashAttention-2) and H200 (FlashAttention-3) tables of
// data/microbench.
#pragma once

#include <array>

#include "core/machine/profile.h"
#include "costs/residual_field.h"

namespace tpsim {

struct FlashEstimate {
  Seconds time;
  Seconds bound;  // before the correction
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

  // Forward, backward; the same where values have their own width.
  std::array<ResidualField, 4> fields_;
  double best_flops_share_ = 0;
};

}  // namespace tpsim
