// Measured kernels that are bound by memory, read between the measured sizes.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/machine/profile.h"

namespace tpsim {

// Elements that an op works on: the product of the extents that its time grows with.
double elements_of(const OpKey& key);

class KernelTable {
 public:
  explicit KernelTable(const std::vector<OpSample>& samples);

  // Time of an op of this kind, element type and variant: log-log between measured sizes; beyond
  // them in proportion to the elements, never below the smallest measured time. Nothing when the
  // kind was never measured.
  std::optional<Seconds> time(const OpKey& key) const;

 private:
  struct Point {
    double elements = 0;
    double seconds = 0;
  };
  std::unordered_map<OpKey, std::vector<Point>> curves_;  // by key without dims
};

}  // namespace tpsim
