// Corrections of a predicted time, averaged over measured samples near a query point.
//
// Each sample's residual, log(measured / predicted), is stored at the sample's coordinates. A query
// returns the average residual of nearby samples with the weights
//   w = 1 / (e + d^2)^3,  d the distance in units of the axes' lengths,
// and a small constant weight for a given residual, which the query returns far from all samples.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace tpsim {

inline constexpr std::size_t kFieldAxes = 6;
// Coordinates divided by the axes' lengths. Samples at a distance above 1 are hardly similar.
using FieldPoint = std::array<float, kFieldAxes>;

struct FieldSample {
  FieldPoint at{};
  float log_ratio = 0;
};

struct FieldValue {
  double log_ratio = 0;  // weighted average of the samples' residuals and that far from samples
  double weight = 0;     // total weight of the samples around the point
};

class ResidualField {
 public:
  // Weight of one sample at a distance of 1.5. With a lower total weight, no sample is near.
  static constexpr double kNearWeight = 0.077;

  ResidualField() = default;
  explicit ResidualField(std::vector<FieldSample> samples);

  // `far` is the residual far from all samples.
  FieldValue at(const FieldPoint& point, double far = 0) const;
  std::size_t size() const { return size_; }

 private:
  // Samples in structure-of-arrays layout, so that compilers vectorize loops over them.
  static constexpr std::size_t kLanes = 32;
  using Lanes = std::array<float, kLanes>;
  struct Block {
    std::array<Lanes, kFieldAxes> axes{};
    Lanes log_ratios{};
    Lanes share{};  // 1 for a sample, 0 for padding
  };

  std::vector<Block> blocks_;     // sorted by the first axis
  std::vector<float> last_axis_;  // first-axis coordinate of each block's last sample
  std::size_t size_ = 0;
};

}  // namespace tpsim
