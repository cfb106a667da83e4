// Measured times by op and collective, and their statistics for a profile.
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
  // Adds the durations in seconds of one rank's undisturbed steps. Ignored if there are fewer than
  // two, which have no spread.
  void add_steps(const std::vector<double>& seconds);
  void add(const Samples& other);
  // Serializes all samples for another process of this program (core/base/packed.h).
  std::string packed() const;
  static Samples unpacked(std::string_view bytes);

  bool has(const OpKey& key) const { return ops_.contains(key); }
  // Return median, spread and number of samples of each op, sorted by key. sustained() is for
  // sustained clocks.
  std::vector<OpSample> ops() const;
  std::vector<OpSample> sustained() const;
  // Returns the median of an op's samples so far; 0 if there are none.
  double median(const OpKey& key) const;
  std::vector<CollectiveSample> collectives() const;
  // Returns the standard deviation of a rank's step time over its mean, as median over all ranks; 0
  // without steps.
  double rank_jitter() const;

 private:
  using Call = std::tuple<CollectiveKind, std::int64_t, std::int64_t>;

  std::map<OpKey, std::vector<double>> ops_, sustained_;
  std::map<Call, std::vector<double>> collectives_;
  std::vector<double> step_spreads_;
};

}  // namespace tpsim
