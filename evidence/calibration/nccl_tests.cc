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
#include "evidence/calibration/robust_fit.h"

namespace tpsim {
namespace {

struct NamedTest {
  std::string_view program;
  CollectiveKind kind;
};
constexpr std::array kTests = {
    NamedTest{"all_reduce_perf", CollectiveKind::kAllReduce},
    NamedTest{"all_gather_perf", CollectiveKind::kAllGather},
    NamedTest{"reduce_scatter_perf", CollectiveKind::kReduceScatter},
    NamedTest{"alltoall_perf", CollectiveKind::kAllToAll},
    NamedTest{"broadcast_perf", CollectiveKind::kBroadcast},
};

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
  bool has_redop = true;
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
  return columns;
}

struct Row {
  TimedMessage message;
  bool adds = false;  // whether the collective reduces; redop is "none" otherwise
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
  row.bus_factor = *algorithm > 0 ? *bus / *algorithm : 0;
  return row;
}

// Derives the collective from the ratio of bus to algorithm bandwidth. `row` is the largest
// message, whose bandwidths are printed with the most digits.
CollectiveKind kind_of(const Row& row, std::int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  const double half = (n - 1) / n;
  if (row.bus_factor > 1.5 * half && ranks > 2) return CollectiveKind::kAllReduce;
  if (!row.adds) {
    return row.bus_factor > (1 + half) / 2 ? CollectiveKind::kBroadcast
                                           : CollectiveKind::kAllGather;
  }
  return row.bus_factor > (1 + half) / 2 ? CollectiveKind::kAllReduce
                                         : CollectiveKind::kReduceScatter;
}

struct Ranks {
  std::set<std::string> hosts;
  std::int64_t count = 0;
};

// Parses "#  Rank  0 Group  0 Pid 7 on  node-3 device  0 [0x07] NVIDIA A100".
void add_rank(Ranks& ranks, const std::vector<std::string>& words) {
  const auto rank = std::find(words.begin(), words.end(), "Rank");
  if (rank == words.begin() || rank == words.end() || !std::prev(rank)->ends_with('#')) return;
  const auto on = std::find(rank, words.end(), "on");
  if (on == words.end() || on + 1 == words.end()) return;
  ranks.hosts.insert(*(on + 1));
  ++ranks.count;
}

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

double mean_error(const std::vector<double>& residuals) {
  double sum = 0;
  for (const double r : residuals) sum += std::fabs(std::expm1(-r));
  return sum / static_cast<double>(residuals.size());
}

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

Result<NcclTest> parse_nccl_test(std::string_view text, const std::string& file) {
  NcclTest test;
  Ranks ranks;
  NcclColumns columns;
  std::vector<Row> rows;
  std::optional<CollectiveKind> stated;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    for (const NamedTest& named : kTests) {
      if (line.find(named.program) != std::string::npos) stated = named.kind;
    }
    const std::vector<std::string> words = words_in(line);
    add_rank(ranks, words);
    columns = nccl_columns_of(words).value_or(columns);
    if (const auto row = row_of_line(words, columns); row && row->message.size > Bytes()) {
      rows.push_back(*row);
    }
  }
  if (rows.empty()) return bad_input("has no row of nccl-tests with a size and a time", file);
  if (ranks.count < 2) {
    return bad_input("does not list the ranks of the test", file,
                     "keep the lines '#  Rank  0 ... on HOST device 0' of the output");
  }
  test.ranks = ranks.count;
  test.nodes = static_cast<std::int64_t>(ranks.hosts.size());
  const auto largest = std::max_element(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.message.size < b.message.size;
  });
  test.kind = stated.value_or(kind_of(*largest, test.ranks));
  for (const Row& row : rows) test.messages.push_back(row.message);
  return test;
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
