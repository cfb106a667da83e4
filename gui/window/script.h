// Scripts that use the program as a person would: one action a line (docs/gui.md lists them). They
// drive any host, make the pictures of the documentation, and are the program's tests.
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

// Unknown actions, and actions with too few or too many words, are errors with their line.
Result<std::vector<ScriptLine>> parse_script(std::string_view text, const std::string& file);

// What a script needs of its host.
class ScriptHost {
 public:
  virtual ~ScriptHost() = default;
  virtual Session& session() = 0;
  virtual void frame() = 0;  // with the input that ImGui's IO holds now
  virtual void resize(int width, int height) = 0;
  virtual Picture picture() = 0;  // of the last frame
};

// Runs to the end or to the first line that fails: a label that is nowhere, an expectation that
// does not hold. Relative names of screenshots are names in `folder`.
Status run_script(const std::vector<ScriptLine>& lines, const std::string& file,
                  const std::filesystem::path& folder, ScriptHost& host);

// Frames until the search has found every plan.
Status wait_for_search(ScriptHost& host);

}  // namespace tpsim::gui
