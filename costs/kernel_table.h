// Interpolation of measured memory-bound kernels.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/machine/profile.h"

namespace tpsim {

// Returns the number of elements of an op: the product of the extents that its time scales with.
double elements_of(const OpKey& key);

class KernelTable {
 public:
  explicit KernelTable(const std::vector<OpSample>& samples);

  // Time of an op of this kind, dtype and variant. Log-log between measured sizes; beyond them
  // proportional to the elements, and at least the smallest measured time. Empty if the kind was
  // not measured.
  std::optional<Seconds> time(const OpKey& key) const;

 private:
  struct Point {
    double elements = 0;
    double seconds = 0;
  };
  std::unordered_map<OpKey, std::vector<Point>> curves_;  // by key without dims
};

}  // namespace tpsim
