// What the user chose and looks at: all that must be remembered between two frames, and all that a
// saved view holds. Plain values; what follows from them is in gui/views/views.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/model/model_spec.h"
#include "core/plan/plan.h"
#include "core/software/stack_parts.h"
#include "gui/draw/palette.h"

namespace tpsim::gui {

// What is planned. Equal choices have equal answers.
struct Choice {
  std::string model = "bloom-176b";               // name in the catalogue
  std::shared_ptr<const ModelSpec> opened_model;  // of a plan file: goes before the name
  std::string cluster = "jean-zay-a100";
  bool cluster_is_assumed = true;  // nobody chose it
  std::string profile, stack;      // empty: the cluster's own; such a stack is assumed
  bool stack_is_assumed = false;   // a plan file names it, though nobody stated it
  PartValues parts;                // of the software, in place of the stack's own
  double node_gbps = 0;            // what leaves a node; 0: the cluster's own
  std::int64_t gpus = 384;
  std::int64_t global_batch = 0;  // 0: as `tpsim plan` takes it
  std::optional<Plan> around;     // the saved plan that the search starts from (space_around())
  // Bandwidth over that, inside a node and between nodes: "what if the network were..."
  double intra_node = 1.0;
  double inter_node = 1.0;

  friend bool operator==(const Choice&, const Choice&) = default;
};

enum class TableColumnId : std::uint8_t {
  kTp,
  kPp,
  kDp,
  kZero,
  kMicroBatch,
  kRecompute,
  kExtras,
  kStep,
  kTflops,
  kMemory,
  kOom
};

struct TableState {
  TableColumnId sorted_by = TableColumnId::kStep;
  bool ascending = true;
  std::string filter;  // "tp=4 mb<=2 flash"
  friend bool operator==(const TableState&, const TableState&) = default;
};

// A window of time over the step, in seconds. An end of zero stands for the whole step.
struct TimelineState {
  double begin = 0;
  double end = 0;
  std::string search;    // "backward 12", "stage 3"
  double found_at = -1;  // where the match begins that was jumped to last
  bool shows_critical_path = false;
  double ruler_begin = 0, ruler_end = 0;  // equal: no ruler
  std::string hovered = {};               // what the span under the pointer is said to be
  friend bool operator==(const TimelineState&, const TimelineState&) = default;
};

enum class DetailTab : std::uint8_t { kBreakdown, kDifferences, kMeasured };

struct AppState {
  Choice choice;
  std::optional<Plan> plan;    // plan A; nothing follows the best plan of the search
  std::optional<Plan> pinned;  // plan B
  TableState table;
  TimelineState timeline;
  std::string opened_file;  // the plan file that was opened last, while its model is planned
  DetailTab detail = DetailTab::kBreakdown;
  Theme theme = Theme::kLight;
  double scale = 0;                     // of everything drawn; zero fits it to the window
  std::string measured_file;            // a report of `tpsim validate --runs ... --json`
  std::string view_file = "view.json";  // where Save writes and Open reads
  std::string export_folder = "launch";
  int export_stack = 0;  // a LaunchStack
  bool shows_help = false;
  std::string notice;  // the last thing that was done or failed, in words
  bool notice_is_error = false;
};

}  // namespace tpsim::gui
