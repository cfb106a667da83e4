#include <fmt/format.h>

#include <cmath>

#include "app/answers/plan_answers.h"
#include "app/reports/answer_json.h"
#include "cli/commands/commands.h"
#include "cli/options/requests.h"
#include "cli/options/table.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "core/base/files.h"
#include "core/base/numbers.h"
#include "core/json/json_document.h"
#include "gui/draw/scaling_picture.h"

namespace tpsim::cli {
namespace {

std::string plan_text(const ScalingSize& size) {
  const std::string name = short_name(size.best->plan);
  return size.parts.empty() ? name : name + ", " + to_string(size.parts);
}

std::string scaling_text(const Terminal& terminal, const ScalingAnswer& answer) {
  const NamedScenario& named = answer.named;
  Table table(columns_of("GPUs|sequences|step|tokens/s|per GPU|efficiency|MFU|GiB|<best plan"));
  const ScalingSize* const first = answer.baseline();
  for (const ScalingSize& size : answer.sizes) {
    if (!size.best) {
      table.add_row({count_text(size.gpus), count_text(size.global_batch), "-", "-", "-", "-", "-",
                     "-", size.why_none});
      continue;
    }
    const Prediction& p = size.best->predicted;
    table.add_row({count_text(size.gpus), count_text(size.global_batch), time_text(p.step),
                   count_text(std::llround(p.tokens_per_s)), count_text(std::llround(size.rate())),
                   percent_text(size.rate() / first->rate()), percent_text(p.mfu), gib_text(p.peak),
                   plan_text(size)});
  }
  const std::string note =
      fmt::format("{} on {} ({}, {}); efficiency: tokens/s per GPU relative to the first row",
                  printable(named.scenario.model.name), printable(named.cluster),
                  printable(named.profile), printable(named.stack));
  return heading(terminal, "SCALING") + "  " + wrapped(note, terminal.room(2, 98), 2) + "\n\n" +
         table.text(terminal);
}

Status draw(const std::string& path, const ScalingAnswer& answer) {
  const NamedScenario& named = answer.named;
  std::vector<gui::ScalingPoint> points;
  for (const ScalingSize& size : answer.sizes) {
    if (size.best) points.push_back({size.gpus, size.best->predicted.tokens_per_s});
  }
  return write_file_atomically(
      path, gui::svg_text(gui::scaling_picture(named.scenario.model.name, named.cluster, points)));
}

}  // namespace

Status run_scaling(const Arguments& arguments, const std::optional<PlanFile>& file,
                   const Terminal& terminal) {
  TPSIM_TRY_STATUS(refuse(arguments, {"--top", "--pareto", "--save"},
                          "with several --gpus, tpsim shows only the best plan for each number"));
  TPSIM_TRY(ScalingRequest request, scaling_request(arguments, file));
  const Result<ScalingAnswer> answer = [&] {
    ProgressBar progress(terminal, "searching");
    request.search.progress = progress.shower();
    return scaling_answer(request);
  }();
  if (!answer.ok()) return answer.error();
  TPSIM_TRY_STATUS(print(terminal, arguments.has("--json") ? to_text(scaling_json(*answer))
                                                           : scaling_text(terminal, *answer)));
  if (answer->baseline() == nullptr) {
    return Error{ErrorKind::kDoesNotFit, "no plan fits on any of these numbers of GPUs",
                 row_of("--gpus").name,
                 fmt::format("tpsim plan --gpus {} shows why", answer->sizes.back().gpus)};
  }
  return arguments.has("--plot") ? draw(*arguments["--plot"], *answer) : Status(Ok{});
}

}  // namespace tpsim::cli
