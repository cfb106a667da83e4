// Scripts that use the program like a user: one action per line (docs/gui.md lists them). They run
// on any host, create the pictures of the documentation, and test the program.
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
  std::vector<std::string> words;  // quotes removed
};

// Parses a script. Error with the line number for unknown actions and for a wrong number of words.
Result<std::vector<ScriptLine>> parse_script(std::string_view text, const std::string& file);

// Functions that a script needs from its host.
class ScriptHost {
 public:
  virtual ~ScriptHost() = default;
  virtual Session& session() = 0;
  virtual void frame() = 0;  // with the current input in ImGui's IO
  virtual void resize(int width, int height) = 0;
  virtual Picture picture() = 0;  // of the last frame
};

// Runs a script to the end or to the first failing line: an unknown label or a false expectation.
// Relative names of screenshots are relative to `folder`.
Status run_script(const std::vector<ScriptLine>& lines, const std::string& file,
                  const std::filesystem::path& folder, ScriptHost& host);

// Runs frames until the search is complete.
Status wait_for_search(ScriptHost& host);

}  // namespace tpsim::gui
