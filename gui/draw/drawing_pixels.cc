#include "gui/draw/drawing_pixels.h"

#include <imgui.h>

#include <cmath>
#include <map>
#include <utility>

#include "gui/draw/fonts.h"
#include "gui/draw/rasteriser.h"

namespace tpsim::gui {
namespace {

// Inter's height from ascender to descender is (2728 + 680) / 2816 of the font size in SVG.
constexpr double kHeightOfSize = 3408.0 / 2816.0;
constexpr double kDash = 5, kSpace = 3.5;

class Painter {
 public:
  Painter(const Drawing& drawing, float scale) : scale_(scale) {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.LogFilename = nullptr;
    io.DisplaySize = {length(drawing.width()), length(drawing.height())};
    io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
    load_fonts_of(drawing);
    ImGui::NewFrame();
    list_ = ImGui::GetBackgroundDrawList();
    for (const DrawnShape& shape : drawing.shapes()) paint(shape);
    ImGui::Render();
  }
  ~Painter() { ImGui::DestroyContext(); }
  Painter(const Painter&) = delete;
  Painter& operator=(const Painter&) = delete;

  Picture picture() const {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    Picture picture(static_cast<int>(size.x), static_cast<int>(size.y), {255, 255, 255, 255});
    rasterise(*ImGui::GetDrawData(), *ImGui::GetIO().Fonts, picture);
    return picture;
  }

 private:
  using FontKey = std::pair<double, bool>;  // size, bold

  float length(double value) const { return static_cast<float>(value) * scale_; }
  ImVec2 at(double x, double y) const { return {length(x), length(y)}; }

  void load_fonts_of(const Drawing& drawing) {
    ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
    atlas.Flags |= ImFontAtlasFlags_NoPowerOfTwoHeight;
    for (const DrawnShape& shape : drawing.shapes()) {
      if (shape.kind != ShapeKind::kText) continue;
      const FontKey key{shape.numbers[2], shape.is_bold};
      if (fonts_.contains(key)) continue;
      fonts_[key] = add_font(atlas, shape.is_bold, length(key.first * kHeightOfSize));
    }
    if (fonts_.empty()) atlas.AddFontDefault();
    atlas.Build();
    for (auto& [key, font] : fonts_) align_digits(*font);
  }

  void paint(const DrawnShape& shape) {
    const std::vector<double>& n = shape.numbers;
    const ImU32 ink = IM_COL32(shape.color.r, shape.color.g, shape.color.b, shape.color.a);
    switch (shape.kind) {
      case ShapeKind::kRects:
        for (std::size_t i = 0; i < n.size(); i += 4) {
          list_->AddRectFilled(at(n[i], n[i + 1]), at(n[i] + n[i + 2], n[i + 1] + n[i + 3]), ink);
        }
        break;
      case ShapeKind::kLine:
        list_->AddLine(at(n[0], n[1]), at(n[2], n[3]), ink, length(n[4]));
        break;
      case ShapeKind::kDashes: paint_dashes(n, ink); break;
      case ShapeKind::kCircle: list_->AddCircleFilled(at(n[0], n[1]), length(n[2]), ink); break;
      case ShapeKind::kRing:
        list_->AddCircle(at(n[0], n[1]), length(n[2]), ink, 0, length(kRingThickness));
        break;
      case ShapeKind::kText: paint_words(shape, ink); break;
    }
  }

  void paint_dashes(const std::vector<double>& n, ImU32 ink) {
    const double dx = n[2] - n[0], dy = n[3] - n[1], whole = std::hypot(dx, dy);
    for (double from = 0; from < whole; from += kDash + kSpace) {
      const double to = std::min(whole, from + kDash);
      list_->AddLine(at(n[0] + dx * from / whole, n[1] + dy * from / whole),
                     at(n[0] + dx * to / whole, n[1] + dy * to / whole), ink, length(n[4]));
    }
  }

  void paint_words(const DrawnShape& shape, ImU32 ink) {
    ImFont* font = fonts_.at({shape.numbers[2], shape.is_bold});
    const char* const begin = shape.words.data();
    const char* const end = begin + shape.words.size();
    const float width = font->CalcTextSizeA(font->FontSize, FLT_MAX, 0, begin, end).x;
    const float share = static_cast<float>(shape.anchor) / 2;  // 0, 1/2 or 1 left of the anchor
    const ImVec2 baseline = at(shape.numbers[0], shape.numbers[1]);
    list_->AddText(font, font->FontSize,
                   {std::round(baseline.x - share * width), std::round(baseline.y - font->Ascent)},
                   ink, begin, end);
  }

  float scale_;
  ImDrawList* list_ = nullptr;
  std::map<FontKey, ImFont*> fonts_;
};

}  // namespace

Picture pixels_of(const Drawing& drawing, float scale) { return Painter(drawing, scale).picture(); }

}  // namespace tpsim::gui
