#include "core/plan/plan_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/base/text.h"

namespace tpsim {
namespace {

bool in_order() {
  for (std::size_t i = 0; i < setting_rows().size(); ++i) {
    if (static_cast<std::size_t>(setting_rows()[i].setting) != i) return false;
  }
  return true;
}

Error bad_setting(std::string message, std::string hint = "") {
  return bad_input(std::move(message), "", std::move(hint));
}

// Names of the settings that can be fixed for a search.
const std::vector<std::string_view>& searched_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const SettingRow& row : setting_rows()) {
      if (row.role != SettingRole::kGiven) all.push_back(name_of(row.setting));
    }
    return all;
  }();
  return names;
}

Result<SettingValue> parse_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return bad_setting(fmt::format("'{}' is not a setting", text),
                       "write NAME=VALUE, such as tp=8");
  }
  // Indices of searched_names() are indices of the table, because settings that a search cannot fix
  // are at its end. Files and JSON spell names with '_', options with '-'.
  std::string name(text.substr(0, equals));
  std::replace(name.begin(), name.end(), '_', '-');
  TPSIM_TRY(const std::size_t index, choose("setting", name, searched_names()));
  const SettingRow& row = setting_rows()[index];
  const std::string_view value = text.substr(equals + 1);
  const std::size_t colon = value.find(':');
  TPSIM_TRY(const std::int64_t number, parse_value(row, value.substr(0, colon)));
  const SettingValue parsed{row.setting, number};
  if (colon == std::string_view::npos) return parsed;
  const SettingRow* count = count_setting_of(parsed);
  if (count == nullptr) {
    return bad_setting(
        fmt::format("'{}' of {} cannot have a number of layers", value, name_of(row.setting)));
  }
  FieldFacts given = *count;
  given.least = 1;  // 0 only in plans without such a count
  TPSIM_TRY(const std::int64_t counted, parse_value(given, value.substr(colon + 1)));
  return SettingValue{count->setting, counted};
}

struct Names {
  std::array<std::string, kSettingCount> names, options;
  Names() {
    TPSIM_CHECK(in_order(), "rows stand in the order of Setting");
    for (std::size_t i = 0; i < setting_rows().size(); ++i) {
      options[i] = option_of(setting_rows()[i]);
      names[i] = options[i].substr(2);
    }
  }
};
const Names& all_names() {
  static const Names names;
  return names;
}

// A setting as it appears in names of plans: "tp4", "flash", "blocks:3-recompute".
std::string tagged(const Plan& plan, const SettingRow& row) {
  if (row.setting == Setting::kRecompute) {
    const bool none = plan.recompute == Recompute::kNone;
    return (none ? "no" : text_of(plan, row.setting)) + "-recompute";
  }
  const std::int64_t value = row.get(plan);
  for (const FieldWord& word : row.words) {
    if (word.value == value) return std::string(word.tag);
  }
  return fmt::format("{}{}", row.tag, value);
}

// Whether plans of one search can differ in this setting.
bool tells_plans_apart(const SettingRow& row) {
  return row.role != SettingRole::kGiven && row.counts_for == nullptr;
}

// Whether the value follows from other settings: several chunks imply the interleaved schedule.
bool follows(const Plan& plan, const SettingRow& row) {
  return row.setting == Setting::kSchedule && plan.schedule == ScheduleKind::kInterleaved;
}

// Name of the plan's split into stages; empty for the default split.
std::string cut_name(const Plan& plan) {
  const std::int64_t layers =
      std::accumulate(plan.stage_layers.begin(), plan.stage_layers.end(), std::int64_t{0});
  if (plan.stage_layers == default_stage_layers(layers, chunk_count(plan))) return "";
  if (plan.stage_layers == even_stage_layers(layers, chunk_count(plan), true)) return "emb";
  if (plan.stage_layers == even_stage_layers(layers, chunk_count(plan), false)) return "no-emb";
  return fmt::format("{}..{}", plan.stage_layers.front(), plan.stage_layers.back());
}

}  // namespace

const SettingRow& row_of(Setting setting) {
  return setting_rows()[static_cast<std::size_t>(setting)];
}

std::string_view name_of(Setting setting) {
  return all_names().names[static_cast<std::size_t>(setting)];
}

std::string_view option_of(Setting setting) {
  return all_names().options[static_cast<std::size_t>(setting)];
}

const SettingRow* count_setting_of(const SettingValue& value) {
  const auto found = std::find_if(
      setting_rows().begin(), setting_rows().end(),
      [&](const SettingRow& row) { return row.counts_for != nullptr && *row.counts_for == value; });
  return found == setting_rows().end() ? nullptr : &*found;
}

std::string placeholder_of(const SettingRow& row) {
  std::string text = placeholder_of(static_cast<const FieldFacts&>(row));
  for (const FieldWord& word : row.words) {
    if (count_setting_of({row.setting, word.value}) == nullptr) continue;
    text.insert(text.find(word.word) + word.word.size(), "[:N]");
  }
  return text;
}

std::string text_of(const SettingValue& value) {
  return text_of(row_of(value.setting), value.value);
}

std::string to_string(const SettingValue& value) {
  const SettingRow& row = row_of(value.setting);
  if (row.counts_for != nullptr) {
    return fmt::format("{}:{}", to_string(*row.counts_for), value.value);
  }
  return fmt::format("{}={}", name_of(value.setting), text_of(value));
}

std::string to_string(const std::vector<SettingValue>& values) {
  return joined_text(values, ",", [](const SettingValue& value) { return to_string(value); });
}

SettingValue setting_of(const Plan& plan, Setting setting) {
  const SettingRow& row = row_of(setting);
  TPSIM_CHECK(!row.is_list(), "a list has no single value");
  return {setting, row.get(plan)};
}

void set(Plan& plan, const SettingValue& value) {
  const SettingRow& row = row_of(value.setting);
  TPSIM_CHECK(!row.is_list(), "a list has no single value");
  row.set(plan, value.value);
}

std::string text_of(const Plan& plan, Setting setting) {
  const SettingRow& row = row_of(setting);
  if (row.is_list()) return fmt::format("{}", fmt::join(plan.stage_layers, ","));
  const SettingValue value = setting_of(plan, setting);
  const SettingRow* count = count_setting_of(value);
  if (count == nullptr) return text_of(value);
  return fmt::format("{}:{}", text_of(value), count->get(plan));
}

bool is_usual(const Plan& plan, Setting setting) {
  static const Plan kUsual;
  return text_of(plan, setting) == text_of(kUsual, setting);
}

Result<std::vector<SettingValue>> parse_settings(std::string_view text) {
  std::vector<SettingValue> values;
  while (true) {
    const std::size_t comma = text.find(',');
    TPSIM_TRY(const SettingValue value, parse_setting(text.substr(0, comma)));
    values.push_back(value);
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

std::string short_name(const Plan& plan) {
  std::string name;
  for (const SettingRow& row : setting_rows()) {
    if (!tells_plans_apart(row) || follows(plan, row)) continue;
    if (!row.in_every_name && is_usual(plan, row.setting)) continue;
    name += (name.empty() ? "" : " ") + tagged(plan, row);
  }
  return name;
}

std::string extras_text(const Plan& plan) {
  std::string text;
  const auto add = [&](const std::string& word) {
    if (!word.empty()) text += (text.empty() ? "" : " ") + word;
  };
  for (const SettingRow& row : setting_rows()) {
    if (!tells_plans_apart(row) || follows(plan, row) || row.in_every_name) continue;
    if (!is_usual(plan, row.setting)) add(tagged(plan, row));
  }
  add(cut_name(plan));
  return text;
}

bool SettingLists::holds(const SettingValue& value) const {
  const std::vector<std::int64_t>& list = (*this)[value.setting];
  return std::find(list.begin(), list.end(), value.value) != list.end();
}

}  // namespace tpsim
