// Key figures: step time, its interval, memory. Plan B's are below plan A's.
#include <fmt/format.h>

#include <cmath>

#include "core/base/numbers.h"
#include "gui/panels/panels.h"

namespace tpsim::gui {
namespace {

struct Figure {
  const char* label;
  std::string value;
  std::string detail;
  Rgba color;
};

std::vector<Figure> figures_of(const Ui& ui, const PlanView& view) {
  const Prediction& p = view.predicted;
  const TimeScale scale = time_scale(p.step);
  const Palette& c = ui.colors;
  const Rgba chance = p.p_oom >= 0.2 ? c.bad : p.p_oom >= 0.05 ? c.warn : c.good;
  return {
      {"Step time", fmt::format("{} {}", scaled_text(p.step, scale), scale.unit),
       view.has_interval ? fmt::format("90 %: {}–{} {}", scaled_text(p.step_low, scale),
                                       scaled_text(p.step_high, scale), scale.unit)
                         : std::string("90 %: …"),
       c.text},
      {"Speed", fmt::format("{:.1f}", p.hardware_tflops_per_gpu),
       fmt::format("hardware TFLOP/s per GPU, model {:.1f}", p.model_tflops_per_gpu), c.text},
      {"MFU", percent_text(p.mfu), "of the GPU's peak", c.text},
      {"Tokens", count_text(std::llround(p.tokens_per_s)), "per second", c.text},
      {"Memory", fmt::format("{} GiB", gib_text(p.peak, gib_decimals(p.peak))),
       fmt::format("of {} GiB, fullest GPU", gib_text(p.capacity)), c.text},
      {"Out of memory", chance_text(p.p_oom), "probability", chance},
      {"Bubble", percent_text(p.bubble_fraction), "idle in the pipeline", c.text},
  };
}

constexpr std::array<float, 7> kShares = {1.15F, 1.6F, 0.95F, 1.2F, 1.25F, 1.05F, 1.05F};

// Returns "software assumed: nemo, network assumed: of dgx-h100; +22 % with both stated"; empty if
// nothing is assumed.
std::string assumed_text(const PlanView& view) {
  std::string text;
  for (const OpenChoice& one : view.assumed.open) {
    text +=
        fmt::format("{}{} assumed: {}", text.empty() ? "" : ", ", name_of(one.input), one.taken);
  }
  if (text.empty()) return text;
  return text + fmt::format(
                    "; the interval covers what else the catalogue has: +{:.0f} %, "
                    "+{:.0f} % with all stated",
                    100 * view.assumed.half_width_all_open,
                    100 * view.assumed.half_width_all_stated);
}

void draw_message(Ui& ui, Rect rect, const Error& error) {
  fill(ui, {rect.min, {rect.min.x + ui.px(4), rect.max.y}}, ui.colors.bad, ui.px(2));
  const float width = rect.width() - ui.px(32);
  put_text(ui, ui.fonts.bold, {rect.min.x + ui.px(16), rect.min.y + ui.px(14)}, ui.colors.bad,
           fitted(ui.fonts.bold, error.message, width));
  put_text(
      ui, ui.fonts.body, {rect.min.x + ui.px(16), rect.min.y + ui.px(38)}, ui.colors.dim,
      fitted(ui.fonts.body,
             error.hint.empty() ? "Choose other values above or in the plan." : error.hint, width));
}

}  // namespace

void draw_headline(Ui& ui, Rect rect) {
  fill(ui, rect, ui.colors.panel, ui.px(6));
  note_area(ui, "headline", rect);
  if (ui.views.error) return draw_message(ui, rect, *ui.views.error);
  if (!ui.views.a) {
    const Findings& found = ui.views.found;
    if (found.error && !ui.views.is_stale) return draw_message(ui, rect, *found.error);
    put_text(ui, ui.fonts.body, {rect.min.x + ui.px(16), rect.center().y - ui.px(8)}, ui.colors.dim,
             ui.views.is_searching ? "Searching…" : "No plan. The plan table says why.");
    return;
  }
  if (ui.views.a->error) return draw_message(ui, rect, *ui.views.a->error);
  if (const std::string assumed = assumed_text(*ui.views.a); !assumed.empty()) {
    put_text(ui, ui.fonts.small, {rect.min.x + ui.px(16), rect.min.y + ui.px(68)}, ui.colors.warn,
             fitted(ui.fonts.small, assumed, rect.width() - ui.px(32)));
  }
  const std::vector<Figure> a = figures_of(ui, *ui.views.a);
  const bool has_b = ui.views.b && !ui.views.b->error;
  const std::vector<Figure> b = has_b ? figures_of(ui, *ui.views.b) : std::vector<Figure>();
  float sum = 0;
  for (const float share : kShares) sum += share;
  float x = rect.min.x + ui.px(16);
  const float room = rect.width() - ui.px(24);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float width = room * kShares[i] / sum - ui.px(10);
    put_text(ui, ui.fonts.small, {x, rect.min.y + ui.px(8)}, ui.colors.dim, a[i].label);
    const float value_width =
        put_text(ui, ui.fonts.big, {x, rect.min.y + ui.px(22)}, a[i].color, a[i].value);
    if (has_b) {
      put_text(ui, ui.fonts.bold, {x + value_width + ui.px(8), rect.min.y + ui.px(30)},
               ui.colors.other,
               fitted(ui.fonts.bold, "B " + b[i].value, std::max(0.0F, width - value_width)));
    }
    put_text(ui, ui.fonts.small, {x, rect.min.y + ui.px(51)}, ui.colors.dim,
             fitted(ui.fonts.small, a[i].detail, width));
    x += room * kShares[i] / sum;
  }
}

}  // namespace tpsim::gui
