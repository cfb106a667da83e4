// `calibrate` with the output of nccl-tests: fits the bandwidth efficiency of a cluster's links.
#include <fmt/format.h>

#include "cli/options/answers.h"
#include "cli/options/calibrate.h"
#include "cli/options/table.h"
#include "cli/options/values.h"
#include "cli/options/wrapping.h"
#include "cli/views/plan_view.h"
#include "core/base/files.h"
#include "core/json/json_document.h"
#include "core/machine/cluster_json.h"
#include "evidence/calibration/nccl_tests.h"

namespace tpsim::cli {
namespace {

struct LinkAnswer {
  ClusterSpec cluster;
  FittedLink link;
  std::int64_t messages = 0;
  std::string files;

  std::string key() const { return link.between_nodes ? "inter_node" : "intra_node"; }
};

Result<LinkAnswer> answer_of(const Arguments& arguments, const OpenedLog& first) {
  if (!arguments.has(Opt::kCluster)) {
    return option_error(Opt::kCluster, "the measured cluster is missing",
                        "give a name of tpsim list clusters, or a cluster file");
  }
  if (arguments.has(Opt::kSaveStack)) {
    return option_error(Opt::kSaveStack, "cannot be used here",
                        "nccl-tests calibrate the links of a cluster: use --save-cluster");
  }
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  LinkAnswer answer;
  TPSIM_TRY(answer.cluster, catalogue.load_cluster(*arguments[Opt::kCluster]));
  TPSIM_TRY(const Profile profile, catalogue.load_profile(answer.cluster.profile));
  std::vector<NcclTest> tests;
  for (const std::string& file : arguments.words()) {
    TPSIM_TRY(const OpenedLog opened, open_or_reuse(first, file));
    TPSIM_TRY(NcclTest test, parse_nccl_test(opened.text, file));
    answer.messages += static_cast<std::int64_t>(test.messages.size());
    tests.push_back(std::move(test));
  }
  answer.files = file_names(arguments.words());
  TPSIM_TRY(answer.link, fit_link(tests, answer.cluster, profile));
  return answer;
}

ClusterSpec cluster_with_link(const LinkAnswer& answer) {
  ClusterSpec cluster = answer.cluster;
  LinkSpec& link = answer.link.between_nodes ? cluster.inter_node : cluster.intra_node;
  link.efficiency = rounded(answer.link.after.efficiency);
  link.latency = Seconds(rounded(answer.link.after.latency.value()));
  cluster.name = calibrated_name(cluster.name);
  cluster.aliases.clear();
  cluster.source += fmt::format(
      "; {}: calibrated on {} messages of {}, {}: efficiency {:.3g} to {:.3g}, latency {} to {}",
      answer.key(), answer.messages, answer.files, today(), answer.link.before.efficiency,
      link.efficiency, to_string(answer.link.before.latency), to_string(link.latency));
  return cluster;
}

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
  const auto& saved = arguments[Opt::kSaveCluster];
  return text + heading(terminal, "NEXT") +
         (saved ? fmt::format("  tpsim plan --model MODEL --gpus N --cluster {}\n", *saved)
                : std::string("  --save-cluster FILE writes the calibrated cluster\n"));
}

JsonValue link_json(const LinkAnswer& answer) {
  const FittedLink& link = answer.link;
  const auto constant = [&](const char* key, double before, double after, double error) {
    return json_object({{"file", "cluster"},
                        {"key", answer.key() + "." + key},
                        {"before", before},
                        {"after", after},
                        {"error", error}});
  };
  std::vector<JsonValue> constants = {
      constant("efficiency", link.before.efficiency, link.after.efficiency,
               link.efficiency_error * link.after.efficiency),
      constant("latency", link.before.latency.value(), link.after.latency.value(),
               link.latency_error * link.after.latency.value())};
  return json_object({{"version", "tpsim-calibrate-report/1"},
                      {"stack", JsonValue()},
                      {"cluster", answer.cluster.name},
                      {"on", fmt::format("{} messages of {}", answer.messages, answer.files)},
                      {"constants", json_array(constants)},
                      {"mean_error_before", link.error_before},
                      {"mean_error_after", link.error_after},
                      {"mean_error_left_out", link.error_left_out}});
}

}  // namespace

Status calibrate_link(const Arguments& arguments, const OpenedLog& first,
                      const Terminal& terminal) {
  TPSIM_TRY(const LinkAnswer answer, answer_of(arguments, first));
  if (const auto& path = arguments[Opt::kSaveCluster]) {
    TPSIM_TRY_STATUS(write_file_atomically(*path, to_json(cluster_with_link(answer))));
  }
  return print(terminal, arguments.has(Opt::kJson) ? to_text(link_json(answer))
                                                   : link_text(terminal, arguments, answer));
}

}  // namespace tpsim::cli
