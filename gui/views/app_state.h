// The user's inputs and the state of the display, which persist between frames and in saved views.
// This header contains plain values; gui/views/views.h computes results from them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_parts.h"
#include "gui/draw/palette.h"
#include "gui/views/history.h"
#include "plans/search/search_space.h"

namespace tpsim::gui {

// Inputs of planning. Equal inputs give equal results.
struct Choice {
  std::string model = "bloom-176b";               // name in the catalogue
  std::shared_ptr<const ModelSpec> opened_model;  // of a plan file; takes precedence over the name
  std::string cluster = "jean-zay-a100";
  bool cluster_is_assumed = true;  // the cluster is a default
  std::string profile, stack;      // empty: the cluster's; an unstated stack is an assumption
  bool stack_is_assumed = false;   // whether the opened plan file marks the stack as assumed
  PartValues parts;                // overrides of the stack's parts
  double node_gbps = 0;            // Gb/s between nodes, per node; 0: the cluster's
  std::int64_t gpus = 384;
  std::int64_t global_batch = 0;      // 0: default of `tpsim plan`
  std::int64_t seq = 0;               // tokens per sequence; 0: the model's
  std::optional<Plan> around;         // if set, the search covers plans near this saved plan
  SearchLimits limits;                // options of `tpsim gui` that restrict the search
  bool ignores_stack_limits = false;  // also plans that the stack's launcher refuses
  // Factors on the bandwidth inside a node and between nodes, to see the effect of another network.
  double intra_node = 1.0;
  double inter_node = 1.0;

  friend bool operator==(const Choice&, const Choice&) = default;
};

enum class TableColumnId : std::uint8_t {
  kTp,
  kPp,
  kVirtualStages,
  kDp,
  kCp,
  kEp,
  kZero,
  kMicroBatch,
  kRecompute,
  kExtras,
  kStep,
  kLoss,
  kTflops,
  kMemory,
  kOom,
  kVariants
};

struct TableState {
  TableColumnId sorted_by = TableColumnId::kStep;
  bool ascending = true;
  std::string filter;                // "tp=4 mb<=2 flash"
  std::set<ParallelDegrees> opened;  // layouts whose variants are shown
  friend bool operator==(const TableState&, const TableState&) = default;
};

// Visible time range of the timeline in seconds. end = 0: the whole step.
struct TimelineState {
  double begin = 0;
  double end = 0;
  std::string search;    // "backward 12", "stage 3"
  double found_at = -1;  // start of the last match in seconds; -1: none
  bool shows_critical_path = false;
  std::int64_t stage = -1;                // whose kernels and memory are shown; -1: none
  double ruler_begin = 0, ruler_end = 0;  // equal: no ruler
  std::string hovered = {};               // description of the span under the pointer
  friend bool operator==(const TimelineState&, const TimelineState&) = default;
};

enum class DetailTab : std::uint8_t { kBreakdown, kDifferences, kMeasured };

struct AppState {
  Choice choice;
  std::optional<Plan> plan;    // plan A; empty: the best plan of the search
  std::optional<Plan> pinned;  // plan B
  History history;
  std::optional<Setting> turned;    // the setting that the user changed last
  std::vector<MovedSetting> moved;  // other settings that this change adjusted
  std::string focused;              // label of the control with the keyboard focus
  TableState table;
  TimelineState timeline;
  double tokens = 1e12;     // length of the training run whose cost is shown
  std::string opened_file;  // plan file whose model is planned; empty: none
  DetailTab detail = DetailTab::kBreakdown;
  Theme theme = Theme::kLight;
  double scale = 0;                     // of the interface; 0: fits the window
  std::string measured_file;            // a report of `tpsim validate --runs ... --json`
  std::string view_file = "view.json";  // file for the buttons Save and Open
  std::string export_folder = "launch";
  int export_stack = 0;      // index of a LaunchStack
  bool shows_parts = false;  // all parts of the software, instead of those that differ
  bool shows_help = false;
  std::string notice;  // message of the last action or failure
  bool notice_is_error = false;
};

// The selection that undo and redo restore.
Selection selection_of(const AppState& state);
void select(const Selection& selection, AppState& state);

}  // namespace tpsim::gui
