// The typefaces of the program: Inter (SIL Open Font License 1.1), embedded at build time, in the
// few sizes in use. Its digits are set to one width, so that columns of numbers line up.
#pragma once

#include <span>

struct ImFont;
struct ImFontAtlas;

namespace tpsim {

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

// Fills the atlas for a scale of the interface, replacing what it held.
Fonts load_fonts(ImFontAtlas& atlas, float scale);

}  // namespace tpsim
