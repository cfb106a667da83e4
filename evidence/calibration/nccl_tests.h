// Reads output of NVIDIA's nccl-tests (all_reduce_perf, ...), and fits the measured link.
//
// Lines "#  Rank  0 Group  0 Pid 7 on  host device  0 ..." give the number of ranks and nodes. Rows
// have the columns "size count type redop root time algbw busbw ..."; the out-of-place time is
// used. The collective is read from "# Collective test starting: all_reduce_perf" or the command,
// or else derived from the root and the ratio of bus to algorithm bandwidth.
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
  std::vector<TimedMessage> messages;  // without empty messages
};

bool is_nccl_test(std::string_view text);
// Returns the tests of the output in their order. Error for tests of other patterns, such as
// reduce_perf and sendrecv_perf. `file` names the input in errors.
Result<std::vector<NcclTest>> parse_nccl_tests(std::string_view text, const std::string& file);

// A fitted link: efficiency at large messages, and latency per hop.
struct FittedLink {
  bool between_nodes = false;
  LinkSpec before, after;
  // Standard deviations of log(efficiency) and log(latency).
  double efficiency_error = 0, latency_error = 0;
  double error_before = 0, error_after = 0;  // mean relative error of the time
  double error_left_out = 0;  // of each half of the sizes under a fit to the other half
};
// Fits efficiency and latency to tests of one cluster. All tests must run within a node, or all
// between nodes.
Result<FittedLink> fit_link(const std::vector<NcclTest>& tests, const ClusterSpec& cluster,
                            const Profile& profile);

}  // namespace tpsim
