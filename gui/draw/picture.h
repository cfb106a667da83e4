// A picture in memory, and functions for PNG files.
#pragma once

#include <filesystem>
#include <vector>

#include "core/base/result.h"
#include "gui/draw/palette.h"

namespace tpsim::gui {

struct Picture {
  int width = 0, height = 0;
  std::vector<Rgba> pixels;  // row by row from the top

  Picture() = default;
  Picture(int w, int h, Rgba color)
      : width(w),
        height(h),
        pixels(static_cast<std::size_t>(w) * static_cast<std::size_t>(h), color) {}
  Rgba& at(int x, int y) {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
  const Rgba& at(int x, int y) const {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
};

// Writes the file atomically. The alpha channel is dropped.
Status write_png(const std::filesystem::path& path, const Picture& picture);

}  // namespace tpsim::gui
