// Every panel, tab, popup, combo box and tooltip at several sizes, light and dark: no text is cut
// off, faint or painted over another, no card leaves the window or covers another card.
#include <fmt/format.h>
#include <imgui_internal.h>

#include <array>

#include "tests/gui/gui_fixture.h"
#include "tests/gui/painted_texts.h"

namespace tpsim::gui {
namespace {

constexpr std::array<const char*, 7> kCards = {
    "headline", "Plan", "Plans", "Time and memory", "Memory by stage", "Step time", "Timeline"};

bool overlap(const Rect& a, const Rect& b) {
  return std::min(a.max.x, b.max.x) > std::max(a.min.x, b.min.x) + 0.5F &&
         std::min(a.max.y, b.max.y) > std::max(a.min.y, b.min.y) + 0.5F;
}

// Returns texts of the panels that a control covers in part: those whose middle is outside of the
// control.
std::string covered_texts(const Session& session, const std::vector<PaintedText>& texts) {
  std::string covered;
  for (const TabStop& stop : session.stops()) {
    if (std::string_view(stop.window->RootWindow->Name) != "tpsim") continue;
    const ImRect& seen = stop.window->InnerClipRect;
    const Rect control{{stop.min.x + 1, std::max(stop.min.y + 1, seen.Min.y)},
                       {stop.max.x - 1, std::min(stop.max.y - 1, seen.Max.y)}};
    for (const PaintedText& text : texts) {
      if (text.root != "tpsim" || !overlap(text.box, control)) continue;
      if (control.holds(text.box.center())) continue;
      covered += "'" + text.text + "' under " + stop.label + "\n";
    }
  }
  return covered;
}

// Returns the texts of the panels that end with "…". The sentences of the headline may: in a low
// window the rest of a sentence is in its tooltip.
std::string shortened_texts(const Session& session, const std::vector<PaintedText>& texts) {
  const Rect& headline = session.items().at("headline");
  std::string shortened;
  for (const PaintedText& text : texts) {
    const bool is_sentence = headline.holds(text.box.center()) && text.text.size() > 60;
    const bool is_panels = text.root == "tpsim" && !is_sentence;
    if (is_panels && text.text.ends_with("…")) shortened += text.text + "\n";
  }
  return shortened;
}

void check_cards(const Session& session) {
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  for (std::size_t i = 0; i < kCards.size(); ++i) {
    const auto card = session.items().find(kCards[i]);
    if (card == session.items().end()) continue;
    INFO(kCards[i]);
    CHECK(card->second.min.x >= 0);
    CHECK(card->second.min.y >= 0);
    CHECK(card->second.max.x <= screen.x);
    CHECK(card->second.max.y <= screen.y);
    for (std::size_t k = i + 1; k < kCards.size(); ++k) {
      const auto other = session.items().find(kCards[k]);
      if (other == session.items().end()) continue;
      INFO(kCards[k]);
      CHECK_FALSE(overlap(card->second, other->second));
    }
  }
}

void check_boxes(GuiFixture& gui) {
  const std::vector<PaintedText> texts = painted_texts();
  REQUIRE(texts.size() > 20);
  CHECK(cut_texts(texts) == "");
  CHECK(overlapping_texts(texts) == "");
  CHECK(covered_texts(gui.host().session(), texts) == "");
  const bool is_large = ImGui::GetIO().DisplaySize.x > 2000;  // has the colors of smaller windows
  if (!is_large) CHECK(faint_texts(texts, gui.host().picture()) == "");
  CHECK(windows_off_screen() == "");
  check_cards(gui.host().session());
}

// A state of the window: how a script reaches and leaves the state.
struct Shown {
  const char* name;
  const char* reach;
  const char* leave;
};
constexpr std::array<Shown, 12> kShown = {{
    {"panels", "move headline 0.5 0.5", ""},
    {"plan B", "click \"Pin as B\"\nclick \"layout 2\"\nmove headline 0.5 0.5\nwait",
     "click \"Pin as B\"\nclick \"Reset to best\"\nwait"},
    {"differences without plan B", "click \"A and B\"", "click Breakdown"},
    {"no measurements", "click Measured", "click Breakdown"},
    {"variants", "click \"variants 1\"", "click \"variants 1\""},
    {"filter", "click \"filter plans\"\ntype \"tp=2 nonsense\"",
     "click \"filter plans\"\npress Ctrl+A\npress Delete"},
    {"models", "click model", "press Escape"},
    {"clusters", "click cluster", "press Escape"},
    {"export", "click Export", "press Escape"},
    {"files", "click Save", "press Escape"},
    {"help", "click Help", "click \"Close help\""},
    {"message", "click \"Copy command\"\nwait 2", ""},
}};

// Runs a script. A control that this plan or size does not have is not an error.
bool runs(GuiFixture& gui, const std::string& script) {
  const std::string error = gui.run(script);
  if (error.empty()) return true;
  INFO(error);
  CHECK(error.find("has no element") != std::string::npos);
  return false;
}

void check_states(GuiFixture& gui) {
  for (const Shown& shown : kShown) {
    INFO(shown.name);
    if (!runs(gui, shown.reach)) continue;
    REQUIRE(gui.run("wait 2") == "");
    check_boxes(gui);
    REQUIRE(gui.run(shown.leave) == "");
    gui.state().notice.clear();
  }
}

// Hovers over every control and area that has a label. Returns the number of tooltips.
int check_tooltips(GuiFixture& gui) {
  std::vector<std::string> labels;
  for (const auto& [label, area] : gui.host().session().items()) {
    const bool is_row = label.starts_with("plan ") || label.starts_with("layout ");
    if (!is_row) labels.push_back(label);  // rows have no tooltip
  }
  int tooltips = 0;
  for (const std::string& label : labels) {
    INFO("hover " << label);
    if (!runs(gui, "move \"" + label + "\" 0.5 0.5")) continue;
    const std::vector<PaintedText> texts = painted_texts();
    CHECK(cut_texts(texts) == "");
    CHECK(windows_off_screen() == "");
    const bool has_tooltip = texts.back().root.starts_with("##Tooltip");
    if (!has_tooltip) continue;
    if (++tooltips > 1) continue;  // all tooltips have the same colors
    CHECK(faint_texts(texts, gui.host().picture()) == "");
  }
  return tooltips;
}

struct Planned {
  const char* name;
  const char* model;
  const char* cluster;
  std::int64_t gpus;
};
// Plans that a search finds in seconds: dense, mixture of experts, no plan that fits.
constexpr std::array<Planned, 3> kPlanned = {{{"dense", "bloom-7b1", "jean-zay-a100", 16},
                                              {"mixture", "mixtral-8x7b", "dgx-h100", 64},
                                              {"too large", "gpt-1t", "jean-zay-a100", 8}}};

constexpr std::array<std::pair<int, int>, 3> kSizes = {{{800, 600}, {1280, 800}, {2560, 1440}}};

AppState state_of(const Planned& planned) {
  AppState state = small_state();
  state.choice.model = planned.model;
  state.choice.cluster = planned.cluster;
  state.choice.gpus = planned.gpus;
  return state;
}

}  // namespace

TEST_CASE("no text is cut off, faint or painted over another, and no card covers another") {
  for (const Planned& planned : kPlanned) {
    GuiFixture gui(state_of(planned));
    REQUIRE(gui.run("wait\nexpect plan.runs yes") == "");
    for (const char* theme : {"light", "dark"}) {
      for (const auto& [width, height] : kSizes) {
        INFO(planned.name << " " << theme << " " << width << "x" << height);
        REQUIRE(gui.run(fmt::format("theme {}\nsize {} {}\nwait 2", theme, width, height)) == "");
        CHECK(shortened_texts(gui.host().session(), painted_texts()) == "");
        check_states(gui);
      }
    }
  }
}

TEST_CASE("tooltips are whole, inside the window and readable") {
  for (const Planned& planned : kPlanned) {
    GuiFixture gui(state_of(planned));
    REQUIRE(gui.run("wait\nexpect plan.runs yes") == "");
    for (const auto& [width, height] : kSizes) {
      const char* const theme = width == 1280 ? "dark" : "light";
      INFO(planned.name << " " << theme << " " << width << "x" << height);
      REQUIRE(gui.run(fmt::format("theme {}\nsize {} {}\nwait 2", theme, width, height)) == "");
      CHECK(check_tooltips(gui) > 20);
    }
  }
}

}  // namespace tpsim::gui
