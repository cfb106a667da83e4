// The windowless program for tests: the search of a small cluster, a script, the state afterwards.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "gui/window/windowless.h"

namespace tpsim::gui {

// Starts with bloom-7b1 on 16 GPUs: few plans, so that tests are fast.
inline AppState small_state() {
  AppState state;
  state.choice.model = "bloom-7b1";
  state.choice.gpus = 16;
  state.choice.global_batch = 64;
  return state;
}

// Runs a search to its end.
inline Findings found_by(SearchJob job) {
  Findings found;
  found.choice = job.choice();
  while (!job.done()) found.add(job.step());
  return found;
}

class GuiFixture {
 public:
  explicit GuiFixture(AppState state = small_state(), int width = 1280, int height = 800)
      : host_(Catalogue(std::string(TPSIM_SOURCE_DIR) + "/data"), std::move(state), width, height) {
  }

  // Returns the error of the first line that failed; empty if all succeeded.
  std::string run(const std::string& script) {
    const auto lines = parse_script(script, "script");
    if (!lines.ok()) return to_string(lines.error());
    const Status status = run_script(*lines, "script", "", host_);
    return status.ok() ? "" : to_string(status.error());
  }

  WindowlessHost& host() { return host_; }
  AppState& state() { return host_.session().state(); }
  const Views& views() { return host_.session().views(); }

 private:
  WindowlessHost host_;
};

}  // namespace tpsim::gui
