// Every setting of a plan, described once. Files, options, constraints, the window, Python and the
// search are generated from this table. docs/adding.md explains how to add a setting.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/plan/field.h"
#include "core/plan/plan.h"

namespace tpsim {

// In the order of setting_rows(): layout settings first.
enum class Setting : std::uint8_t {
  kTp,
  kPp,
  kDp,
  kCp,
  kEp,
  kEtp,
  kZero,
  kMicroBatch,
  kVirtualStages,
  kRecompute,
  kRecomputeBlocks,
  kSequenceParallel,
  kAttention,
  kSchedule,
  kRankOrder,
  kOffload,
  kDtype,
  kGradientDtype,
  kPrecision,
  kFp8ParamGather,
  kGlobalBatch,
  kStageLayers,
};
inline constexpr int kSettingCount = static_cast<int>(Setting::kStageLayers) + 1;

// Use of a setting in a search.
enum class SettingRole : std::uint8_t {
  kLayout,   // legal values follow from GPUs, model and batch (plans/search/enumerate.h)
  kVariant,  // every value is tried for every layout
  kGiven,    // fixed by the request, never changed by a search
};

// A setting and its value: a number, 0 or 1 for a switch, or the number of an enumerator.
struct SettingValue {
  Setting setting{};
  std::int64_t value = 0;
  friend bool operator==(const SettingValue&, const SettingValue&) = default;
};

// Use of a setting by searches, and in names of plans.
struct SettingUse {
  SettingRole role{};
  std::string_view tag = {};  // prefix of a number in names and filters of plans: "mb"
  // Values that a search tries by default; empty: all legal ones.
  std::span<const std::int64_t> tried = {};
  // Set for a count that applies only to plans with this value of another setting, and is written
  // after that value's word: "blocks:3". The count has no option of its own.
  const SettingValue* counts_for = nullptr;
  bool in_every_file = true;   // false: older files lack the key
  bool in_every_name = false;  // short_name() includes the setting even at its default
  // A search that starts from a saved plan keeps this setting: it belongs to the training, not to
  // the layout.
  bool fixed_by_plan = false;
  // Requirement on the model, null: none. `needs` names the requirement.
  bool (*suits)(const ModelSpec&) = nullptr;
  std::string_view needs = {};
};

struct SettingRow : Field<Plan>, SettingUse {
  Setting setting{};
};

// In the order of Setting.
std::span<const SettingRow> setting_rows();
const SettingRow& row_of(Setting setting);

std::string_view name_of(Setting setting);    // "micro-batch"
std::string_view option_of(Setting setting);  // "--micro-batch"
// The argument of the option, with the count of a word: "none|selective|full|blocks[:N]".
std::string placeholder_of(const SettingRow& row);
std::string to_string(const SettingValue& value);                // "tp=8"
std::string to_string(const std::vector<SettingValue>& values);  // "tp=8,pp=6"

// Not available for lists.
SettingValue setting_of(const Plan& plan, Setting setting);
void set(Plan& plan, const SettingValue& value);
// Returns the plan's value in the syntax of the option: "4", "on", "blocks:3", "6,6,5".
std::string text_of(const Plan& plan, Setting setting);
// Returns the text of a value without its count: "4", "on", "blocks".
std::string text_of(const SettingValue& value);
// Row of the number that follows a word, such as the count of recompute's "blocks"; null for other
// values.
const SettingRow* count_setting_of(const SettingValue& value);
// Whether the setting has its default value.
bool is_usual(const Plan& plan, Setting setting);

// A name that is unique in a table: "tp4 pp12 dp8 zero1 mb2 full-recompute sp". Settings that are
// always included come first, then those that differ from their default.
std::string short_name(const Plan& plan);
// The second part of short_name(), including the split into stages: "cp2 ep8 v3 flash no-emb
// offload".
std::string extras_text(const Plan& plan);

// Parses settings that a search is restricted to: "tp=8,recompute=full,recompute=blocks:3". The
// error for an unknown name or value names the nearest valid one.
Result<std::vector<SettingValue>> parse_settings(std::string_view text);

// Allowed values per setting. An empty list allows all values.
class SettingLists {
 public:
  std::vector<std::int64_t>& operator[](Setting setting) { return lists_[index(setting)]; }
  const std::vector<std::int64_t>& operator[](Setting setting) const {
    return lists_[index(setting)];
  }
  bool holds(const SettingValue& value) const;
  friend bool operator==(const SettingLists&, const SettingLists&) = default;

 private:
  static std::size_t index(Setting setting) { return static_cast<std::size_t>(setting); }
  std::array<std::vector<std::int64_t>, kSettingCount> lists_;
};

}  // namespace tpsim
