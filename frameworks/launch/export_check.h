// Checks an export before it is written: its files are read back in memory, and every setting that
// came back different is named, with the change of the predicted step and memory. Settings that the
// launcher's plans do not have (held_settings.h) are left out.
#pragma once

#include <string>
#include <vector>

#include "core/plan/report.h"
#include "core/scenario/scenario.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {

// A setting, a part of the software or a field of the model ("model.seq"), as files write both
// values.
struct LostSetting {
  std::string key, from, to;

  bool is_of_model() const { return key.starts_with("model."); }
};

struct ExportLoss {
  std::vector<LostSetting> lost;
  std::string refusal;        // why import refuses the files; then no plan came back
  Seconds step, step_back;    // of the exported plan and of the one that came back
  Bytes memory, memory_back;  // of the fullest stage, likewise

  double step_change() const { return step_back / step - 1; }
  double memory_change() const { return memory_back / memory - 1; }
};

// A larger change of step or memory, in either direction, needs --allow-loss. Fields of the model,
// such as its padded vocabulary, may change them; settings and parts may not, but for rounding.
inline constexpr double kToleratedLoss = 0.02;
inline constexpr double kToleratedRounding = 1e-9;
// An error, with exit code 3, for a loss beyond these and for files that import refuses.
Status check_loss(LaunchStack stack, const ExportLoss& loss);
// "  cuda_graphs: full -> none" in a line each, and the change of step and memory; empty where the
// plan came back whole.
std::string loss_text(const ExportLoss& loss);

struct CheckedExport {
  std::vector<LaunchFile> files;
  PlannedRun run;  // the exported plan
  ExportLoss loss;
};
// `scenario` is what `file` is predicted with, its parts included; `own` is the software without
// them. Fails where the stack cannot express the plan, and where the plan cannot be predicted.
Result<CheckedExport> checked_export(LaunchStack stack, const PlanFile& file,
                                     const Scenario& scenario, const StackSpec& own);

}  // namespace tpsim
