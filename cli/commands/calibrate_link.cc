// `calibrate` with the output of nccl-tests: fits the bandwidth efficiency of a cluster's links.
#include <fmt/format.h>

#include "app/reports/answer_json.h"
#include "cli/commands/commands.h"
#include "cli/options/table.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "core/base/files.h"
#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"

namespace tpsim::cli {
namespace {

// Returns a warning if the measured efficiency is less than half of the cluster file's. Links of
// one kind usually differ by a few percent, so a lower rate indicates a fault or a disabled
// feature.
std::string fault_text(const FittedLink& link) {
  constexpr double kFault = 0.5;
  const double share = link.after.efficiency / link.before.efficiency;
  if (share >= kFault) return "";
  return fmt::format(
      "  This link reaches {:.0f} % of its usual rate, which indicates a fault: {}.\n"
      "  Use this calibration only if the training has the same fault.\n\n",
      100 * share,
      link.between_nodes ? "no GPUDirect RDMA, TCP instead of RDMA, or a NIC or cable that is down"
                         : "no NVLink or peer access (copies through the host)");
}

std::string link_text(const Terminal& terminal, const Arguments& arguments,
                      const LinkAnswer& answer) {
  const FittedLink& link = answer.link;
  Table table({{"constant", Align::kLeft}, {"before"}, {"after"}, {"+-"}});
  table.add_row({answer.key() + ".efficiency", fmt::format("{:.3g}", link.before.efficiency),
                 fmt::format("{:.3g}", link.after.efficiency),
                 fmt::format("{:.2g}", link.efficiency_error * link.after.efficiency)});
  table.add_row({answer.key() + ".latency", to_string(link.before.latency),
                 to_string(link.after.latency),
                 to_string(link.latency_error * link.after.latency)});
  std::string text = heading(terminal, "CALIBRATION",
                             fmt::format("cluster {} on {} messages of {}", answer.cluster.name,
                                         answer.messages, printable(answer.files))) +
                     table.text(terminal);
  text += fmt::format(
      "\n  mean error of the messages: {:.1f} % before, {:.1f} % after\n"
      "  cross-validation error (every second size left out): {:.1f} %\n\n",
      100 * link.error_before, 100 * link.error_after, 100 * link.error_left_out);
  text += fault_text(link);
  const auto& saved = arguments["--save-cluster"];
  return text + heading(terminal, "NEXT") +
         (saved ? fmt::format("  tpsim plan --model MODEL --gpus N --cluster {}\n", *saved)
                : std::string("  --save-cluster FILE writes the calibrated cluster\n"));
}

}  // namespace

Status calibrate_link(const Arguments& arguments, const CalibrateRequest& request,
                      const OpenedLog& first, const Terminal& terminal) {
  TPSIM_TRY(const LinkAnswer answer, link_answer(request, first));
  if (const auto& path = arguments["--save-cluster"]) {
    TPSIM_TRY_STATUS(write_file_atomically(*path, to_json(calibrated_cluster(answer))));
  }
  return print(terminal, arguments.has("--json") ? to_text(link_json(answer))
                                                 : link_text(terminal, arguments, answer));
}

}  // namespace tpsim::cli
