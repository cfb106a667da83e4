// Checks exported launch files before they are written.
//
// The files are imported again in memory. The check reports every setting that has changed, and the
// change of the predicted step and memory. Settings without effect for the launcher
// (held_settings.h) are not compared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

// A value that export and import do not preserve: a plan setting, a software part, or a field of
// the model ("model.seq"). `from` and `to` are its values before and after, as text.
struct LostSetting {
  std::string key, from, to;
  bool is_lacking = false;    // the launcher has no option for the value
  std::string_view why = {};  // of a lacking value: what the launcher does (held_settings.h)

  bool is_of_model() const { return key.starts_with("model."); }
};

struct ExportLoss {
  std::vector<LostSetting> lost;
  std::string refusal;        // why import refuses the files; if set, the fields below are unset
  Seconds step, step_back;    // predicted step time of the exported plan and of the imported plan
  Bytes memory, memory_back;  // peak memory of the stage with the highest peak, in the same order

  double step_change() const { return step_back / step - 1; }
  double memory_change() const { return memory_back / memory - 1; }
};

// Largest relative change of step time or memory that an export may cause without --allow-loss.
// kToleratedLoss applies if only model fields changed, such as the padded vocab size.
// kToleratedRounding applies if settings or parts changed.
inline constexpr double kToleratedLoss = 0.02;
inline constexpr double kToleratedRounding = 1e-9;
// Returns an error (exit code 3) if the loss exceeds these limits, or if import refuses the files.
Status check_loss(LaunchStack stack, const ExportLoss& loss);
// Returns a line per lost setting ("  cuda_graphs: full -> none") and the change of step and
// memory. Empty if nothing was lost.
std::string loss_text(const ExportLoss& loss);

struct CheckedExport {
  std::vector<LaunchFile> files;
  PlannedRun run;  // the exported plan
  ExportLoss loss;
};
// Exports `file` and imports the files again. `scenario` includes the plan's software parts; `own`
// is the software without them. Fails if the stack cannot express the plan, or if the plan cannot
// be predicted.
Result<CheckedExport> checked_export(LaunchStack stack, const PlanFile& file,
                                     const Scenario& scenario, const StackSpec& own);

}  // namespace tpsim
