#include "tests/gui/painted_texts.h"

#include <fmt/format.h>
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace tpsim::gui {
namespace {

constexpr float kTolerance = 1;  // pixels; letters have soft edges

struct Letter {
  const ImFontGlyph* glyph = nullptr;
  ImVec2 min, max;  // as painted
  ImVec2 pen;       // where the letter's line and advance begin
  ImVec2 clip_min, clip_max;
  ImU32 ink = 0;
  bool is_whole = true;  // not clipped by ImGui before the letter was painted
};

// Finds letters by their place in the font atlas.
class Letters {
 public:
  Letters() {
    for (const ImFont* font : ImGui::GetIO().Fonts->Fonts) {
      for (const ImFontGlyph& glyph : font->Glyphs) {
        if (glyph.Visible != 0) by_place_[{glyph.U0, glyph.V0}] = &glyph;
        spaces_[&glyph] = font->GetCharAdvance(' ');
      }
    }
  }
  float space_of(const ImFontGlyph* glyph) const { return spaces_.at(glyph); }
  const ImFontGlyph* at(ImVec2 from, ImVec2 to) const {
    const auto found = by_place_.find({from.x, from.y});
    if (found != by_place_.end()) return found->second;
    for (const auto& [place, glyph] : by_place_) {
      const bool is_inside =
          from.x >= glyph->U0 && to.x <= glyph->U1 && from.y >= glyph->V0 && to.y <= glyph->V1;
      if (is_inside && to.x > from.x) return glyph;
    }
    return nullptr;
  }

 private:
  std::map<std::pair<float, float>, const ImFontGlyph*> by_place_;
  std::map<const ImFontGlyph*, float> spaces_;
};

// Returns the letter that six indices of a draw command paint as two triangles.
std::optional<Letter> letter_of(const Letters& letters, const ImDrawVert& from,
                                const ImDrawVert& to) {
  const ImFontGlyph* const glyph = letters.at(from.uv, to.uv);
  if (glyph == nullptr) return std::nullopt;
  Letter letter;
  letter.glyph = glyph;
  letter.min = from.pos;
  letter.max = to.pos;
  letter.pen = {from.pos.x - glyph->X0, from.pos.y - glyph->Y0};
  letter.ink = from.col;
  letter.is_whole = std::abs(to.pos.x - from.pos.x - (glyph->X1 - glyph->X0)) < kTolerance &&
                    std::abs(to.pos.y - from.pos.y - (glyph->Y1 - glyph->Y0)) < kTolerance;
  return letter;
}

std::vector<Letter> letters_of(const ImDrawList& list, const Letters& known) {
  std::vector<Letter> letters;
  for (const ImDrawCmd& command : list.CmdBuffer) {
    const ImDrawIdx* const index = list.IdxBuffer.Data + command.IdxOffset;
    const ImDrawVert* const vertex = list.VtxBuffer.Data + command.VtxOffset;
    for (unsigned i = 0; i + 6 <= command.ElemCount;) {
      const unsigned a = index[i];
      const bool is_quad = index[i + 1] == a + 1 && index[i + 2] == a + 2 && index[i + 3] == a &&
                           index[i + 4] == a + 2 && index[i + 5] == a + 3;
      auto letter = is_quad ? letter_of(known, vertex[a], vertex[a + 2]) : std::nullopt;
      i += is_quad ? 6 : 3;
      if (!letter) continue;
      letter->clip_min = {command.ClipRect.x, command.ClipRect.y};
      letter->clip_max = {command.ClipRect.z, command.ClipRect.w};
      letters.push_back(*letter);
    }
  }
  return letters;
}

bool is_cut(const Letter& letter, bool scrolls) {
  const bool loses_width = letter.min.x < letter.clip_min.x - kTolerance ||
                           letter.max.x > letter.clip_max.x + kTolerance;
  const bool loses_height = letter.min.y < letter.clip_min.y - kTolerance ||
                            letter.max.y > letter.clip_max.y + kTolerance;
  return loses_width || (!scrolls && (loses_height || !letter.is_whole));
}

Rect visible_part(const Letter& letter) {
  return {{std::max(letter.min.x, letter.clip_min.x), std::max(letter.min.y, letter.clip_min.y)},
          {std::min(letter.max.x, letter.clip_max.x), std::min(letter.max.y, letter.clip_max.y)}};
}

bool scrolls(const ImDrawList& list) {
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (window->DrawList == &list) return window->ScrollMax.y > 0;
  }
  return false;
}

std::string utf8(unsigned letter) {
  std::array<char, 5> text{};
  ImTextCharToUtf8(text.data(), letter);
  return text.data();
}

void add_texts(const ImDrawList& list, const Letters& known, std::vector<PaintedText>& texts) {
  const std::string_view owner = list._OwnerName == nullptr ? "" : list._OwnerName;
  const std::string root(owner.substr(0, owner.find('/')));
  const bool can_scroll = scrolls(list);
  float line = 0, pen = 0;
  ImU32 ink = 0;
  for (const Letter& letter : letters_of(list, known)) {
    const Rect seen = visible_part(letter);
    if (seen.width() <= 0 || seen.height() <= 0) continue;
    const float gap = letter.pen.x - pen;
    const float space = 1.2F * known.space_of(letter.glyph);
    const bool goes_on = !texts.empty() && texts.back().root == root && ink == letter.ink &&
                         std::abs(letter.pen.y - line) < 0.5F && gap > -kTolerance && gap < space;
    if (!goes_on) {
      const ImVec4 color = ImGui::ColorConvertU32ToFloat4(letter.ink);
      const auto byte = [](float share) { return static_cast<std::uint8_t>(share * 255 + 0.5F); };
      texts.push_back(
          {"", seen, {byte(color.x), byte(color.y), byte(color.z), byte(color.w)}, root, false});
    }
    PaintedText& text = texts.back();
    text.text += utf8(letter.glyph->Codepoint);
    text.box.min = {std::min(text.box.min.x, seen.min.x), std::min(text.box.min.y, seen.min.y)};
    text.box.max = {std::max(text.box.max.x, seen.max.x), std::max(text.box.max.y, seen.max.y)};
    text.is_cut = text.is_cut || is_cut(letter, can_scroll);
    line = letter.pen.y;
    pen = letter.pen.x + letter.glyph->AdvanceX;
    ink = letter.ink;
  }
}

bool overlap(const Rect& a, const Rect& b) {
  return std::min(a.max.x, b.max.x) > std::max(a.min.x, b.min.x) + kTolerance &&
         std::min(a.max.y, b.max.y) > std::max(a.min.y, b.min.y) + kTolerance;
}

// Whether the window floats above the panels: a popup, combo box, tooltip, message or the help.
bool is_above(std::string_view root) { return root != "tpsim"; }

std::vector<const ImGuiWindow*> windows_above() {
  std::vector<const ImGuiWindow*> windows;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    const bool is_drawn = window->Active && !window->Hidden && window->RootWindow == window;
    const std::string_view name = window->Name;
    if (is_drawn && is_above(name) && !name.starts_with("Debug##")) windows.push_back(window);
  }
  return windows;
}

Rgba commonest_color(const Picture& picture, const Rect& box) {
  std::map<std::array<std::uint8_t, 3>, int> counts;
  const auto pixel = [](float at, int end) { return std::clamp(static_cast<int>(at), 0, end); };
  for (int y = pixel(box.min.y, picture.height); y < pixel(box.max.y, picture.height); ++y) {
    for (int x = pixel(box.min.x - 1, picture.width); x < pixel(box.max.x + 1, picture.width);
         ++x) {
      const Rgba color = picture.at(x, y);
      ++counts[{color.r, color.g, color.b}];
    }
  }
  Rgba commonest;
  int most = 0;
  for (const auto& [color, count] : counts) {
    if (count <= most) continue;
    most = count;
    commonest = {color[0], color[1], color[2], 255};
  }
  return commonest;
}

}  // namespace

std::vector<PaintedText> painted_texts() {
  const Letters known;
  std::vector<PaintedText> texts;
  const ImDrawData& data = *ImGui::GetDrawData();
  for (int i = 0; i < data.CmdListsCount; ++i) add_texts(*data.CmdLists[i], known, texts);
  return texts;
}

bool is_painted(std::string_view text) {
  std::string wanted(text), all;
  std::erase(wanted, ' ');
  for (const PaintedText& one : painted_texts()) all += one.text;
  return all.find(wanted) != std::string::npos;
}

std::string cut_texts(const std::vector<PaintedText>& texts) {
  std::string cut;
  for (const PaintedText& text : texts) {
    if (text.is_cut) cut += text.text + "\n";
  }
  return cut;
}

std::string overlapping_texts(const std::vector<PaintedText>& texts) {
  std::string pairs;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t k = i + 1; k < texts.size(); ++k) {
      if (texts[i].root != texts[k].root || !overlap(texts[i].box, texts[k].box)) continue;
      pairs += fmt::format("'{}' over '{}'\n", texts[k].text, texts[i].text);
    }
  }
  return pairs;
}

std::string faint_texts(const std::vector<PaintedText>& texts, const Picture& picture) {
  const std::vector<const ImGuiWindow*> above = windows_above();
  std::string faint;
  for (const PaintedText& text : texts) {
    const auto covers = [&](const ImGuiWindow* window) {
      return text.root != window->Name &&
             overlap(text.box, {window->Pos,
                                {window->Pos.x + window->Size.x, window->Pos.y + window->Size.y}});
    };
    if (std::any_of(above.begin(), above.end(), covers)) continue;
    if (text.box.height() < 4) continue;  // the rest of the line is scrolled away
    const Rgba ground = commonest_color(picture, text.box);
    const Rgba ink = mix(ground, {text.ink.r, text.ink.g, text.ink.b, 255}, text.ink.a / 255.0);
    const double ratio = contrast(ink, ground);
    if (ratio >= 4.5) continue;
    faint += fmt::format("'{}' {} on {}: {:.2f}\n", text.text, hex(ink), hex(ground), ratio);
  }
  return faint;
}

std::string windows_off_screen() {
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  std::string names;
  for (const ImGuiWindow* window : windows_above()) {
    const bool is_inside = window->Pos.x >= 0 && window->Pos.y >= 0 &&
                           window->Pos.x + window->Size.x <= screen.x &&
                           window->Pos.y + window->Size.y <= screen.y;
    if (!is_inside) names += std::string(window->Name) + "\n";
  }
  return names;
}

}  // namespace tpsim::gui
