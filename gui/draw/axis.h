// Axes of plots: positions of values, and labeled ticks.
#pragma once

#include <string>
#include <vector>

namespace tpsim::gui {

struct Tick {
  double value = 0;
  std::string label;
};

// Maps the interval [least, most] to [0, 1]. A logarithmic scale requires positive values.
struct AxisScale {
  double least = 0;
  double most = 1;
  bool logarithmic = false;

  double share(double value) const;  // not clamped
};

// Returns at most `most_ticks` ticks inside the scale. On a linear scale, ticks are multiples of 1,
// 2 or 5 times a power of ten. Labels have as many decimals as the tick distance requires.
std::vector<Tick> ticks(const AxisScale& scale, int most_ticks);

// Returns a scale that contains both values, with a margin. The scale is logarithmic if `most` is
// more than three times `least`.
AxisScale scale_around(double least, double most);

// Formats the time of a tick, such as "1.25 s", "340 ms" or "12.5 us". The unit follows from
// `largest`, the largest value of the axis. The number of decimals follows from `step`, the
// distance between ticks.
std::string time_tick(double seconds, double step, double largest);

}  // namespace tpsim::gui
