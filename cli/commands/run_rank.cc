#include <fmt/format.h>

#include "cli/commands/commands.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "cli/views/times_view.h"
#include "core/json/json_document.h"
#include "devices/rank_alone.h"

namespace tpsim::cli {
namespace {

std::string report_text(const Terminal& terminal, const RankMeasurement& m) {
  std::string text = fmt::format("{}, {}, rank {} of {} alone, collectives modelled for {}\n\n",
                                 m.model, m.plan, m.rank, m.ranks, m.cluster);
  text += fmt::format(
      "  step    {} measured (median of {}, spread {:.1f} %), {} predicted with {}\n"
      "  wait    {} of the step in modelled collectives; ops and waits account for {:.1f} % of it\n"
      "  memory  {} measured ({} of it tensors), {} predicted\n\n",
      to_string(m.measured.step), m.measured.count, 100 * m.measured.spread,
      to_string(m.predicted_step()), m.profile, to_string(m.waiting()), 100 * m.accounted(),
      to_string(m.measured.peak()), to_string(m.measured.allocated), to_string(m.predicted_peak));
  text += compared_table(terminal, "kind of op", m.comparison.kinds) + "\n";
  text += compared_table(terminal, "collective (waits as predicted)", m.comparison.collectives);
  return text;
}

}  // namespace

Status run_rank_alone(const Arguments& arguments, const Terminal& terminal,
                      const NamedScenario& planned, const TrainingRun& run,
                      const TokenSource& tokens) {
  TPSIM_TRY_STATUS(
      refuse(arguments, {"--state", "--save-every", "--dump-gradients", "--cuda-graphs"},
             "--rank runs one rank alone to time its ops: its weights become meaningless"));
  TPSIM_TRY(const std::int64_t rank,
            integer_of(arguments, "--rank", 0, {0, gpu_count(run.plan) - 1}));
  TPSIM_TRY(const RankMeasurement m,
            rank_alone(planned, run, tokens, rank, arguments["--device"].value_or("cpu")));
  if (arguments.has("--json")) return print(to_text(rank_json(m)));
  return print(terminal, report_text(terminal, m));
}

}  // namespace tpsim::cli
