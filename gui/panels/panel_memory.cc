// The memory panel: peak memory of every stage, stacked by category, and the capacity of a GPU.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/normal.h"
#include "core/base/numbers.h"
#include "gui/panels/panels.h"
#include "gui/panels/plot.h"

namespace tpsim::gui {
namespace {

std::string stage_text(const StageMemory& stage, Bytes capacity) {
  std::string text = fmt::format("Stage {}: {} of {} GiB\n", stage.stage, gib_text(stage.total()),
                                 gib_text(capacity));
  if (stage.total() > capacity) {
    text +=
        fmt::format("{} GiB more than a GPU has (hatched)\n", gib_text(stage.total() - capacity));
  }
  for (int part = 0; part < kMemoryPartCount; ++part) {
    text += fmt::format("\n{} GiB  {}", gib_text(part_of(stage, part), 2), memory_part_name(part));
  }
  return text;
}

// Draws one stage's bar in [left, right).
void draw_bar(const Ui& ui, const Plot& plot, const StageMemory& stage, float left, float right) {
  double bottom = 0;
  for (int part = 0; part < kMemoryPartCount; ++part) {
    const double top = bottom + gib(part_of(stage, part));
    fill(ui, {{left, plot.y_at(top)}, {right, plot.y_at(bottom)}},
         ui.colors.memory[static_cast<std::size_t>(part)]);
    bottom = top;
  }
}

// Hatches the part of a bar that exceeds the GPU's capacity.
void draw_overflow(const Ui& ui, const Plot& plot, const StageMemory& stage, Bytes capacity,
                   Rect bar) {
  if (stage.total() <= capacity) return;
  const Rect over{{bar.min.x, plot.y_at(gib(stage.total()))},
                  {bar.max.x, plot.y_at(gib(capacity))}};
  ImGui::PushClipRect(over.min, over.max, true);
  fill(ui, over, with_alpha(ui.colors.panel, 0.45));
  const float rise = over.height() + over.width();
  for (float y = over.min.y; y < over.min.y + rise + over.width(); y += ui.px(5)) {
    line(ui, {over.min.x, y}, {over.max.x, y - over.width()}, ui.colors.bad, ui.px(1.4F));
  }
  ImGui::PopClipRect();
  outline(ui, over, ui.colors.bad, 0, ui.px(1.2F));
}

// Draws the 90 % interval of the peak memory on the bar of the fullest stage.
void draw_spread(const Ui& ui, const Plot& plot, const PlanView& view, float x) {
  const double spread = kHalfOf90 * view.scenario->stack.memory.spread;
  const double peak = gib(view.predicted.peak);
  const float top = plot.y_at(peak * (1 + spread)), bottom = plot.y_at(peak * (1 - spread));
  const float cap = ui.px(3);
  const float thickness = ui.px(1.4F);
  line(ui, {x, top}, {x, bottom}, ui.colors.text, thickness);
  line(ui, {x - cap, top}, {x + cap, top}, ui.colors.text, thickness);
  line(ui, {x - cap, bottom}, {x + cap, bottom}, ui.colors.text, thickness);
}

void draw_capacity(const Ui& ui, const Plot& plot, Bytes capacity) {
  const float y = plot.y_at(gib(capacity));
  dashed_line(ui, {plot.area.min.x, y}, {plot.area.max.x, y}, ui.colors.bad);
}

struct Group {
  const PlanView* view;
  const char* name;
  Rgba color;
};

void draw_group(Ui& ui, const Plot& plot, const Group& group, float from, float to) {
  const std::vector<StageMemory>& stages = group.view->predicted.memory;
  const float slot = (to - from) / static_cast<float>(stages.size());
  const float gap = slot > ui.px(8) ? std::max({1.0F, slot * 0.18F, slot - ui.px(120)}) : 0;
  const StageMemory* under_mouse = nullptr;
  const auto fullest = std::max_element(
      stages.begin(), stages.end(),
      [](const StageMemory& a, const StageMemory& b) { return a.total() < b.total(); });
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const float left = from + slot * static_cast<float>(i);
    draw_bar(ui, plot, stages[i], left + gap / 2, left + slot - gap / 2);
    draw_overflow(ui, plot, stages[i], group.view->predicted.capacity,
                  {{left + gap / 2, plot.area.min.y}, {left + slot - gap / 2, plot.area.max.y}});
    // Only the fullest stage has an interval, because equal intervals on all bars would look
    // cluttered.
    const bool is_fullest = &stages[i] == &*fullest;
    if (is_fullest) draw_spread(ui, plot, *group.view, left + slot / 2);
    if (slot >= ui.px(15) || i % 8 == 0) {
      put_text(ui, ui.fonts.small, {left + slot / 2, plot.area.max.y + ui.px(3)}, ui.colors.dim,
               std::to_string(stages[i].stage), Align::kCenter);
    }
    const Rect column{{left, plot.area.min.y}, {left + slot, plot.area.max.y}};
    if (ImGui::IsMouseHoveringRect(column.min, column.max)) under_mouse = &stages[i];
  }
  if (ui.views.b) {
    fill(ui, {{from, plot.area.max.y + ui.px(18)}, {to, plot.area.max.y + ui.px(20)}}, group.color);
    plan_chip(ui, {to - ui.px(2), plot.area.min.y + ui.px(6)}, group.color, group.name,
              Align::kRight);
  }
  if (under_mouse != nullptr && ImGui::IsWindowHovered()) {
    tooltip(ui, stage_text(*under_mouse, group.view->predicted.capacity).c_str());
  }
}

// Draws the names of the memory categories with a visible share into the bottom of `rect`, and
// returns the height. Without `draws` only the height is returned.
float draw_legend(const Ui& ui, Rect rect, const std::vector<Group>& groups, bool draws) {
  const float line_height = ui.fonts.small->FontSize + ui.px(3);
  const auto place = [&](ImVec2 at, bool is_drawn) {
    for (int part = 0; part < kMemoryPartCount; ++part) {
      const bool is_visible = std::any_of(groups.begin(), groups.end(), [&](const Group& group) {
        const Prediction& p = group.view->predicted;
        return std::any_of(p.memory.begin(), p.memory.end(), [&](const StageMemory& stage) {
          return part_of(stage, part) >= 0.004 * p.peak;
        });
      });
      if (!is_visible) continue;
      const float width = ui.px(14) + text_size(ui.fonts.small, memory_part_name(part)).x;
      if (at.x + width > rect.max.x && at.x > rect.min.x) at = {rect.min.x, at.y + line_height};
      if (is_drawn) {
        legend_entry(ui, at, ui.colors.memory[static_cast<std::size_t>(part)],
                     memory_part_name(part));
      }
      at.x += width + ui.px(12);
    }
    return at.y + line_height;
  };
  const float height = place({rect.min.x, 0}, false);
  if (!has_legend(rect, height)) return 0;
  if (draws) place({rect.min.x, rect.max.y - height}, true);
  return height;
}

std::string note_of(const Views& views) {
  if (!views.a || views.a->error) return "";
  const Prediction& p = views.a->predicted;
  const std::string host = p.host_memory > Bytes()
                               ? fmt::format(" · host {} of {} GiB a node", gib_text(p.host_memory),
                                             gib_text(p.host_capacity))
                               : "";
  return fmt::format("GPU has {} GiB{} · P(OOM) {}", gib_text(p.capacity), host,
                     chance_text(p.p_oom));
}

void draw_bars(Ui& ui, Rect body) {
  std::vector<Group> groups = {{ui.views.a.get(), "A", ui.colors.accent}};
  if (ui.views.b && !ui.views.b->error) groups.push_back({ui.views.b.get(), "B", ui.colors.other});
  double most = 0;
  for (const Group& group : groups) {
    const Prediction& p = group.view->predicted;
    most = std::max({most, gib(p.capacity), gib(p.peak) * 1.05});
  }
  const float legend = draw_legend(ui, body, groups, false) + ui.px(4);
  const float below = ui.fonts.small->FontSize + ui.px(ui.views.b ? 10 : 6);
  const Rect area{body.min, {body.max.x, body.max.y - legend - below}};
  const Plot plot = draw_axes(ui, area, {0, 1}, {0, most * 1.02}, {"", "GiB on each stage's GPUs"});
  const float between = groups.size() > 1 ? ui.px(18) : 0;
  const float each = (plot.area.width() - between) / static_cast<float>(groups.size()) - ui.px(4);
  float from = plot.area.min.x + ui.px(4);
  for (const Group& group : groups) {
    draw_group(ui, plot, group, from, from + each);
    from += each + between;
  }
  draw_capacity(ui, plot, ui.views.a->predicted.capacity);
  draw_legend(ui, body, groups, true);
}

}  // namespace

void draw_memory(Ui& ui, Rect rect) {
  card(ui, "Memory by stage", rect, note_of(ui.views), [&](Rect body) {
    if (!ui.views.a) return no_plan_state(ui, body);
    if (ui.views.a->error) return no_prediction(ui, body);
    draw_bars(ui, body);
  });
}

}  // namespace tpsim::gui
