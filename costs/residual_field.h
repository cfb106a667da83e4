// Corrections known at scattered points, averaged around a query.
//
// A model predicts every sample; what it gets wrong there (the log of measured over predicted) is
// kept at the sample's coordinates. A query takes the average of nearby samples' errors, weighted
// by
//   w = 1 / (e + d^2)^3,  d the distance in units of the axes' lengths,
// with a weightless pull towards no correction, so that far from all samples the model stands
// alone.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace tpsim {

inline constexpr std::size_t kFieldAxes = 6;
// Coordinates over the axes' lengths: at a distance of 1 a sample says little about another.
using FieldPoint = std::array<float, kFieldAxes>;

struct FieldSample {
  FieldPoint at{};
  float log_ratio = 0;
};

struct FieldValue {
  double log_ratio = 0;  // between the least and the greatest of the samples, and zero
  double weight = 0;     // of all samples around the point
};

class ResidualField {
 public:
  // The weight of one sample at a distance of 1.5: below it, no sample is near.
  static constexpr double kNearWeight = 0.077;

  ResidualField() = default;
  explicit ResidualField(std::vector<FieldSample> samples);

  FieldValue at(const FieldPoint& point) const;
  std::size_t size() const { return size_; }

 private:
  // Samples side by side, axis by axis, so that a scan runs in vector registers.
  static constexpr std::size_t kLanes = 32;
  using Lanes = std::array<float, kLanes>;
  struct Block {
    std::array<Lanes, kFieldAxes> axes{};
    Lanes log_ratios{};
    Lanes share{};  // 1 for a sample, 0 for padding
  };

  std::vector<Block> blocks_;     // sorted by the first axis
  std::vector<float> last_axis_;  // of each block's last sample along the first axis
  std::size_t size_ = 0;
};

}  // namespace tpsim
