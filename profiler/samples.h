// Measured times by what was measured, and what a profile says of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/machine/profile.h"

namespace tpsim {

// Median and spread (median absolute deviation over median) of at least one number.
struct MedianSpread {
  double median = 0;
  double spread = 0;
};
MedianSpread median_and_spread(std::vector<double> numbers);

class Samples {
 public:
  void add(const OpKey& key, double seconds) { ops_[key].push_back(seconds); }
  void add_sustained(const OpKey& key, double seconds) { sustained_[key].push_back(seconds); }
  void add(CollectiveKind kind, std::int64_t ranks, std::int64_t bytes, double seconds) {
    collectives_[{kind, ranks, bytes}].push_back(seconds);
  }
  // Durations of one rank's undisturbed steps; at least two say how much they vary.
  void add_steps(const std::vector<double>& seconds);
  void add(const Samples& other);
  // All of it as bytes, for another process of this program (core/base/packed.h).
  std::string packed() const;
  static Samples unpacked(std::string_view bytes);

  bool has(const OpKey& key) const { return ops_.contains(key); }
  // By key.
  std::vector<OpSample> ops() const;
  std::vector<OpSample> sustained() const;
  // Of what has been added for an op so far; 0 when nothing.
  double median(const OpKey& key) const;
  std::vector<CollectiveSample> collectives() const;
  // Standard deviation of a rank's step over its mean, median over all that were added; 0 without.
  double rank_jitter() const;

 private:
  using Call = std::tuple<CollectiveKind, std::int64_t, std::int64_t>;

  std::map<OpKey, std::vector<double>> ops_, sustained_;
  std::map<Call, std::vector<double>> collectives_;
  std::vector<double> step_spreads_;
};

}  // namespace tpsim
