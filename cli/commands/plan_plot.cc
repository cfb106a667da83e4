// plan --plot: the picture of a search.
#include "app/answers/plan_answers.h"
#include "cli/commands/commands.h"
#include "core/base/files.h"
#include "gui/views/plan_picture.h"

namespace tpsim::cli {

Status write_plan_picture(const std::string& path, const PlanAnswer& answer) {
  TPSIM_TRY(const gui::Drawing picture,
            gui::plan_picture(answer.named.scenario, answer.drawn, answer.possible));
  return write_file_atomically(path, gui::svg_text(picture));
}

}  // namespace tpsim::cli
