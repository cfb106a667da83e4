// The typefaces of the program: Inter (SIL Open Font License 1.1), embedded at build time, in the
// few sizes in use. Its digits are set to one width, so that columns of numbers line up.
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

// One more font of an atlas that is not built yet, `pixels` high from ascender to descender.
ImFont* add_font(ImFontAtlas& atlas, bool is_bold, float pixels);
// Of a font whose atlas is built.
void align_digits(ImFont& font);

// Fills the atlas for a scale of the interface, replacing what it held.
Fonts load_fonts(ImFontAtlas& atlas, float scale);

}  // namespace tpsim::gui
