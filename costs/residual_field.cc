#include "costs/residual_field.h"

#include <algorithm>
#include <numeric>

namespace tpsim {
namespace {

constexpr float kSoftening = 0.1F;    // e: limits the weight of a sample at the query's point
constexpr double kFarWeight = 0.001;  // weight of `far`; that of a sample at distance 3.1
constexpr float kReach = 1.75F;       // largest distance along the first axis

}  // namespace

ResidualField::ResidualField(std::vector<FieldSample> samples) : size_(samples.size()) {
  std::sort(samples.begin(), samples.end(),
            [](const FieldSample& a, const FieldSample& b) { return a.at < b.at; });
  blocks_.resize((size_ + kLanes - 1) / kLanes);
  last_axis_.resize(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size() * kLanes; ++i) {
    // The last block is padded with copies of weight 0, so that loops over lanes need no remainder.
    const bool padding = i >= size_;
    const FieldSample& sample = samples[std::min(i, size_ - 1)];
    Block& block = blocks_[i / kLanes];
    for (std::size_t axis = 0; axis < kFieldAxes; ++axis) {
      block.axes[axis][i % kLanes] = sample.at[axis];
    }
    block.log_ratios[i % kLanes] = sample.log_ratio;
    block.share[i % kLanes] = padding ? 0.0F : 1.0F;
    last_axis_[i / kLanes] = sample.at[0];
  }
}

// Scans all blocks with samples within kReach. This includes a few samples beyond kReach, whose
// weight is negligible.
FieldValue ResidualField::at(const FieldPoint& point, double far) const {
  const auto first = std::lower_bound(last_axis_.begin(), last_axis_.end(), point[0] - kReach);
  auto block = blocks_.begin() + (first - last_axis_.begin());
  Lanes weights{};
  Lanes sums{};
  for (; block != blocks_.end() && block->axes[0][0] <= point[0] + kReach; ++block) {
    Lanes squares;
    squares.fill(kSoftening);
    for (std::size_t axis = 0; axis < kFieldAxes; ++axis) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const float distance = block->axes[axis][lane] - point[axis];
        squares[lane] += distance * distance;
      }
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float cube = squares[lane] * squares[lane] * squares[lane];
      const float weight = block->share[lane] / cube;
      weights[lane] += weight;
      sums[lane] += weight * block->log_ratios[lane];
    }
  }
  const double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
  return {(sum + kFarWeight * far) / (weight + kFarWeight), weight};
}

}  // namespace tpsim
