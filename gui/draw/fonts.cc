#include "gui/draw/fonts.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

namespace tpsim::gui {
namespace {

constexpr float kBodySize = 14.5F, kSmallSize = 12.5F, kBigSize = 24.0F;

constexpr ImWchar kRanges[] = {
#include "gui/draw/letters.inc"
    0};

ImFont* add_font(ImFontAtlas& atlas, bool is_bold, float pixels) {
  const FontFiles files = embedded_fonts();
  const std::span<const unsigned char> file = is_bold ? files.semibold : files.regular;
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  config.OversampleH = 2;
  config.OversampleV = 1;
  config.PixelSnapH = false;
  // The atlas does not change the file, but its interface requires a non-const pointer.
  void* data = const_cast<unsigned char*>(file.data());  // NOLINT
  return atlas.AddFontFromMemoryTTF(data, static_cast<int>(file.size()), std::round(pixels),
                                    &config, kRanges);
}

// Widens every digit to the width of the widest digit and centers its glyph.
void align_digits(ImFont& font) {
  float widest = 0;
  for (ImFontGlyph& glyph : font.Glyphs) {
    if (glyph.Codepoint >= '0' && glyph.Codepoint <= '9') widest = std::max(widest, glyph.AdvanceX);
  }
  for (ImFontGlyph& glyph : font.Glyphs) {
    if (glyph.Codepoint < '0' || glyph.Codepoint > '9') continue;
    const float shift = (widest - glyph.AdvanceX) / 2;
    glyph.X0 += shift;
    glyph.X1 += shift;
    glyph.AdvanceX = widest;
    font.IndexAdvanceX[static_cast<int>(glyph.Codepoint)] = widest;
  }
}

}  // namespace

Fonts load_fonts(ImFontAtlas& atlas, float scale) {
  atlas.Clear();
  atlas.Flags |= ImFontAtlasFlags_NoPowerOfTwoHeight;
  Fonts fonts;
  fonts.body = add_font(atlas, false, kBodySize * scale);
  fonts.small = add_font(atlas, false, kSmallSize * scale);
  fonts.bold = add_font(atlas, true, kBodySize * scale);
  fonts.big = add_font(atlas, true, kBigSize * scale);
  atlas.Build();
  for (ImFont* font : {fonts.body, fonts.small, fonts.bold, fonts.big}) align_digits(*font);
  return fonts;
}

}  // namespace tpsim::gui
