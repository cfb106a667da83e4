// The price list of ops: how long the device takes for one.
//
// An op is looked up in the profile first; then interpolated between measured ops of its kind; then
// priced by the device's physical constants. Prices are of the device alone (what the host takes to
// issue the op belongs to the software stack), of an op that runs by itself, at the clocks that
// training sustains.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/profile.h"
#include "sim/matmul_model.h"

namespace tpsim {

enum class PriceSource : std::uint8_t { kExact, kInterpolated, kModel };
std::string_view name_of(PriceSource);

struct OpPrice {
  Seconds time;
  PriceSource source = PriceSource::kModel;
};

class OpCostModel {
 public:
  explicit OpCostModel(const Profile& profile);

  OpPrice price(const OpRecord& op) const;
  // Formula, inputs and where the constants come from.
  std::string explain(const OpRecord& op) const;

 private:
  OpPrice price_matmul(const OpKey& key) const;
  OpPrice price_flash(const OpRecord& op) const;
  OpPrice price_kernel(const OpRecord& op) const;
  double sustained(double compute_share) const;

  std::string profile_name_;
  std::string source_;
  DeviceFacts device_;
  DeviceModel model_;
  bool burst_clocks_;
  std::unordered_map<OpKey, Seconds> exact_;
  MatmulModel matmul_;
};

}  // namespace tpsim
