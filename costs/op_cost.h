// Device time of ops.
//
// An op is priced by the profile's sample if there is one, else by interpolation between measured
// ops of its kind, else by the device's physical constants. Prices are device time of an op that
// runs alone, at the clock that it sustains; costs/step_clock.h prices the ops of a step. Host time
// is a property of the software stack. A GEMM of a profile timed in short bursts
// (Profile::burst_clocks) is slowed as
//   t = t_burst (1 + u^8 (c^-8 - 1))^(1/8)
// where u is the share of the device's burst rate that the GEMM reaches and c = sustained_clock.
// Power limits the rate: a GEMM at full rate takes 1/c as long, and one at half the rate is not
// slowed. If the profile has a time at sustained clocks (Profile::sustained), that time is the
// price. The exponent was fitted on 183 GEMMs timed on a power-limited A100-PCIe
// (MooreThreads/SimuMax) against burst times of the A100-SXM4. bf16 and fp16 cost the same.
#pragma once

#include <string>
#include <unordered_map>

#include "core/machine/profile.h"
#include "core/software/stack_parts.h"
#include "costs/flash_model.h"
#include "costs/kernel_table.h"
#include "costs/matmul_model.h"
#include "costs/step_clock.h"

namespace tpsim {

class OpCostModel {
 public:
  // `site_clock`: sustained clocks of the GPUs relative to those of the profile
  // (ClusterSpec::gpu_clock).
  explicit OpCostModel(const Profile& profile, Fp32Matmul fp32 = Fp32Matmul::kIeee,
                       double site_clock = 1);

  OpPrice price(const OpRecord& op) const;
  // Returns the lowest clock of a step, that of GEMMs alone; 1 if no limit is known.
  double lowest_clock() const;
  // Returns the speed of an attention kernel relative to the kernel that the profile timed.
  double attention_speed(AttentionKernel kernel) const;
  // Returns the memory efficiency of an op kind relative to elementwise ops:
  // reduction_efficiency / streaming_efficiency for a reduction, else 1.
  double streaming_cost(OpKind kind) const;
  // Returns the formula, its inputs and the sources of the constants as text. `clock`: of the step.
  std::string explain(const OpRecord& op, double clock) const;

 private:
  OpPrice burst_price(const OpRecord& op) const;
  MatmulEstimate matmul_estimate(const OpRecord& op) const;
  OpPrice kernel_price(const OpRecord& op) const;
  double slowdown(const OpRecord& op, Seconds burst) const;
  bool has_narrow_clock(const OpRecord& op) const;
  double clock_alone(const OpRecord& op) const;
  double memory_efficiency(OpKind kind) const;

  std::string explain_matmul(const OpRecord& op) const;
  std::string explain_flash(const OpRecord& op) const;
  std::string explain_kernel(const OpRecord& op) const;

  std::string source_;
  DeviceFacts device_;
  DeviceModel model_;
  bool burst_clocks_;
  bool has_clocks_;  // GEMMs of a step are priced at its clock
  double gemm_clock_;
  std::unordered_map<OpKey, Seconds> exact_;      // by canonical key
  std::unordered_map<OpKey, Seconds> sustained_;  // by canonical key; takes precedence over exact_
  MatmulModel matmul_;
  FlashModel flash_;
  KernelTable kernels_;
};

}  // namespace tpsim
