// Axes: ticks with labels, and positions of values.
#pragma once

#include <string>
#include <vector>

namespace tpsim::gui {

struct Tick {
  double value = 0;
  std::string label;
};

// Maps data to [0, 1]. Logarithmic scales require positive values.
struct AxisScale {
  double least = 0;
  double most = 1;
  bool logarithmic = false;

  double share(double value) const;  // not clamped
  double value(double share) const;
};

// Returns at most `most_ticks` round numbers inside the scale (1, 2 or 5 times a power of ten),
// labelled with the necessary decimals.
std::vector<Tick> ticks(const AxisScale& scale, int most_ticks);

// Returns the smallest scale with a margin that contains the values. Logarithmic if the largest
// value is more than three times the smallest.
AxisScale scale_around(double least, double most);

// Formats a time on an axis with ticks `step` apart, in the unit of the axis's largest value: "1.25
// s", "340 ms", "12.5 us".
std::string time_tick(double seconds, double step, double largest);

}  // namespace tpsim::gui
