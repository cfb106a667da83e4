// Drawing context and widgets of the panels.
//
// Every labeled widget is registered in `Items` with its screen position, so that scripts and tests
// can find it by name.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gui/draw/fonts.h"
#include "gui/draw/palette.h"
#include "gui/panels/tab_stops.h"
#include "gui/views/app_state.h"
#include "gui/views/knob_values.h"
#include "gui/views/views.h"

namespace tpsim::gui {

struct Rect {
  ImVec2 min, max;
  float width() const { return max.x - min.x; }
  float height() const { return max.y - min.y; }
  ImVec2 center() const { return {(min.x + max.x) / 2, (min.y + max.y) / 2}; }
  bool holds(ImVec2 p) const { return p.x >= min.x && p.x < max.x && p.y >= min.y && p.y < max.y; }
};

using Items = std::map<std::string, Rect, std::less<>>;

// Actions that are executed in order after the frame.
enum class Request : std::uint8_t {
  kSaveView,
  kOpenFile,
  kExport,
  kCopyCommand,
  kSavePlan,
  kStopSearch,
  kSearch
};

class TableCache;
class SpanMasks;

struct Ui {
  AppState& state;
  const Views& views;
  const Palette& colors;
  const Fonts& fonts;
  float scale = 1;
  Items& items;
  TabStops& stops;
  TableCache& table_cache;
  SpanMasks& span_masks;
  std::vector<Request>& requests;

  float px(float length) const { return length * scale; }
  ImU32 ink(Rgba color) const { return IM_COL32(color.r, color.g, color.b, color.a); }
};

inline ImVec4 vec(Rgba color) {
  return ImGui::ColorConvertU32ToFloat4(IM_COL32(color.r, color.g, color.b, color.a));
}

enum class Align : std::uint8_t { kLeft, kCenter, kRight };

// Draws text. `at` is its upper left, middle or right point, depending on `align`. Returns the
// width.
float put_text(const Ui& ui, ImFont* font, ImVec2 at, Rgba color, std::string_view text,
               Align align = Align::kLeft);
ImVec2 text_size(ImFont* font, std::string_view text);
// Returns the text, shortened with "…" if it is wider than `width`.
std::string fitted(ImFont* font, std::string_view text, float width);
// Returns the text without as many last clauses, separated by " · ", as do not fit. The first
// clause is shortened like fitted().
std::string leading_clauses(ImFont* font, std::string_view text, float width);

// Splits a text into lines of at most `width`. Breaks only at spaces, and not before a "%" or a
// unit, so that no number is torn apart.
std::vector<std::string> wrapped_lines(ImFont* font, std::string_view text, float width);

void fill(const Ui& ui, Rect rect, Rgba color, float rounding = 0);
void outline(const Ui& ui, Rect rect, Rgba color, float rounding = 0, float thickness = 1);
void line(const Ui& ui, ImVec2 from, ImVec2 to, Rgba color, float thickness = 1);

// Draws a card with a title, and a note at its right. `body` draws into the rectangle below the
// title. `controls` is the width of controls that `body` draws at the right of the title.
void card(Ui& ui, const char* title, Rect rect, const std::string& note,
          const std::function<void(Rect)>& body, float controls = 0);

// Registers ImGui's last item under a label, with its position and as a Tab stop.
void note_item(Ui& ui, std::string_view label);
void note_area(Ui& ui, std::string_view label, Rect rect);

void tooltip(const Ui& ui, const char* text);
void hover_help(const Ui& ui, const char* text);  // for ImGui's last item

bool button(Ui& ui, const char* label, const char* help, bool is_on = false);

// A row with a slider over a list of values: "label  [---o----]". slider_row() returns whether the
// value changed.
struct SliderRow {
  const char* label;
  const char* help;
  std::span<const std::string> texts;  // one per slider position
  std::string before = {};  // value before another change adjusted it; empty: not adjusted
};
bool slider_row(Ui& ui, const SliderRow& row, int& stop);

// A row with segments: "label  [a|b|c]". Has several lines if the texts need them. A refused value
// is grey, and its reason is in a tooltip. segment_row() returns whether the selection changed.
struct SegmentRow {
  const char* label;
  const char* help;
  std::span<const KnobValue> values;
  std::string before = {};
};
bool segment_row(Ui& ui, const SegmentRow& row, int& chosen);

// A row that opens a list of values: "[label  value ▼]". Refused values are grey, with their reason
// in a tooltip. combo_row() returns whether a value was selected.
struct ComboRow {
  const char* label;
  const char* help;
  std::string shown;
  bool is_changed;                                 // differs from the default
  std::function<std::vector<KnobValue>()> values;  // called while the list is open
};
bool combo_row(Ui& ui, const ComboRow& row, KnobValue& chosen);

// Draws the name of plan A or B on a field of its color. `at`: upper left or right corner. Returns
// the width.
float plan_chip(const Ui& ui, ImVec2 at, Rgba color, const char* name, Align align = Align::kLeft);

// Shows a message in the middle of an empty card: why it is empty, and what to do.
void empty_state(const Ui& ui, Rect rect, const std::string& what, const std::string& remedy);
// Draws a text in the place of a missing plan: that the search is running, or that the plan table
// shows why there is none.
void no_plan_state(const Ui& ui, Rect rect);

// Shows a message in the card of a plan that cannot run. The headline shows the reason.
void no_prediction(const Ui& ui, Rect rect);

// Whether a card is high enough for a legend of this height. In a lower card the tooltips name the
// colors.
inline bool has_legend(Rect rect, float height) { return height <= 0.5F * rect.height(); }

// Draws a colored square and its name. Returns the position of the next entry.
float legend_entry(const Ui& ui, ImVec2 at, Rgba color, std::string_view name);

void apply_style(Theme theme, float scale);

}  // namespace tpsim::gui
