#include "evidence/calibration/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>

#include "core/base/text.h"
#include "costs/collective_cost.h"
#include "evidence/calibration/cross_validation.h"
#include "evidence/calibration/robust_fit.h"

namespace tpsim {
namespace {

struct NamedTest {
  std::string_view program;
  std::optional<CollectiveKind> kind;  // nothing: a pattern that no training step has
};
constexpr std::array kTests = {
    NamedTest{"all_reduce_perf", CollectiveKind::kAllReduce},
    NamedTest{"all_gather_perf", CollectiveKind::kAllGather},
    NamedTest{"reduce_scatter_perf", CollectiveKind::kReduceScatter},
    NamedTest{"alltoall_perf", CollectiveKind::kAllToAll},
    NamedTest{"broadcast_perf", CollectiveKind::kBroadcast},
    NamedTest{"reduce_perf", {}},
    NamedTest{"gather_perf", {}},
    NamedTest{"scatter_perf", {}},
    NamedTest{"sendrecv_perf", {}},
    NamedTest{"hypercube_perf", {}},
};

// Returns the test that a line starts: "# Collective test starting: all_reduce_perf", or the shell
// command with "./build/all_reduce_perf". Null for other lines.
const NamedTest* test_of_line(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const std::string_view name = std::string_view(word).substr(word.rfind('/') + 1);
    for (const NamedTest& test : kTests) {
      if (name == test.program) return &test;
    }
  }
  return nullptr;
}

std::optional<double> number(const std::string& word) {
  std::size_t used = 0;
  try {
    const double value = std::stod(word, &used);
    if (used == word.size() && std::isfinite(value)) return value;
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return std::nullopt;
}

// Columns of a row: bytes, count, type, redop, root, time in microseconds, and two bandwidths in
// GB/s. Before 2021 nccl-tests printed no root, and no redop for collectives without reduction.
struct NcclColumns {
  std::size_t time = 5;
  bool has_redop = true, has_root = true;
};
constexpr std::size_t kType = 2;

// Parses "#       size         count      type   redop    root     time   algbw   busbw".
std::optional<NcclColumns> nccl_columns_of(const std::vector<std::string>& words) {
  const auto size = std::find(words.begin(), words.end(), "size");
  const auto time = std::find(size, words.end(), "time");
  if (time == words.end() || time - size <= static_cast<std::ptrdiff_t>(kType)) {
    return std::nullopt;
  }
  NcclColumns columns;
  columns.time = static_cast<std::size_t>(time - size);
  columns.has_redop = std::find(size, time, "redop") != time;
  columns.has_root = std::find(size, time, "root") != time;
  return columns;
}

struct Row {
  TimedMessage message;
  bool adds = false;       // whether the collective reduces; redop is "none" otherwise
  bool is_rooted = false;  // whether one rank is the source or the destination
  double bus_factor = 0;
};

// Returns the index of the first column: two numbers and a type. Launchers may prefix every line
// with a label.
std::size_t start_of_row(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + kType < words.size(); ++i) {
    if (number(words[i]) && number(words[i + 1]) && !number(words[i + kType])) return i;
  }
  return words.size();
}

std::optional<Row> row_of_line(const std::vector<std::string>& words, const NcclColumns& columns) {
  const std::size_t start = start_of_row(words);
  if (start + columns.time + 2 >= words.size()) return std::nullopt;
  const auto column = [&](std::size_t index) { return number(words[start + index]); };
  const auto size = column(0), time = column(columns.time);
  const auto algorithm = column(columns.time + 1), bus = column(columns.time + 2);
  if (!size || !time || !algorithm || !bus || *time <= 0) return std::nullopt;
  Row row;
  row.message = {Bytes(*size), Seconds(*time * 1e-6)};
  row.adds = columns.has_redop && words[start + kType + 1] != "none";
  row.is_rooted = columns.has_root && words[start + columns.time - 1] != "-1";
  row.bus_factor = *algorithm > 0 ? *bus / *algorithm : 0;
  return row;
}

// Derives the test from the ratio of bus to algorithm bandwidth. `row` is the largest message,
// whose bandwidths are printed with the most digits. Without a column of roots, a reduction over
// two ranks is taken for an all-reduce.
const NamedTest& test_of_row(const Row& row, std::int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  const double half = (n - 1) / n;
  const bool is_doubled = row.bus_factor > 1.5 * half && (ranks > 2 || !row.is_rooted);
  const bool is_whole = row.bus_factor > (1 + half) / 2;
  const std::string_view name = row.adds && is_doubled      ? "all_reduce_perf"
                                : row.adds && is_whole      ? "reduce_perf"
                                : row.adds                  ? "reduce_scatter_perf"
                                : is_whole && row.is_rooted ? "broadcast_perf"
                                : is_whole                  ? "sendrecv_perf"
                                : row.is_rooted             ? "gather_perf"
                                                            : "all_gather_perf";
  return *std::find_if(kTests.begin(), kTests.end(),
                       [&](const NamedTest& one) { return one.program == name; });
}

struct Ranks {
  std::set<std::string> hosts;
  std::int64_t count = 0;
};

// Parses "#  Rank  0 Group  0 Pid 7 on  node-3 device  0 [0x07] NVIDIA A100". Returns the host;
// nothing for other lines.
std::optional<std::string> host_of_rank(const std::vector<std::string>& words) {
  const auto rank = std::find(words.begin(), words.end(), "Rank");
  if (rank == words.begin() || rank == words.end() || !std::prev(rank)->ends_with('#')) {
    return std::nullopt;
  }
  const auto on = std::find(rank, words.end(), "on");
  if (on == words.end() || on + 1 == words.end()) return std::nullopt;
  return *(on + 1);
}

// Reads the output of one or several tests. A test starts with its name or its list of ranks.
class NcclReader {
 public:
  explicit NcclReader(const std::string& file) : file_(file) {}

  Status read_line(const std::vector<std::string>& words) {
    if (const NamedTest* const named = test_of_line(words)) {
      TPSIM_TRY_STATUS(finish());
      stated_ = named;
    }
    if (std::optional<std::string> host = host_of_rank(words)) {
      TPSIM_TRY_STATUS(finish());
      if (!lists_ranks_) ranks_ = {};  // of an earlier test
      lists_ranks_ = true;
      ranks_.hosts.insert(*std::move(host));
      ++ranks_.count;
    }
    columns_ = nccl_columns_of(words).value_or(columns_);
    const auto row = row_of_line(words, columns_);
    if (row && row->message.size > Bytes()) rows_.push_back(*row);
    return Ok{};
  }

  // Adds the test that ends here, if it has rows.
  Status finish() {
    if (rows_.empty()) return Ok{};
    if (ranks_.count < 2) {
      return bad_input("does not list the ranks of the test", file_,
                       "keep the lines '#  Rank  0 ... on HOST device 0' of the output");
    }
    const auto largest = std::max_element(
        rows_.begin(), rows_.end(),
        [](const Row& a, const Row& b) { return a.message.size < b.message.size; });
    const NamedTest& named = stated_ != nullptr ? *stated_ : test_of_row(*largest, ranks_.count);
    if (!named.kind) {
      return bad_input(
          fmt::format("contains {}, whose pattern no training step has", named.program), file_,
          "give tests of all_reduce, all_gather, reduce_scatter, alltoall or "
          "broadcast only");
    }
    NcclTest test{*named.kind, ranks_.count, std::ssize(ranks_.hosts), {}};
    for (const Row& row : rows_) test.messages.push_back(row.message);
    tests.push_back(std::move(test));
    rows_.clear();
    stated_ = nullptr;
    lists_ranks_ = false;
    return Ok{};
  }

  std::vector<NcclTest> tests;

 private:
  const std::string& file_;
  Ranks ranks_;
  bool lists_ranks_ = false;  // whether ranks_ are those of the current test
  NcclColumns columns_;
  std::vector<Row> rows_;
  const NamedTest* stated_ = nullptr;
};

GroupPlacement placement_of(const NcclTest& test) {
  GroupPlacement placement;
  placement.ranks = test.ranks;
  placement.nodes = test.nodes;
  placement.ranks_per_node = (test.ranks + test.nodes - 1) / test.nodes;
  placement.groups_per_node = 1;
  return placement;
}

// The fit has two unknowns: the logarithms of efficiency and latency relative to the cluster's
// values.
constexpr std::size_t kUnknowns = 2;
constexpr double kStep = 0.05;

struct Message {
  const NcclTest* test;
  TimedMessage timed;
};

class LinkFitter {
 public:
  LinkFitter(std::vector<Message> messages, const ClusterSpec& cluster, const Profile& profile,
             bool between)
      : messages_(std::move(messages)), cluster_(cluster), profile_(profile), between_(between) {}

  LinkSpec link_at(const std::vector<double>& x) const {
    LinkSpec link = between_ ? cluster_.inter_node : cluster_.intra_node;
    link.efficiency = std::clamp(link.efficiency * std::exp(x[0]), 1e-3, 1.0);
    link.latency *= std::exp(x[1]);
    return link;
  }

  std::vector<double> residuals(const std::vector<double>& x) const {
    ClusterSpec cluster = cluster_;
    (between_ ? cluster.inter_node : cluster.intra_node) = link_at(x);
    const CollectiveCostModel model(profile_, cluster);
    std::vector<double> left;
    for (const Message& m : messages_) {
      const Seconds priced = model.price(m.test->kind, m.timed.size, placement_of(*m.test));
      left.push_back(std::log(m.timed.time / priced));
    }
    return left;
  }

  LinearProblem problem_at(const std::vector<double>& x) const {
    LinearProblem problem;
    problem.at = x;
    problem.spreads = {1.0, 2.0};  // weak priors: the messages determine both
    const std::vector<double> here = residuals(x);
    for (const double r : here) problem.rows.push_back({r, std::vector<double>(kUnknowns)});
    for (std::size_t k = 0; k < kUnknowns; ++k) {
      std::vector<double> near = x;
      near[k] -= kStep;
      const std::vector<double> there = residuals(near);
      for (std::size_t r = 0; r < here.size(); ++r) {
        problem.rows[r].slopes[k] = (there[r] - here[r]) / kStep;
      }
    }
    return problem;
  }

  RobustFit fit() const {
    std::vector<double> x(kUnknowns, 0.0);
    const double most = -std::log(link_at(x).efficiency);
    RobustFit best;
    constexpr int kRounds = 15;
    for (int round = 0; round < kRounds; ++round) {
      best = robust_fit(problem_at(x));
      best.unknowns[0] = std::min(best.unknowns[0], most);
      for (std::size_t k = 0; k < kUnknowns; ++k) {
        x[k] += std::clamp(best.unknowns[k] - x[k], -1.0, 1.0);
      }
    }
    best.unknowns = x;
    return best;
  }

 private:
  std::vector<Message> messages_;
  const ClusterSpec& cluster_;
  const Profile& profile_;
  bool between_;
};

double left_out_error(const std::vector<Message>& messages, const ClusterSpec& cluster,
                      const Profile& profile, bool between) {
  double sum = 0;
  for (const std::size_t half : {0U, 1U}) {
    std::array<std::vector<Message>, 2> parts;
    for (std::size_t i = 0; i < messages.size(); ++i) parts[(i + half) % 2].push_back(messages[i]);
    const LinkFitter seen(parts[0], cluster, profile, between);
    const LinkFitter unseen(parts[1], cluster, profile, between);
    sum += mean_error(unseen.residuals(seen.fit().unknowns)) / 2;
  }
  return sum;
}

}  // namespace

bool is_nccl_test(std::string_view text) {
  return text.find("algbw") != std::string_view::npos &&
         text.find("busbw") != std::string_view::npos;
}

Result<std::vector<NcclTest>> parse_nccl_tests(std::string_view text, const std::string& file) {
  NcclReader reader(file);
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    TPSIM_TRY_STATUS(reader.read_line(words_in(line)));
  }
  TPSIM_TRY_STATUS(reader.finish());
  if (reader.tests.empty()) {
    return bad_input("has no row of nccl-tests with a size and a time", file);
  }
  return std::move(reader.tests);
}

Result<FittedLink> fit_link(const std::vector<NcclTest>& tests, const ClusterSpec& cluster,
                            const Profile& profile) {
  FittedLink fitted;
  fitted.between_nodes = tests.front().nodes > 1;
  std::vector<Message> messages;
  for (const NcclTest& test : tests) {
    if ((test.nodes > 1) != fitted.between_nodes) {
      return bad_input(
          "some tests ran inside a node and some between nodes", "",
          "calibrate with the tests inside a node first, then with the tests between nodes");
    }
    const std::int64_t on_a_node = (test.ranks + test.nodes - 1) / test.nodes;
    if (on_a_node > cluster.gpus_per_node) {
      return bad_input(fmt::format("{} ranks ran on one node, but a node of {} has {} GPUs",
                                   on_a_node, cluster.name, cluster.gpus_per_node),
                       "", "give the cluster on which the tests ran: --cluster NAME");
    }
    for (const TimedMessage& message : test.messages) messages.push_back({&test, message});
  }
  const LinkFitter fitter(messages, cluster, profile, fitted.between_nodes);
  const RobustFit found = fitter.fit();
  const std::vector<double> start(kUnknowns, 0.0);
  fitted.before = fitter.link_at(start);
  fitted.after = fitter.link_at(found.unknowns);
  fitted.efficiency_error = found.errors[0];
  fitted.latency_error = found.errors[1];
  fitted.error_before = mean_error(fitter.residuals(start));
  fitted.error_after = mean_error(fitter.residuals(found.unknowns));
  fitted.error_left_out = messages.size() < 4
                              ? fitted.error_before
                              : left_out_error(messages, cluster, profile, fitted.between_nodes);
  return fitted;
}

}  // namespace tpsim
