// Times of memory-bound kernels, interpolated between measured sizes.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/machine/profile.h"

namespace tpsim {

// Returns the number of elements of an op: the product of the dims to which its time is
// proportional.
double elements_of(const OpKey& key);

class KernelTable {
 public:
  explicit KernelTable(const std::vector<OpSample>& samples);

  // Returns the time of an op from samples with the same kind, dtype and variant; empty if there
  // are none. Between measured sizes, log(time) is linear in log(elements). Above the largest size,
  // time is proportional to elements. Below the smallest size it is the time of the smallest.
  std::optional<Seconds> time(const OpKey& key) const;

 private:
  struct Point {
    double elements = 0;
    double seconds = 0;
  };
  std::unordered_map<OpKey, std::vector<Point>> curves_;  // by key without dims
};

}  // namespace tpsim
