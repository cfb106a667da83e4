// Scripts that use the program like a user, with one action per line (docs/gui.md lists the
// actions). Scripts run on any host. They create the pictures of the documentation and test the
// program.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "gui/draw/picture.h"
#include "gui/panels/session.h"

namespace tpsim::gui {

struct ScriptLine {
  int number = 0;
  std::vector<std::string> words;  // without quotes
};

// Parses a script. Returns an error with the line number for an unknown action or a wrong number of
// words.
Result<std::vector<ScriptLine>> parse_script(std::string_view text, const std::string& file);

// Functions that a host must provide to run scripts.
class ScriptHost {
 public:
  virtual ~ScriptHost() = default;
  virtual Session& session() = 0;
  virtual void frame() = 0;  // draws a frame with the current input in ImGui's IO
  virtual void resize(int width, int height) = 0;
  virtual Picture picture() = 0;  // returns the last frame
};

// Runs a script until it ends or a line fails, because of an unknown label or a false expectation.
// Relative names of screenshots are relative to `folder`.
Status run_script(const std::vector<ScriptLine>& lines, const std::string& file,
                  const std::filesystem::path& folder, ScriptHost& host);

// Runs frames until the search is complete.
Status wait_for_search(ScriptHost& host);

}  // namespace tpsim::gui
