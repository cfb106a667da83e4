// The panels of the program, one file each. Each draws in the rectangle it is given and changes the
// state when it is used.
#pragma once

#include "gui/panels/ui.h"

namespace tpsim::gui {

void draw_top_bar(Ui& ui, Rect rect);   // model, cluster, GPUs, batch; what can be done
void draw_headline(Ui& ui, Rect rect);  // the figures of plan A, and B's beside them
void draw_knobs(Ui& ui, Rect rect);     // settings of plan A, bandwidths of the cluster
void draw_plans(Ui& ui, Rect rect);     // the plan table
void draw_scatter(Ui& ui, Rect rect);   // step time against memory
void draw_memory(Ui& ui, Rect rect);    // stages against capacity
void draw_details(Ui& ui, Rect rect);   // where the step goes, differences, measurements
void draw_timeline(Ui& ui, Rect rect);  // the step in time

void draw_popups(Ui& ui);  // what the top bar's buttons open

// Bodies of the details card.
void draw_breakdown(Ui& ui, Rect rect, const PlanView& view);
void draw_differences(Ui& ui, Rect rect, const PlanView& a, const PlanView& b);
void draw_measured(Ui& ui, Rect rect);

}  // namespace tpsim::gui
