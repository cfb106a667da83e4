// Numbers formatted for people: few digits, a unit, a fixed number of decimals.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/units.h"

namespace tpsim {

// A common unit for the times of one table. The largest time gets four significant digits.
struct TimeScale {
  const char* unit = "s";
  double factor = 1.0;  // from seconds to the unit
  int decimals = 1;
};
TimeScale time_scale(Seconds largest);
std::string scaled_text(Seconds time, const TimeScale& scale);  // without its unit

std::string time_text(Seconds time);  // "104.8 s"
// GiB without the unit: "58.9". gib_decimals() returns the decimals with which the largest size of
// a table has at least three digits.
std::string gib_text(Bytes bytes, int decimals = 1);
int gib_decimals(Bytes largest);
std::string percent_text(double share);       // "12.3 %"
std::string chance_text(double probability);  // "0.3 %", "< 0.1 %", "> 99.9 %"
std::string count_text(std::int64_t count);   // "12,345"
std::string counted_text(std::int64_t count, std::string_view noun);  // "2 nodes", "1 node"
std::string gpus_text(std::int64_t gpus);                             // "384 GPUs", "1 GPU"
std::string parameters_text(std::int64_t parameters);                 // "176.2 B"
std::string layers_text(std::span<const std::int64_t> layers);        // "5, 10 x 6, 5"

}  // namespace tpsim
