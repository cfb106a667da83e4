// The scatter panel: step time over memory, with a point per plan that fits, and the Pareto front.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/numbers.h"
#include "gui/panels/panels.h"
#include "gui/panels/plot.h"
#include "gui/views/plan_table.h"

namespace tpsim::gui {
namespace {

// Plans slower than this multiple of the best are hidden, since they would compress the axis.
constexpr double kSlowest = 3.0;

struct Cloud {
  std::vector<std::size_t> points;  // indices into the plans found
  std::size_t hidden = 0;           // number of plans slower than the limit
};

Cloud cloud_of(const std::vector<PlannedRun>& plans) {
  Cloud cloud;
  const Seconds most = kSlowest * plans.front().predicted.step;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].predicted.step <= most) {
      cloud.points.push_back(i);
    } else {
      ++cloud.hidden;
    }
  }
  return cloud;
}

Plot axes_of(const Ui& ui, Rect rect, const std::vector<PlannedRun>& plans, const Cloud& cloud) {
  double slowest = plans.front().predicted.step.value();
  double largest = 0, smallest = gib(plans.front().predicted.capacity);
  for (const std::size_t i : cloud.points) {
    slowest = std::max(slowest, plans[i].predicted.step.value());
    largest = std::max(largest, gib(plans[i].predicted.peak));
    smallest = std::min(smallest, gib(plans[i].predicted.peak));
  }
  largest = std::max(largest, gib(plans.front().predicted.capacity));
  if (const PlanView* a = ui.views.a.get(); a != nullptr && !a->error) {
    largest = std::max(largest, gib(a->predicted.peak));
    slowest = std::max(slowest, std::min(a->predicted.step.value(),
                                         2 * kSlowest * plans.front().predicted.step.value()));
  }
  const double fastest = plans.front().predicted.step.value();
  const double air = 0.06 * (slowest - fastest) + 0.02 * fastest;
  const AxisScale x{std::max(0.0, smallest - 0.05 * (largest - smallest) - 0.5), largest * 1.03,
                    false};
  const AxisScale y{std::max(0.0, fastest - air), slowest + air, false};
  return draw_axes(ui, rect, x, y, {"peak memory, GiB", "step time, s"});
}

void draw_front(const Ui& ui, const Plot& plot) {
  const Findings& found = ui.views.found;
  const PlannedRun* before = nullptr;
  for (const std::size_t i : found.pareto_front) {
    const PlannedRun& run = found.plans[i];
    const ImVec2 at = plot.at(gib(run.predicted.peak), run.predicted.step.value());
    if (before != nullptr) {
      const ImVec2 from = plot.at(gib(before->predicted.peak), before->predicted.step.value());
      line(ui, from, {at.x, from.y}, ui.colors.accent, ui.px(1.5F));
      line(ui, {at.x, from.y}, at, ui.colors.accent, ui.px(1.5F));
    }
    before = &run;
  }
  if (before != nullptr) {
    const float y = plot.y_at(before->predicted.step.value());
    line(ui, {plot.x_at(gib(before->predicted.peak)), y}, {plot.area.max.x, y}, ui.colors.accent,
         ui.px(1.5F));
  }
}

void draw_capacity(const Ui& ui, const Plot& plot) {
  const Bytes capacity = ui.views.found.plans.front().predicted.capacity;
  const float x = plot.x_at(gib(capacity));
  dashed_line(ui, {x, plot.area.min.y}, {x, plot.area.max.y}, ui.colors.bad);
  const std::string text = fmt::format("capacity {} GiB", gib_text(capacity));
  // Left of the line, or right of it where the text has no room on the left.
  const float width = text_size(ui.fonts.small, text).x;
  const bool is_left = x - ui.px(5) - width >= plot.area.min.x;
  const ImVec2 at{is_left ? x - ui.px(5) - width : x + ui.px(5), plot.area.min.y + ui.px(1)};
  fill(ui,
       {{at.x - ui.px(3), at.y},
        {at.x + width + ui.px(2), at.y + ui.fonts.small->FontSize + ui.px(2)}},
       with_alpha(ui.colors.panel, 0.85));
  put_text(ui, ui.fonts.small, at, ui.colors.bad, text);
}

// Draws an arrow at the edge of the plot that points to a plan outside the axes, with the plan's
// step time and memory.
void draw_off_axes(Ui& ui, const Plot& plot, const PlanView& view, Rgba color,
                   const std::string& name) {
  const ImVec2 there = plot.at(gib(view.predicted.peak), view.predicted.step.value());
  const Rect& area = plot.area;
  const float inset = ui.px(10);
  const ImVec2 at{std::clamp(there.x, area.min.x + inset, area.max.x - inset),
                  std::clamp(there.y, area.min.y + inset, area.max.y - inset)};
  const float length = std::max(1.0F, std::hypot(there.x - at.x, there.y - at.y));
  const ImVec2 to{(there.x - at.x) / length, (there.y - at.y) / length};
  const float size = ui.px(9);
  ImGui::GetWindowDrawList()->AddTriangleFilled(
      {at.x + to.x * size, at.y + to.y * size},
      {at.x - to.y * size * 0.7F, at.y + to.x * size * 0.7F},
      {at.x + to.y * size * 0.7F, at.y - to.x * size * 0.7F}, ui.ink(color));
  const std::string numbers =
      fmt::format("{}, {} GiB", time_text(view.predicted.step), gib_text(view.predicted.peak));
  std::string text = fmt::format("{} off the axes: {}", name, numbers);
  if (text_size(ui.fonts.bold, text).x > area.width()) text = fmt::format("{}: {}", name, numbers);
  const float width = text_size(ui.fonts.bold, text).x;
  const float left =
      std::clamp(at.x - width / 2, area.min.x, std::max(area.min.x, area.max.x - width));
  const bool is_low = at.y > area.center().y;
  const ImVec2 corner{left, at.y + (is_low ? -ui.px(28) : ui.px(12))};
  const Rect label{corner, {corner.x + width, corner.y + ui.fonts.bold->FontSize}};
  fill(ui, label, with_alpha(ui.colors.panel, 0.85));
  put_text(ui, ui.fonts.bold, label.min, color, text);
  note_area(ui, name + " off the axes", label);
}

// Draws a ring around plan A or B, with the name beside the ring.
void draw_ring(Ui& ui, const Plot& plot, const PlanView* view, Rgba color, const char* name,
               bool is_left) {
  if (view == nullptr || view->error) return;
  const ImVec2 at = plot.at(gib(view->predicted.peak), view->predicted.step.value());
  const bool is_inside = at.x >= plot.area.min.x && at.x <= plot.area.max.x &&
                         at.y >= plot.area.min.y && at.y <= plot.area.max.y;
  if (!is_inside) return draw_off_axes(ui, plot, *view, color, *name == '\0' ? "A" : name);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddCircleFilled(at, ui.px(5), ui.ink(color));
  list->AddCircle(at, ui.px(8), ui.ink(color), 0, ui.px(1.8F));
  if (*name == '\0') return;
  plan_chip(ui, {at.x + ui.px(is_left ? -11 : 11), at.y - ui.px(17)}, color, name,
            is_left ? Align::kRight : Align::kLeft);
}

std::size_t nearest_point(const Plot& plot, const std::vector<PlannedRun>& plans,
                          const Cloud& cloud, ImVec2 mouse, float reach) {
  std::size_t best = plans.size();
  float least = reach * reach;
  for (const std::size_t i : cloud.points) {
    const ImVec2 at = plot.at(gib(plans[i].predicted.peak), plans[i].predicted.step.value());
    const float distance =
        (at.x - mouse.x) * (at.x - mouse.x) + (at.y - mouse.y) * (at.y - mouse.y);
    if (distance >= least) continue;
    least = distance;
    best = i;
  }
  return best;
}

void describe(const Ui& ui, const PlannedRun& run) {
  const Prediction& p = run.predicted;
  const std::string extras = extras_text(run.plan);
  // If inputs are unstated, only the selected plan has a widened interval. The intervals of other
  // plans would be too narrow and are not shown.
  const std::string interval =
      ui.views.unstated == Unstated{}
          ? fmt::format(" (90 %: {} to {})", time_text(p.step_low), time_text(p.step_high))
          : "";
  tooltip(ui, fmt::format("{}\nZeRO {}, micro-batch {}, {}{}{}\n{}{}\n"
                          "{} GiB, p(OOM) {}\nClick to select this plan.",
                          degrees_text(run.plan), run.plan.zero, run.plan.micro_batch,
                          recompute_text(run.plan), extras.empty() ? "" : ", ", extras,
                          time_text(p.step), interval, gib_text(p.peak), chance_text(p.p_oom))
                  .c_str());
}

void draw_points(Ui& ui, const Plot& plot, const Cloud& cloud) {
  const std::vector<PlannedRun>& plans = ui.views.found.plans;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Prediction& best = plans.front().predicted;
  for (const std::size_t i : cloud.points) {
    const Prediction& p = plans[i].predicted;
    const Rgba color = ties_with(p, best) ? ui.colors.dim : ui.colors.mark;
    list->AddCircleFilled(plot.at(gib(p.peak), p.step.value()), ui.px(2.4F),
                          ui.ink(with_alpha(color, 0.7)), 8);
  }
  draw_front(ui, plot);
  for (const std::size_t i : ui.views.found.pareto_front) {
    const Prediction& p = plans[i].predicted;
    list->AddCircleFilled(plot.at(gib(p.peak), p.step.value()), ui.px(3.6F),
                          ui.ink(ui.colors.accent), 12);
  }
}

// Draws a band over the step times that are inside the interval of the best plan.
void draw_tie_band(const Ui& ui, const Plot& plot) {
  const Prediction& best = ui.views.found.plans.front().predicted;
  const float top = std::max(plot.area.min.y, plot.y_at(best.step_high.value()));
  const float bottom = std::min(plot.area.max.y, plot.y_at(best.step.value()));
  fill(ui, {{plot.area.min.x, top}, {plot.area.max.x, bottom}}, with_alpha(ui.colors.accent, 0.10));
}

// Names the band where no point of the Pareto front lies under the name, above its lower end.
void draw_tie_name(const Ui& ui, const Plot& plot) {
  const Prediction& best = ui.views.found.plans.front().predicted;
  const char* text = "ties with the best";
  const float width = text_size(ui.fonts.small, text).x;
  const float bottom = std::min(plot.area.max.y, plot.y_at(best.step.value()));
  const ImVec2 at{plot.area.min.x + ui.px(5), bottom - ui.fonts.small->FontSize - ui.px(2)};
  const Rect label{at, {at.x + width, at.y + ui.fonts.small->FontSize}};
  for (const std::size_t i : ui.views.found.pareto_front) {
    const Prediction& p = ui.views.found.plans[i].predicted;
    const ImVec2 point = plot.at(gib(p.peak), p.step.value());
    if (point.x < label.max.x + ui.px(8) && point.y > label.min.y - ui.px(8)) return;
  }
  put_text(ui, ui.fonts.small, at, mix(ui.colors.dim, ui.colors.accent, 0.6), text);
}

void interact(Ui& ui, const Plot& plot, const Cloud& cloud) {
  ImGui::SetCursorScreenPos(plot.area.min);
  const bool clicked = ImGui::InvisibleButton("points", {plot.area.width(), plot.area.height()});
  if (!ImGui::IsItemHovered()) return;
  const std::vector<PlannedRun>& plans = ui.views.found.plans;
  const std::size_t i = nearest_point(plot, plans, cloud, ImGui::GetMousePos(), ui.px(14));
  if (i == plans.size()) return;
  const Prediction& p = plans[i].predicted;
  ImGui::GetWindowDrawList()->AddCircle(plot.at(gib(p.peak), p.step.value()), ui.px(6),
                                        ui.ink(ui.colors.text), 0, ui.px(1.5F));
  describe(ui, plans[i]);
  if (clicked) ui.state.plan = plans[i].plan;
}

}  // namespace

void draw_scatter(Ui& ui, Rect rect) {
  const Findings& found = ui.views.found;
  const Cloud cloud = found.plans.empty() ? Cloud() : cloud_of(found.plans);
  const std::string note = cloud.hidden == 0 ? "blue line: Pareto front"
                                             : fmt::format("{} hidden · slower than {} × the best",
                                                           cloud.hidden, kSlowest);
  card(ui, "Time and memory", rect, found.plans.empty() ? "" : note, [&](Rect body) {
    if (found.plans.empty()) return no_plan_state(ui, body);
    const Plot plot = axes_of(ui, body, found.plans, cloud);
    draw_tie_band(ui, plot);
    ImGui::PushClipRect(plot.area.min, {plot.area.max.x + 1, plot.area.max.y + 1}, true);
    draw_points(ui, plot, cloud);
    ImGui::PopClipRect();
    draw_capacity(ui, plot);
    draw_tie_name(ui, plot);
    const PlanView* const a = ui.views.a.get();
    const PlanView* const b = ui.views.b.get();
    // The names are on the outer sides, so that neither is beside the other's ring.
    const bool a_is_left = a != nullptr && b != nullptr && a->predicted.peak < b->predicted.peak;
    draw_ring(ui, plot, b, ui.colors.other, "B", !a_is_left);
    draw_ring(ui, plot, a, ui.colors.accent, b != nullptr ? "A" : "", a_is_left);
    interact(ui, plot, cloud);
    if (ui.views.is_stale) fill(ui, body, with_alpha(ui.colors.panel, 0.55));
  });
}

}  // namespace tpsim::gui
