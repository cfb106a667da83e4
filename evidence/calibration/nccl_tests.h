// Output of NVIDIA's nccl-tests (all_reduce_perf and its kin), and the link that it was measured
// on.
//
// Read are the lines "#  Rank  0 Group  0 Pid 7 on  host device  0 ...", by which ranks and nodes
// are counted, and the rows "size count type redop root time algbw busbw ...", of which the time
// out of place counts. The collective is what "# Collective test starting: all_reduce_perf" says,
// else what bus over algorithm bandwidth is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/machine/cluster_spec.h"
#include "core/machine/profile.h"
#include "core/program/program.h"

namespace tpsim {

struct TimedMessage {
  Bytes size;
  Seconds time;
};

struct NcclTest {
  CollectiveKind kind{};
  std::int64_t ranks = 0;
  std::int64_t nodes = 0;
  std::vector<TimedMessage> messages;  // without those of no bytes
};

bool is_nccl_test(std::string_view text);
// `file` names it in errors.
Result<NcclTest> parse_nccl_test(std::string_view text, const std::string& file);

// A link that was fitted to the times of messages: what large ones reach of its speed, and a hop.
struct FittedLink {
  bool between_nodes = false;
  LinkSpec before, after;
  // Standard deviations of the logarithms of efficiency and latency.
  double efficiency_error = 0, latency_error = 0;
  double error_before = 0, error_after = 0;  // mean, as a share of the time
  double error_left_out = 0;                 // of every second size, by a fit to the others
};
// Tests of one cluster, all inside a node or all between nodes.
Result<FittedLink> fit_link(const std::vector<NcclTest>& tests, const ClusterSpec& cluster,
                            const Profile& profile);

}  // namespace tpsim
