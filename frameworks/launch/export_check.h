// Checks an export before it is written.
//
// The files are read back in memory. Every changed setting is named, with the change of the
// predicted step and memory. Settings without effect for the launcher (held_settings.h) are
// skipped.
#pragma once

#include <string>
#include <vector>

#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

// A setting, a part of the software or a field of the model ("model.seq"), with both values as
// text.
struct LostSetting {
  std::string key, from, to;

  bool is_of_model() const { return key.starts_with("model."); }
};

struct ExportLoss {
  std::vector<LostSetting> lost;
  std::string refusal;        // reason if import refuses the files; then unset from here on
  Seconds step, step_back;    // of the exported plan and of the imported one
  Bytes memory, memory_back;  // of the stage with the highest peak, likewise

  double step_change() const { return step_back / step - 1; }
  double memory_change() const { return memory_back / memory - 1; }
};

// A larger relative change of step or memory needs --allow-loss. If only fields of the model
// changed, such as the padded vocab size, kToleratedLoss holds. If settings or parts changed,
// kToleratedRounding holds.
inline constexpr double kToleratedLoss = 0.02;
inline constexpr double kToleratedRounding = 1e-9;
// Returns an error (exit code 3) for a larger loss, and for files that import refuses.
Status check_loss(LaunchStack stack, const ExportLoss& loss);
// Returns a line per lost setting ("  cuda_graphs: full -> none") and the change of step and
// memory. Empty if nothing was lost.
std::string loss_text(const ExportLoss& loss);

struct CheckedExport {
  std::vector<LaunchFile> files;
  PlannedRun run;  // the exported plan
  ExportLoss loss;
};
// Exports `file` and reads the files back. `scenario` includes the plan's parts; `own` is the
// software without them. Fails if the stack cannot express the plan, or if the plan cannot be
// predicted.
Result<CheckedExport> checked_export(LaunchStack stack, const PlanFile& file,
                                     const Scenario& scenario, const StackSpec& own);

}  // namespace tpsim
