
#include "cli/commands/commands.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "cli/views/answer_views.h"
#include "devices/rank_alone.h"

namespace tpsim::cli {
namespace {

void write_measurement(TextReport& out, const RankMeasurement& m) {
  out.line("{}, {}, rank {} of {} alone, collectives modelled for {}\n", m.model, m.plan, m.rank,
           m.ranks, m.cluster);
  out.line("  step    {} measured (median of {}, spread {:.1f} %), {} predicted with {}",
           to_string(m.measured.step), m.measured.count, 100 * m.measured.spread,
           to_string(m.predicted_step()), m.profile);
  out.line(
      "  wait    {} of the step in modelled collectives; ops and waits account for {:.1f} % of it",
      to_string(m.waiting()), 100 * m.accounted());
  out.line("  memory  {} measured ({} of it tensors), {} predicted\n", to_string(m.measured.peak()),
           to_string(m.measured.allocated), to_string(m.predicted_peak));
  write_compared(out, "kind of op", m.comparison.kinds);
  out.blank();
  write_compared(out, "collective (waits as predicted)", m.comparison.collectives);
}

}  // namespace

Result<Answer> run_rank_alone(const Arguments& arguments, const Terminal& terminal,
                              const NamedScenario& planned, const TrainingRun& run,
                              const TokenSource& tokens) {
  TPSIM_TRY_STATUS(
      refuse(arguments, {"--state", "--save-every", "--dump-gradients", "--cuda-graphs"},
             "--rank runs one rank alone to time its ops: its weights become meaningless"));
  TPSIM_TRY(const std::int64_t rank,
            integer_of(arguments, "--rank", 0, {0, gpu_count(run.plan) - 1}));
  TPSIM_TRY(const RankMeasurement m,
            rank_alone(planned, run, tokens, rank, arguments["--device"].value_or("cpu")));
  return answered(
      arguments, terminal, [&] { return rank_json(m); },
      [&](TextReport& out) { write_measurement(out, m); });
}

}  // namespace tpsim::cli
