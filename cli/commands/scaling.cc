#include <fmt/format.h>

#include <cmath>

#include "app/answers/plan_answers.h"
#include "app/reports/answer_json.h"
#include "cli/commands/commands.h"
#include "cli/options/plan_requests.h"
#include "core/base/files.h"
#include "core/base/numbers.h"
#include "gui/draw/scaling_picture.h"

namespace tpsim::cli {
namespace {

std::string plan_text(const ScalingSize& size) {
  const std::string name = short_name(size.best->plan);
  return size.parts.empty() ? name : name + ", " + to_string(size.parts);
}

void write_scaling(TextReport& out, const ScalingAnswer& answer) {
  const NamedScenario& named = answer.named;
  out.heading("SCALING");
  out.prose(fmt::format("{} on {} ({}, {}); efficiency: tokens/s per GPU relative to the first row",
                        printable(named.scenario.model.name), printable(named.cluster),
                        printable(named.profile), printable(named.stack)));
  out.blank();
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
  out.table(table);
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

Result<Answer> run_scaling(const Arguments& arguments, const std::optional<PlanFile>& file,
                           const Terminal& terminal) {
  TPSIM_TRY_STATUS(refuse(arguments, {"--top", "--group", "--pareto", "--save"},
                          "with several --gpus, tpsim shows only the best plan for each number"));
  TPSIM_TRY(ScalingRequest request, scaling_request(arguments, file));
  ProgressBar progress(terminal, "searching");
  request.search.progress = progress.shower();
  TPSIM_TRY(const ScalingAnswer found, scaling_answer(request));
  Answer answer = answered(
      arguments, terminal, [&] { return scaling_json(found); },
      [&](TextReport& out) { write_scaling(out, found); });
  if (found.baseline() == nullptr) {
    answer.outcome =
        Error{ErrorKind::kDoesNotFit, "no plan fits on any of these numbers of GPUs", "--gpus",
              fmt::format("tpsim plan --gpus {} shows why", found.sizes.back().gpus)};
  } else if (arguments.has("--plot")) {
    answer.outcome = draw(*arguments["--plot"], found);
  }
  return answer;
}

}  // namespace tpsim::cli
