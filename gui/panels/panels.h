// The panels of the program, with one source file each. A panel draws into the given rectangle and
// changes the state on user input.
#pragma once

#include "gui/panels/ui.h"

namespace tpsim::gui {

float top_bar_height(const Ui& ui, float width);
void draw_top_bar(Ui& ui, Rect rect);  // model, cluster, GPUs, batch; buttons of actions
// Draws the recommendation, and key figures of plans A and B. Returns the height that the text
// needs.
float draw_headline(Ui& ui, ImVec2 corner, float width);
void draw_knobs(Ui& ui, Rect rect);     // settings of plan A, software, bandwidth factors
void draw_plans(Ui& ui, Rect rect);     // the plan table
void draw_scatter(Ui& ui, Rect rect);   // step time against memory
void draw_memory(Ui& ui, Rect rect);    // memory of each stage against the capacity
void draw_details(Ui& ui, Rect rect);   // breakdown of the step, differences, measurements
void draw_timeline(Ui& ui, Rect rect);  // the step over time

// Draws the stack and its parts at ImGui's cursor.
void draw_software(Ui& ui);

// Undo or redo the last change of plan A, its software or network.
void undo(AppState& state);
void redo(AppState& state);

// Opens the Export popup and selects the launcher of the plan's software.
void open_export(Ui& ui);
void draw_popups(Ui& ui);  // popups of the top bar's buttons

// Draws a legend at the bottom of `rect` with the span kinds that occur. Returns its height, 0
// without room for a legend.
float draw_span_legend(Ui& ui, Rect rect);
void toggle_bands(Ui& ui);  // shows the kernels and memory of the fullest stage, or of none
// The chosen stage's kernels and memory, which must exist. Names begin at `left`.
void draw_stage_bands(Ui& ui, Rect rect, float left, const TimelineWindow& window, bool is_hovered);

// Contents of the tabs of the details panel.
void draw_breakdown(Ui& ui, Rect rect, const PlanView& view);
void draw_differences(Ui& ui, Rect rect, const PlanView& a, const PlanView& b);
void draw_measured(Ui& ui, Rect rect);

}  // namespace tpsim::gui
