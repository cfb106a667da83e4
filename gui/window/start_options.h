// Command-line options of the program.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "gui/views/app_state.h"

namespace tpsim::gui {

struct StartOptions {
  std::string file;  // a plan file or a saved view
  std::string model, cluster;
  std::int64_t gpus = 0, global_batch = 0;  // 0: default
  std::string measured;                     // report of `tpsim validate --runs FILE --json`
  std::string screenshot, script;
  int width = 1280, height = 800;
  bool is_dark = false;
};

// Parses the arguments that `tpsim gui` passes: "--name value", and a file.
Result<StartOptions> start_options(int argc, const char* const* argv);

Result<AppState> start_state(const StartOptions& options, const Catalogue& catalogue);

}  // namespace tpsim::gui
