// What the program starts with.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "gui/views/app_state.h"

namespace tpsim::gui {

struct StartOptions {
  std::string file;  // a plan or a saved view
  std::string model, cluster;
  std::int64_t gpus = 0, global_batch = 0;  // 0: not given
  std::string measured;                     // a validation report
  std::string screenshot, script;
  std::string drawing;  // of gui/draw/drawing.h as JSON, to draw instead of the program
  int width = 1280, height = 800;
  bool is_dark = false;
};

// Words as `tpsim gui` hands them on: "--name value", and the file alone.
Result<StartOptions> start_options(int argc, const char* const* argv);

Result<AppState> start_state(const StartOptions& options, const Catalogue& catalogue);

}  // namespace tpsim::gui
