#include "gui/panels/painted_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tpsim::gui {
namespace {

constexpr float kTolerance = 1;  // pixels; letters have margins

// Share of a line's height above and below the letters that is empty in most texts.
constexpr float kEmptyShare = 0.16F;

struct Box {
  float left, top, right, bottom;
  bool is_empty() const { return right <= left || bottom <= top; }
};

// Returns the letters that are visible, without the empty space around them.
Box letters_of(const PaintedText& text) {
  const float empty = kEmptyShare * (text.max.y - text.min.y);
  return {std::max(text.min.x, text.clip_min.x) + kTolerance,
          std::max(text.min.y + empty, text.clip_min.y),
          std::min(text.max.x, text.clip_max.x) - kTolerance,
          std::min(text.max.y - empty, text.clip_max.y)};
}

}  // namespace

PaintedText painted_text(std::string text, ImVec2 min, ImVec2 max) {
  const ImDrawList* const list = ImGui::GetWindowDrawList();
  const std::string_view owner = list->_OwnerName;
  const bool is_over = owner.starts_with("##") || owner == "notice" || owner == "help";
  return {std::move(text),
          min,
          max,
          list->GetClipRectMin(),
          list->GetClipRectMax(),
          ImGui::GetScrollMaxY() > 0,
          is_over};
}

std::vector<std::string> cut_texts(const PaintedTexts& texts) {
  std::vector<std::string> cut;
  for (const PaintedText& one : texts) {
    const float empty = kEmptyShare * (one.max.y - one.min.y);
    const bool loses_width =
        one.min.x < one.clip_min.x - kTolerance || one.max.x > one.clip_max.x + kTolerance;
    const bool loses_height = !one.scrolls && (one.min.y + empty < one.clip_min.y - kTolerance ||
                                               one.max.y - empty > one.clip_max.y + kTolerance);
    if (!one.text.empty() && (loses_width || loses_height)) cut.push_back(one.text);
  }
  return cut;
}

std::vector<std::string> overlapping_texts(const PaintedTexts& texts) {
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Box a = letters_of(texts[i]);
    if (a.is_empty() || texts[i].is_over) continue;
    for (std::size_t k = i + 1; k < texts.size(); ++k) {
      const Box b = letters_of(texts[k]);
      if (b.is_empty() || texts[k].is_over) continue;
      const Box both{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right),
                     std::min(a.bottom, b.bottom)};
      if (!both.is_empty()) {
        pairs.push_back(fmt::format("'{}' over '{}'", texts[k].text, texts[i].text));
      }
    }
  }
  return pairs;
}

}  // namespace tpsim::gui
