#include "core/machine/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {
namespace {

constexpr std::int64_t kMostHosts = 1 << 17;
constexpr std::int64_t kMostOnHost = 1024;  // GPUs or NICs
constexpr std::string_view kInHostLists =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.[],";

// Splits "a[1-2,4],b" at the commas outside of brackets.
std::vector<std::string_view> elements_of(std::string_view list) {
  std::vector<std::string_view> found;
  std::size_t begin = 0, depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']' && depth > 0) --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    if (i > begin) found.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  return found;
}

// Calls take(low, high, width) for each range of "001-004,7". False if the text is not such a list.
template <class Take>
bool for_ranges(std::string_view text, const Take& take) {
  if (text.empty()) return false;
  while (!text.empty()) {
    std::string_view range = cut_off(text, ",");
    const std::string_view low_text = cut_off(range, "-");
    const auto low = parse_number<std::int64_t>(low_text);
    const auto high = range.empty() ? low : parse_number<std::int64_t>(range);
    if (!low || !high || *low < 0 || *high < *low || *high - *low >= 8 * kMostHosts) return false;
    take(*low, *high, low_text.size());
  }
  return true;
}

// Appends the names of one element of a host list, such as "r[1-2]n[01-18]".
bool expand(std::string_view element, const std::string& before, std::vector<std::string>& out) {
  const std::size_t open = element.find('['), close = element.find(']');
  if (open == std::string_view::npos) {
    if (close != std::string_view::npos) return false;
    out.push_back(before + std::string(element));
    return std::ssize(out) <= kMostHosts;
  }
  if (close == std::string_view::npos || close < open) return false;
  bool fits = true;
  const std::string start = before + std::string(element.substr(0, open));
  const bool is_list = for_ranges(element.substr(open + 1, close - open - 1),
                                  [&](std::int64_t low, std::int64_t high, std::size_t width) {
                                    for (std::int64_t n = low; fits && n <= high; ++n) {
                                      fits = expand(element.substr(close + 1),
                                                    fmt::format("{}{:0{}}", start, n, width), out);
                                    }
                                  });
  return is_list && fits;
}

Result<std::vector<std::string>> hosts_in(std::string_view list, const std::string& where) {
  std::vector<std::string> names;
  for (const std::string_view element : elements_of(list)) {
    const bool is_plain = element.find_first_not_of(kInHostLists) == std::string_view::npos;
    if (is_plain && expand(element, "", names)) continue;
    return bad_input(fmt::format("'{}' is not a list of at most {} hosts", element, kMostHosts),
                     where, "write node[001-004,7], as Slurm does");
  }
  return names;
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Result<Allocation> read(std::string_view text) {
    for (std::int64_t line = 1; !text.empty(); ++line) {
      where_ = fmt::format("{}:{}", file_, line);
      std::string_view content = cut_off(text, "\n");
      content = trimmed(content.substr(0, content.find('#')));
      if (!content.empty()) TPSIM_TRY_STATUS(add_line(content));
    }
    return finish();
  }

 private:
  // Splits "Nodes=a" into a key in lower case and its value.
  static bool is_pair(const std::string& word, std::string& key, std::string& value) {
    const std::size_t end = word.find('=');
    if (end == std::string::npos) return false;
    key = in_lower_case(word.substr(0, end));
    value = word.substr(end + 1);
    return true;
  }

  Status add_line(std::string_view line) {
    std::string text(line.starts_with("- ") ? trimmed(line.substr(2)) : line);
    if (const std::size_t colon = text.find(':'); colon != std::string::npos) {  // topology.yaml
      const std::string_view key = std::string_view(text).substr(0, colon);
      TPSIM_TRY(const std::size_t known, at_line(choose("key", key, kYamlKeys)));
      if (known >= kYamlRead) return Ok{};
      text.replace(colon, text.find_first_not_of(' ', colon + 1) - colon, "=");
    }
    std::erase_if(text, [](char c) { return c == '"' || c == '\''; });
    std::vector<std::string> words = words_in(text);
    if (words.empty()) return Ok{};
    std::string key, value;
    if (is_pair(words.front(), key, value)) {
      if (key != "slurm_job_nodelist" && key != "slurm_nodelist") return add_topology(words);
      words.front() = value;
    }
    return add_hosts(words);
  }

  // `words`: of a line that starts with a key.
  Status add_topology(const std::vector<std::string>& words) {
    std::string key, value;
    const bool is_leaf = std::none_of(words.begin(), words.end(), [&](const std::string& word) {
      return is_pair(word, key, value) && key == "switches" && !value.empty();
    });
    for (const std::string& word : words) {
      if (!is_pair(word, key, value)) {
        return bad_input(fmt::format("'{}' is not a key with a value", word), where_,
                         "write Nodes=node[1-8]");
      }
      if (key == "blocksizes") return Ok{};
      if (key == "block" || key == "blockname") group_ = {value, true};
      if (key == "switch" || key == "switchname") group_ = {value, false};
      if (key != "nodes" || value.empty()) continue;
      if (group_.name.empty()) {
        return bad_input("has nodes of no block or switch", where_, "write BlockName=b1 Nodes=...");
      }
      TPSIM_TRY(const std::vector<std::string> names, hosts_in(value, where_));
      for (const std::string& name : names) {
        if (is_leaf && groups_.try_emplace(name, group_).second) in_order_.push_back(name);
      }
    }
    return Ok{};
  }

  Status add_hosts(const std::vector<std::string>& words) {
    AllocatedHost host;
    std::string key, value;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool has_value = is_pair(words[i], key, value) && !value.empty();
      if (!has_value) key = words[i].substr(0, words[i].find('='));
      TPSIM_TRY(const std::size_t known, at_line(choose("property of a host", key, kProperties)));
      if (!has_value) {
        return bad_input(fmt::format("{} has no value", kProperties[known]), where_,
                         fmt::format("write {}=...", kProperties[known]));
      }
      if (key == "rack") {
        host.rack = value;
      } else if (key == "ranks") {
        TPSIM_TRY_STATUS(add_ranks(value, host));
      } else {
        const auto count = parse_number<std::int64_t>(value);
        const std::int64_t least = key == "gpus" ? 1 : 0;
        if (!count || *count < least || *count > kMostOnHost) {
          return bad_input(fmt::format("'{}' is not a number of {}", value, key), where_,
                           fmt::format("give {} to {}", least, kMostOnHost));
        }
        (key == "gpus" ? host.gpus : host.nics) = *count;
      }
    }
    TPSIM_TRY(const std::vector<std::string> names, hosts_in(words.front(), where_));
    if (names.size() > 1 && !host.ranks.empty()) {
      return bad_input(fmt::format("ranks={} belongs to {} hosts", value, names.size()), where_,
                       "state the ranks of each host in a line of its own");
    }
    for (const std::string& name : names) {
      if (!listed_.insert(name).second) {
        return bad_input(fmt::format("host '{}' is listed twice", name), where_,
                         "list each host once");
      }
      host.name = name;
      allocation_.hosts.push_back(host);
    }
    return Ok{};
  }

  Status add_ranks(std::string_view text, AllocatedHost& host) {
    const bool is_list = for_ranges(text, [&](std::int64_t low, std::int64_t high, std::size_t) {
      for (std::int64_t rank = low; rank <= high; ++rank) host.ranks.push_back(rank);
    });
    if (is_list) return Ok{};
    return bad_input(fmt::format("'{}' is not a list of ranks", text), where_, "write ranks=0-3,8");
  }

  Result<std::size_t> at_line(const Result<std::size_t>& found) const {
    if (found.ok()) return found;
    return bad_input(found.error().message, where_, found.error().hint);
  }

  // Hosts of one block or switch follow each other, in the order of the topology.
  Result<Allocation> finish() {
    std::vector<AllocatedHost>& hosts = allocation_.hosts;
    if (hosts.empty()) {
      for (const std::string& name : in_order_) hosts.push_back({.name = name});
    }
    if (hosts.empty()) {
      return bad_input("lists no host", file_, "echo \"$SLURM_JOB_NODELIST\" prints a job's hosts");
    }
    std::map<std::string, std::size_t> groups;  // in the order of the topology, or of the hosts
    for (const std::string& name : in_order_)
      groups.try_emplace(groups_.at(name).name, groups.size());
    for (AllocatedHost& host : hosts) {
      const auto found = groups_.find(host.name);
      if (found != groups_.end() && found->second.is_block && host.rack.empty()) {
        host.rack = found->second.name;
      }
      groups.try_emplace(group_of(host), groups.size());
    }
    std::stable_sort(hosts.begin(), hosts.end(),
                     [&](const AllocatedHost& a, const AllocatedHost& b) {
                       return groups.at(group_of(a)) < groups.at(group_of(b));
                     });
    TPSIM_TRY_STATUS(check_ranks());
    return std::move(allocation_);
  }

  std::string group_of(const AllocatedHost& host) const {
    const auto found = groups_.find(host.name);
    return !host.rack.empty() || found == groups_.end() ? host.rack : found->second.name;
  }

  // Ranks are stated for all hosts or none, each once.
  Status check_ranks() const {
    std::set<std::int64_t> seen;
    std::int64_t stated = 0;
    for (const AllocatedHost& host : allocation_.hosts) {
      seen.insert(host.ranks.begin(), host.ranks.end());
      stated += std::ssize(host.ranks);
    }
    const bool is_whole = seen.empty() || *seen.rbegin() == stated - 1;
    if (std::ssize(seen) == stated && is_whole) return Ok{};
    return bad_input(
        fmt::format("states {} ranks, but not each of 0 to {} once", stated, stated - 1), file_,
        "remove ranks= of all hosts: tpsim then chooses the order");
  }

  static constexpr std::string_view kProperties[] = {"rack", "gpus", "nics", "ranks"};
  static constexpr std::size_t kYamlRead = 3;  // keys that are read; the others change nothing here
  static constexpr std::string_view kYamlKeys[] = {
      "block",    "switch",   "nodes", "topology", "cluster_default", "block_sizes", "blocks",
      "switches", "children", "tree",  "flat"};
  struct Group {
    std::string name;
    bool is_block = false;
  };
  const std::string& file_;
  std::string where_;
  Allocation allocation_;
  Group group_;  // of the line
  std::set<std::string> listed_;
  std::map<std::string, Group> groups_;  // by host
  std::vector<std::string> in_order_;    // hosts of groups_
};

}  // namespace

bool Allocation::states_ranks() const {
  return std::any_of(hosts.begin(), hosts.end(),
                     [](const AllocatedHost& host) { return !host.ranks.empty(); });
}

Result<Allocation> parse_allocation(std::string_view text, const std::string& file) {
  return Reader(file).read(text);
}

std::string ranges_text(const std::vector<std::int64_t>& ranks) {
  std::string text;
  for (std::size_t i = 0, next = 0; i < ranks.size(); i = next) {
    for (next = i + 1; next < ranks.size() && ranks[next] == ranks[next - 1] + 1;) ++next;
    if (!text.empty()) text += ',';
    text +=
        next == i + 1 ? std::to_string(ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[next - 1]);
  }
  return text;
}

std::vector<std::string> lines_of(const Allocation& allocation) {
  std::vector<std::string> lines;
  for (const AllocatedHost& host : allocation.hosts) {
    std::string line = host.name;
    if (!host.rack.empty()) line += " rack=" + host.rack;
    if (host.gpus > 0) line += fmt::format(" gpus={}", host.gpus);
    if (host.nics >= 0) line += fmt::format(" nics={}", host.nics);
    if (!host.ranks.empty()) line += " ranks=" + ranges_text(host.ranks);
    lines.push_back(line);
  }
  return lines;
}

Result<AllocatedNodes> nodes_of(const Allocation& allocation, const ClusterSpec& cluster) {
  const bool has_racks = host_size(cluster) < cluster.gpus_per_node;
  const std::int64_t usual_nics =
      std::max<std::int64_t>(1, cluster.nics_per_node * host_size(cluster) / cluster.gpus_per_node);
  AllocatedNodes nodes;
  std::map<std::string, std::int32_t> numbers;
  for (const AllocatedHost& host : allocation.hosts) {
    if (has_racks && host.rack.empty()) {
      return bad_input(fmt::format("host '{}' has no rack, but cluster {} has NVLink racks",
                                   host.name, cluster.name),
                       "--nodes",
                       "write 'HOST rack=R', or add BlockName= lines of scontrol show topology");
    }
    const std::string& name = has_racks ? host.rack : host.name;
    const auto [number, is_new] =
        numbers.try_emplace(name, static_cast<std::int32_t>(nodes.shapes.size()));
    if (is_new) {
      nodes.shapes.push_back({});
      nodes.names.push_back(name);
    }
    NodeShape& shape = nodes.shapes[static_cast<std::size_t>(number->second)];
    const std::int64_t gpus = host.gpus > 0 ? host.gpus : host_size(cluster);
    if (std::ssize(host.ranks) > gpus) {
      return bad_input(
          fmt::format("host '{}' has {} ranks, but {} GPUs", host.name, host.ranks.size(), gpus),
          "--nodes", "state at most one rank for each GPU");
    }
    shape.gpus += gpus;
    shape.nics += host.nics >= 0 ? host.nics : usual_nics;
    nodes.of_host.push_back(number->second);
    nodes.gpus_of_host.push_back(gpus);
  }
  for (std::size_t i = 0; i < nodes.shapes.size(); ++i) {
    const NodeShape& shape = nodes.shapes[i];
    if (shape.gpus > cluster.gpus_per_node) {
      return bad_input(fmt::format("'{}' has {} GPUs, but a node of cluster {} has {}",
                                   nodes.names[i], shape.gpus, cluster.name, cluster.gpus_per_node),
                       "--nodes", "choose the --cluster of these hosts");
    }
    if (shape.nics == 0 && nodes.shapes.size() > 1) {
      return bad_input(fmt::format("'{}' has no NIC", nodes.names[i]), "--nodes",
                       "state nics= above zero for one of its hosts");
    }
  }
  return nodes;
}

ClusterSpec with_nodes(ClusterSpec cluster, const Allocation& allocation,
                       const AllocatedNodes& nodes) {
  const NodeShape& first = nodes.shapes.front();
  const bool is_equal =
      std::count(nodes.shapes.begin(), nodes.shapes.end(), first) == std::ssize(nodes.shapes);
  cluster.nodes = std::ssize(nodes.shapes);
  if (!is_equal || allocation.states_ranks()) {
    cluster.partly_used_gpus = 0;
    cluster.unequal_nodes = nodes.shapes;
    return cluster;
  }
  if (first.gpus != cluster.gpus_per_node) cluster.partly_used_gpus = 0;
  if (first.gpus % host_size(cluster) != 0) cluster.gpus_per_host = 0;
  cluster.gpus_per_node = first.gpus;
  cluster.nics_per_node = std::max<std::int64_t>(1, first.nics);
  return cluster;
}

Allocation with_ranks(Allocation allocation, const AllocatedNodes& nodes,
                      const std::vector<std::int32_t>& node_of) {
  std::vector<std::vector<std::int64_t>> ranks(nodes.shapes.size());  // of each node, ascending
  for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
    ranks[static_cast<std::size_t>(node_of[rank])].push_back(static_cast<std::int64_t>(rank));
  }
  std::vector<std::size_t> placed(ranks.size());
  for (std::size_t i = 0; i < allocation.hosts.size(); ++i) {
    AllocatedHost& host = allocation.hosts[i];
    const auto node = static_cast<std::size_t>(nodes.of_host[i]);
    const std::vector<std::int64_t>& own = ranks[node];
    host.ranks.clear();
    for (std::int64_t n = nodes.gpus_of_host[i]; n > 0 && placed[node] < own.size(); --n) {
      host.ranks.push_back(own[placed[node]++]);
    }
  }
  return allocation;
}

std::vector<std::int32_t> stated_nodes(const Allocation& allocation, const AllocatedNodes& nodes) {
  std::map<std::int64_t, std::int32_t> node_of;
  for (std::size_t i = 0; i < allocation.hosts.size(); ++i) {
    for (const std::int64_t rank : allocation.hosts[i].ranks) node_of[rank] = nodes.of_host[i];
  }
  std::vector<std::int32_t> in_order;
  for (const auto& [rank, node] : node_of) in_order.push_back(node);
  return in_order;
}

}  // namespace tpsim
