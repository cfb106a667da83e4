#include "stacks/launch_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/leading_number.h"
#include "core/text.h"

namespace tpsim {
namespace {

// No degree, batch or size of a layer is larger, and products of three still fit.
constexpr std::int64_t kLargestCount = 1 << 20;

bool parse_whole(std::string_view text, std::int64_t& out) {
  const auto number = parse_number<std::int64_t>(text);
  if (!number || *number < 0 || *number > kLargestCount) return false;
  out = *number;
  return true;
}

// Single quotes protect what a shell would read otherwise.
std::string quoted(const std::string& value) {
  const bool plain = value.find_first_of("|*()'\" $") == std::string::npos;
  return plain ? value : "'" + value + "'";
}

std::string_view unquoted(std::string_view value) {
  if (value.size() >= 2 && value.front() == '\'' && value.back() == '\'') {
    return value.substr(1, value.size() - 2);
  }
  return value;
}

LaunchOption option_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return {std::string(line), ""};
  return {std::string(line.substr(0, space)), std::string(unquoted(trimmed(line.substr(space))))};
}

}  // namespace

bool LaunchOptionReader::flag(std::string_view name) {
  const auto value = text(name);
  if (value && !value->empty()) fail(fmt::format("{} takes no value, not '{}'", name, *value));
  return value.has_value();
}

std::optional<std::string> LaunchOptionReader::text(std::string_view name) {
  known_.emplace_back(name);
  const auto found = std::find_if(left_.begin(), left_.end(),
                                  [&](const LaunchOption& option) { return option.name == name; });
  if (found == left_.end()) return std::nullopt;
  std::string value = std::move(found->value);
  left_.erase(found);
  return value;
}

std::int64_t LaunchOptionReader::integer(std::string_view name, std::int64_t fallback) {
  const auto value = text(name);
  if (!value) return fallback;
  std::int64_t number = 0;
  if (!parse_whole(*value, number)) {
    fail(fmt::format("{} is '{}', no whole number", name, *value));
  }
  return number;
}

void LaunchOptionReader::expect(std::string_view name, std::int64_t wanted) {
  const std::int64_t found = integer(name, -1);
  if (found != wanted) {
    fail(found < 0 ? fmt::format("{} is missing", name)
                   : fmt::format("{} is {}; the model has {}", name, found, wanted));
  }
}

void LaunchOptionReader::expect(const LaunchOption& wanted, std::string_view otherwise) {
  const auto found = text(wanted.name);
  const std::string_view value = found ? std::string_view(*found) : otherwise;
  const auto ours = parse_number<double>(wanted.value);
  const bool same = value == wanted.value || (ours && ours == parse_number<double>(value));
  if (same && (found || !otherwise.empty())) return;
  if (!found && otherwise.empty()) return fail(fmt::format("{} is missing", wanted.name));
  fail(fmt::format("{} is {}{}; the model has {}", wanted.name, value,
                   found ? "" : " when it is left out", wanted.value));
}

void LaunchOptionReader::refuse_other(std::span<const char* const> switches,
                                      const LaunchOptions& wanted) {
  for (const char* name : switches) {
    const auto& all = wanted.all();
    const bool is_wanted = std::any_of(all.begin(), all.end(),
                                       [&](const LaunchOption& one) { return one.name == name; });
    const bool is_set = flag(name);
    if (is_set == is_wanted) continue;
    fail(is_set ? fmt::format("{} does not go with the model", name)
                : fmt::format("{} is missing: the model has it", name));
  }
}

void LaunchOptionReader::fail(std::string message) {
  if (!error_) error_ = Error{ErrorKind::kBadInput, std::move(message), "", ""};
}

Status LaunchOptionReader::finish() const {
  if (left_.empty()) return error_ ? Status(*error_) : Ok{};
  // A name that nothing knows is likelier the cause of an error than its effect.
  const std::string& name = left_.front().name;
  if (std::find(known_.begin(), known_.end(), name) != known_.end()) {
    return Error{ErrorKind::kBadInput, fmt::format("{} is given twice", name), "", "give it once"};
  }
  const std::string near = nearest(name, std::span<const std::string>(known_));
  return Error{ErrorKind::kBadInput, fmt::format("unknown setting '{}'", name), "",
               near.empty() ? "only what a plan is made of is read; leave data, optimizer and "
                              "checkpoints out"
                            : fmt::format("did you mean {}?", near)};
}

LaunchSize launch_size(std::int64_t gpus, std::int64_t gpus_per_node) {
  if (gpus <= gpus_per_node) return {1, gpus};
  return {gpus / gpus_per_node, gpus_per_node};
}

std::string shell_text(const LaunchSize& size, const LaunchOptions& options) {
  std::string text =
      fmt::format("NUM_NODES={}\nGPUS_PER_NODE={}\nTRAIN_ARGS=(\n", size.nodes, size.gpus_per_node);
  for (const LaunchOption& option : options.all()) {
    text += "  " + option.name;
    if (!option.value.empty()) text += " " + quoted(option.value);
    text += "\n";
  }
  return text + ")\n";
}

std::string ordered_kernels_line(const Plan& plan) {
  return plan.zero < 2 ? "export CUDA_DEVICE_MAX_CONNECTIONS=1\n" : "";
}

Result<ShellOptions> parse_shell(const LaunchFile& file) {
  const auto wrong = [&](int line, std::string message) {
    return Error{ErrorKind::kBadInput, std::move(message), fmt::format("{}:{}", file.name, line),
                 ""};
  };
  ShellOptions shell{{0, 0}, {}};
  bool inside = false;
  bool seen = false;
  int number = 0;
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (inside && line == ")") {
      inside = false;
    } else if (inside && !line.empty() && !line.starts_with('#')) {
      if (!line.starts_with("--")) return wrong(number, fmt::format("'{}' is no option", line));
      shell.options.push_back(option_of(line));
    } else if (line == "TRAIN_ARGS=(") {
      inside = seen = true;
    } else if (line.starts_with("NUM_NODES=") && !parse_whole(line.substr(10), shell.size.nodes)) {
      return wrong(number, fmt::format("'{}' is no number of nodes", line));
    } else if (line.starts_with("GPUS_PER_NODE=") &&
               !parse_whole(line.substr(14), shell.size.gpus_per_node)) {
      return wrong(number, fmt::format("'{}' is no number of GPUs", line));
    }
  }
  if (!seen || inside) return wrong(number, "TRAIN_ARGS=( ... ) is missing or not closed");
  if (shell.size.nodes < 1 || shell.size.gpus_per_node < 1) {
    return wrong(number, "NUM_NODES or GPUS_PER_NODE is missing");
  }
  return shell;
}

Result<LaunchFile> file_named(const std::vector<LaunchFile>& files, std::string_view name) {
  for (const LaunchFile& file : files) {
    if (file.name == name) return file;
  }
  return Error{ErrorKind::kBadInput, fmt::format("the file {} is missing", name), "", ""};
}

Error cannot_express(LaunchStack stack, std::string what, std::string why) {
  return Error{ErrorKind::kBadInput, fmt::format("{} cannot run {}", name_of(stack), what), "--to",
               std::move(why)};
}

}  // namespace tpsim
