#include "frameworks/launch/left_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/text.h"
#include "frameworks/launch/facts.h"

namespace tpsim {
namespace {

// Returns the name under which --set accepts the setting: options lose their dashes.
std::string_view name_for_set(std::string_view setting) {
  setting.remove_prefix(std::min(setting.find_first_not_of('-'), setting.size()));
  return setting;
}

bool is_left_out(std::string_view setting, const ImportInputs& inputs) {
  for (const std::string_view name : {setting, name_for_set(setting)}) {
    const auto given = inputs.given.find(std::string(name));
    if (given != inputs.given.end() && given->second == "null") return true;
  }
  return false;
}

// Returns "line 12" for "run.yaml:12"; empty if there is no line.
std::string line_of(std::string_view where) {
  const std::size_t colon = where.rfind(':');
  if (colon == std::string_view::npos) return "";
  const std::string_view line = where.substr(colon + 1);
  const bool is_number = !line.empty() && line.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? fmt::format("line {}", line) : "";
}

}  // namespace

void LeftSettings::refuse(std::string setting, std::string what, std::string why,
                          std::string where) {
  refused_.push_back({std::move(setting), std::move(what), std::move(why), std::move(where)});
}

void LeftSettings::ask(std::string setting, std::string likely, std::string where) {
  std::string what = fmt::format("'{}'", setting);
  unknown_.push_back({std::move(setting), std::move(what), std::move(likely), std::move(where)});
}

// Returns the refused settings that freeze weights: "adapter: lora, lora_r: 8". Empty if there are
// none.
std::string LeftSettings::adapters_in(const Settings& refused) {
  std::string text;
  for (const Setting& one : refused) {
    if (one.detail == kAllWeights) text += (text.empty() ? "" : ", ") + one.what;
  }
  return text;
}

// Returns the error message, such as "2 settings change the plan and are not modelled: --x (why),
// --y 4 (why); unknown: '--z'".
std::string LeftSettings::text_of(const Settings& refused, const Settings& unknown) {
  std::string text;
  if (!refused.empty()) {
    std::vector<std::string> each;
    for (auto one = refused.begin(); one != refused.end(); ++one) {  // grouped by reason
      const auto follows = std::next(one);
      const bool goes_on = follows != refused.end() && follows->detail == one->detail;
      each.push_back(goes_on ? one->what : fmt::format("{} ({})", one->what, one->detail));
    }
    text = fmt::format("{} and {} not modelled: {}",
                       refused.size() == 1
                           ? "1 setting changes the plan"
                           : fmt::format("{} settings change the plan", refused.size()),
                       refused.size() == 1 ? "is" : "are", fmt::join(each, ", "));
  }
  if (unknown.empty()) return text;
  std::vector<std::string> each;
  for (const Setting& one : unknown) {
    std::vector<std::string> more;
    if (std::string line = line_of(one.where); !line.empty()) more.push_back(std::move(line));
    if (!one.detail.empty()) more.push_back(fmt::format("did you mean {}?", one.detail));
    each.push_back(more.empty() ? one.what
                                : fmt::format("{} ({})", one.what, fmt::join(more, "; ")));
  }
  return fmt::format(
      "{}{}{} unknown: {}", text, text.empty() ? "" : "; ",
      unknown.size() == 1 ? "1 setting is" : fmt::format("{} settings are", unknown.size()),
      fmt::join(each, ", "));
}

std::string LeftSettings::remedy(const Settings& unknown) {
  if (unknown.empty()) return "";
  std::vector<std::string> names;
  for (const Setting& one : unknown) {
    names.push_back(fmt::format("{}=null", name_for_set(one.name)));
  }
  return fmt::format(
      "--set {} ignores settings that do not affect the plan; --assume-harmless ignores all "
      "unknown settings and widens the interval",
      fmt::join(names, ","));
}

Result<ImportedPlan> LeftSettings::settled(Result<ImportedPlan> read,
                                           const ImportInputs& inputs) const {
  const auto open = [&](const Settings& all) {
    Settings left;
    std::copy_if(all.begin(), all.end(), std::back_inserter(left),
                 [&](const Setting& one) { return !is_left_out(one.name, inputs); });
    return left;
  };
  const Settings refused = open(refused_);
  const Settings unknown = open(unknown_);
  if (refused.empty() && (unknown.empty() || inputs.assumes_harmless)) {
    if (read.ok()) {
      for (const Setting& one : unknown) read->assumed_harmless.push_back(one.name);
    }
    return read;
  }
  if (const std::string adapters = adapters_in(refused); !adapters.empty()) {
    return bad_input(fmt::format("trains adapters or a part of the weights: {}", adapters),
                     refused.front().where, kAllWeights);
  }
  // If a name is misspelled, report it alone: another error is probably its consequence.
  const bool is_misspelt = refused.empty() && !unknown.front().detail.empty();
  if (refused.size() + unknown.size() == 1 && (read.ok() || is_misspelt)) {
    if (unknown.empty()) {
      return bad_input(fmt::format("{} changes the plan and is not modelled", refused.front().what),
                       refused.front().where, refused.front().detail);
    }
    const Setting& one = unknown.front();
    return bad_input(
        fmt::format("unknown setting {}", one.what), one.where,
        meant(one.detail, fmt::format("this setting may change the plan: {}", remedy(unknown))));
  }
  Error error = bad_input(text_of(refused, unknown), "", remedy(unknown));
  if (read.ok()) return error;
  error.kind = read.error().kind;
  error.message += fmt::format("; also: {}", read.error().message);
  if (!read.error().hint.empty()) {
    error.hint += fmt::format("{}{}", error.hint.empty() ? "" : "; ", read.error().hint);
  }
  return error;
}

}  // namespace tpsim
