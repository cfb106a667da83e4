// Plot of throughput over the number of GPUs, with logarithmic axes. A line shows perfect scaling
// from the first point.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gui/draw/drawing.h"

namespace tpsim::gui {

struct ScalingPoint {
  std::int64_t gpus = 1;
  double tokens_per_s = 1;
};

// Requires at least one point, sorted by ascending number of GPUs.
Drawing scaling_picture(std::string_view model, std::string_view cluster,
                        const std::vector<ScalingPoint>& points);

}  // namespace tpsim::gui
