// Reads Megatron's argument block in a log.
#include <algorithm>
#include <cctype>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "frameworks/launch/launch_command.h"

namespace tpsim {
namespace {

// Parses a line of Megatron's argument block, "  tensor_model_parallel_size ......................
// 4". A launcher may have added a prefix.
std::optional<LaunchOption> argument_of(std::string_view line) {
  const std::size_t dots = line.find(" ...");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::size_t start = line.find_last_of(" \t", dots - (dots > 0 ? 1 : 0));
  const std::size_t begin = start == std::string_view::npos || start > dots ? 0 : start + 1;
  const std::string_view name = line.substr(begin, dots - begin);
  std::size_t end = dots + 1;
  while (end < line.size() && line[end] == '.') ++end;
  const bool is_word = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
  if (!is_word || end >= line.size() || line[end] != ' ') return std::nullopt;
  LaunchOption option{"--" + std::string(name), std::string(trimmed(line.substr(end)))};
  std::replace(option.key.begin(), option.key.end(), '_', '-');
  return option;
}

}  // namespace

bool has_arguments_block(std::string_view text) {
  const std::size_t at = text.find("tensor_model_parallel_size ..");
  return at != std::string_view::npos;
}

Result<LaunchCommand> command_of_log(const LaunchFile& file) {
  LaunchCommand command;
  command.is_log = true;
  std::string_view text = file.text;
  while (!text.empty()) {
    auto option = argument_of(cut_off(text, "\n"));
    if (!option || option->value == "None" || option->value == "[]") continue;
    if (has_key(command.options, option->key)) continue;
    if (option->key == "--world-size") {
      const auto gpus = parse_number<std::int64_t>(option->value);
      command.size = {1, gpus && *gpus > 0 && *gpus <= 1 << 20 ? *gpus : 0};
      continue;
    }
    command.options.push_back(*std::move(option));
    if (command.options.size() >= kMostOptions) return too_many(file);
  }
  if (command.size.gpus_per_node == 0) command.size_unknown = "the log does not state world_size";
  return command;
}

}  // namespace tpsim
