// Axes: which numbers to write beside a scale, and where a value lies on it.
#pragma once

#include <string>
#include <vector>

namespace tpsim::gui {

struct Tick {
  double value = 0;
  std::string label;
};

// From data to [0, 1]. Logarithmic scales take positive values only.
struct AxisScale {
  double least = 0;
  double most = 1;
  bool logarithmic = false;

  double share(double value) const;  // not clamped
  double value(double share) const;
};

// Round numbers inside the scale (1, 2 or 5 times a power of ten), at most `most_ticks` of them,
// labelled with as many decimals as they need.
std::vector<Tick> ticks(const AxisScale& scale, int most_ticks);

// The least scale, with some air, that holds the values. Logarithmic where the largest is more than
// three times the smallest.
AxisScale scale_around(double least, double most);

// "1.25 s", "340 ms", "12.5 us": a time on an axis whose ticks are `step` apart, in the unit of its
// largest.
std::string time_tick(double seconds, double step, double largest);

}  // namespace tpsim::gui
