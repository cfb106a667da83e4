#include "frameworks/launch/outside_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"

namespace tpsim {
namespace {

// Returns the row that refuses the option; null if there is none.
const LeftOver* row_of_refused(const LaunchOption& option) {
  const std::vector<LeftOver>& refused = fact_table("refused").left;
  const auto row = std::find_if(refused.begin(), refused.end(), [&](const LeftOver& one) {
    return matches_any(option.key, one.patterns);
  });
  return row == refused.end() ? nullptr : &*row;
}

// Returns the option as the user wrote it: "--optimizer muon".
std::string to_string(const LaunchOption& option) {
  return option.value.empty() ? option.key : fmt::format("{} {}", option.key, option.value);
}

}  // namespace

std::string_view list_of(std::string_view name) {
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos;
       dot = name.find('.', dot + 1)) {
    const std::string_view part = name.substr(dot + 1, name.find('.', dot + 1) - dot - 1);
    const bool is_number =
        !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (is_number) return name.substr(0, dot);
  }
  return name;
}

bool has_pattern(std::string_view name, std::string_view patterns) {
  return matches_any(name, patterns) || matches_any(list_of(name), patterns);
}

void add_outside(std::string_view name, std::vector<std::string>& outside) {
  name = list_of(name);
  if (std::find(outside.begin(), outside.end(), name) == outside.end()) outside.emplace_back(name);
}

bool is_harmless(const LeftOver& row, std::string_view value) {
  return !row.harmless.empty() && matches_any(value, row.harmless);
}

bool ignores(const FactTable& table, std::string_view name) {
  return std::any_of(table.left.begin(), table.left.end(), [&](const LeftOver& row) {
    return row.why.empty() && matches_any(name, row.patterns);
  });
}

bool is_outside(LaunchStack stack, std::string_view name) {
  const std::string_view table = name_of(stack);
  // torchtitan's reader takes the converters, and no other setting of the model.
  return matches_any(table, "megatron-lm megatron-deepspeed nemo torchtitan") &&
         name != "--model.converters" && ignores(fact_table(table), name);
}

bool is_set_aside(LaunchStack stack, const LaunchOption& option) {
  return is_outside(stack, option.key) || row_of_refused(option) != nullptr;
}

// A log prints all options. Only active ones are refused: switches without a value, low-precision
// formats, and the optimizer.
void refuse_logged(const std::vector<LaunchOption>& options, LeftSettings& left) {
  for (const LaunchOption& option : options) {
    const bool counts = matches_any(
        option.key,
        "--fp8 --fp4 --optimizer --exp-avg-dtype --exp-avg-sq-dtype --main-params-dtype");
    for (const LeftOver& refused : fact_table("refused").left) {
      if (!matches_any(option.key, refused.patterns) || (!option.value.empty() && !counts))
        continue;
      if (is_harmless(refused, option.value)) continue;
      if (option.key.starts_with("--fp8-") || option.key.starts_with("--fp4-")) continue;
      left.refuse(option.key, to_string(option), std::string(refused.why));
    }
  }
}

std::vector<std::string> take_outside(LaunchStack stack, std::vector<LaunchOption>& options,
                                      LeftSettings& left) {
  std::vector<std::string> names;
  std::vector<LaunchOption> kept;
  for (LaunchOption& option : options) {
    const LeftOver* const row = row_of_refused(option);
    if (row != nullptr ? is_harmless(*row, option.value) : is_outside(stack, option.key)) {
      add_outside(option.key, names);
    } else if (row != nullptr) {
      left.refuse(option.key, to_string(option), std::string(row->why));
    } else {
      kept.push_back(std::move(option));
    }
  }
  options = std::move(kept);
  return names;
}

}  // namespace tpsim
