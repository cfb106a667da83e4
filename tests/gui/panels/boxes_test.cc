// Every panel at several sizes: no text is cut off or painted over another, no card leaves the
// window or covers another card.
#include <array>

#include "tests/gui/gui_fixture.h"

namespace tpsim::gui {
namespace {

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

constexpr std::array<const char*, 7> kCards = {
    "headline",          "Plan",    "Plans", "Time and memory", "Memory by stage",
    "Step time by term", "Timeline"};

bool overlap(const Rect& a, const Rect& b) {
  return std::min(a.max.x, b.max.x) > std::max(a.min.x, b.min.x) + 0.5F &&
         std::min(a.max.y, b.max.y) > std::max(a.min.y, b.min.y) + 0.5F;
}

// Returns texts that a control covers in part: those that start outside of it and end inside.
std::vector<std::string> covered_texts(const Session& session) {
  std::vector<std::string> covered;
  for (const TabStop& stop : session.stops()) {
    const Rect control{stop.min, stop.max};
    for (const PaintedText& text : session.painted()) {
      const Rect box{{text.min.x + 1, text.min.y + 2}, {text.max.x - 1, text.max.y - 2}};
      const bool is_inside = control.holds({(box.min.x + box.max.x) / 2, box.min.y + 2});
      const bool is_visible = box.min.y >= text.clip_min.y && box.max.y <= text.clip_max.y;
      if (text.is_over || is_inside || !is_visible || !overlap(box, control)) continue;
      covered.push_back("'" + text.text + "' under " + stop.label);
    }
  }
  return covered;
}

void check_boxes(GuiFixture& gui, int width, int height) {
  const Session& session = gui.host().session();
  CHECK(joined(cut_texts(session.painted())) == "");
  CHECK(joined(overlapping_texts(session.painted())) == "");
  CHECK(joined(covered_texts(session)) == "");
  for (std::size_t i = 0; i < kCards.size(); ++i) {
    const auto card = session.items().find(kCards[i]);
    if (card == session.items().end()) continue;
    INFO(kCards[i]);
    CHECK(card->second.min.x >= 0);
    CHECK(card->second.min.y >= 0);
    CHECK(card->second.max.x <= static_cast<float>(width));
    CHECK(card->second.max.y <= static_cast<float>(height));
    for (std::size_t k = i + 1; k < kCards.size(); ++k) {
      const auto other = session.items().find(kCards[k]);
      if (other == session.items().end()) continue;
      INFO(kCards[k]);
      CHECK_FALSE(overlap(card->second, other->second));
    }
  }
}

struct Shown {
  const char* name;
  const char* model;
  std::int64_t gpus;
};
// Plans that a search finds in seconds: dense, mixture of experts, no plan that fits.
constexpr std::array<Shown, 3> kShown = {
    {{"dense", "bloom-7b1", 16}, {"mixture", "mixtral-8x7b", 64}, {"too large", "gpt-1t", 8}}};

constexpr std::array<std::pair<int, int>, 3> kSizes = {{{800, 600}, {1280, 800}, {2560, 1440}}};

}  // namespace

TEST_CASE("no text is cut off or painted over another, and no card covers another") {
  for (const Shown& shown : kShown) {
    AppState state = small_state();
    state.choice.model = shown.model;
    state.choice.gpus = shown.gpus;
    GuiFixture gui(state);
    REQUIRE(gui.run("wait") == "");
    for (const auto& [width, height] : kSizes) {
      INFO(shown.name << " " << width << "x" << height);
      REQUIRE(gui.run("size " + std::to_string(width) + " " + std::to_string(height) +
                      "\nmove headline 0.5 0.5\nwait 2") == "");
      check_boxes(gui, width, height);
      const bool has_other = gui.host().session().items().contains("layout 2");
      if (!has_other) continue;
      REQUIRE(gui.run("click \"Pin as B\"\nclick \"layout 2\"\nmove headline 0.5 0.5\nwait") == "");
      check_boxes(gui, width, height);
      REQUIRE(gui.run("click \"Pin as B\"\nclick \"Reset to best\"\nwait") == "");
    }
  }
}

}  // namespace tpsim::gui
