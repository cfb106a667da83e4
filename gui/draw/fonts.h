// The typeface of the program: Inter (SIL Open Font License 1.1), embedded at build time, in
// several sizes. All digits have the same width, so that columns of numbers align.
#pragma once

#include <span>

struct ImFont;
struct ImFontAtlas;

namespace tpsim::gui {

struct FontFiles {
  std::span<const unsigned char> regular, semibold;
};
FontFiles embedded_fonts();

struct Fonts {
  ImFont* body = nullptr;
  ImFont* small = nullptr;
  ImFont* bold = nullptr;
  ImFont* big = nullptr;
};

// Replaces all fonts of the atlas by the program's fonts at this scale of the interface.
Fonts load_fonts(ImFontAtlas& atlas, float scale);

}  // namespace tpsim::gui
