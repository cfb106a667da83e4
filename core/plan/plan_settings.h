// Every setting of a plan, described once: what files, options, constraints, the window, Python and
// the search know of it is read from this table. docs/adding.md says how to add one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/plan/plan.h"

namespace tpsim {

// In the order of the table: from what shapes the layout to details.
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

enum class SettingKind : std::uint8_t {
  kNumber,
  kSwitch,  // 0 and 1: "off" and "on", false and true in files
  kWord,    // an enumerator's number
  kList,    // numbers of the model's chunks, no single value
};

// What a search does with a setting.
enum class SettingRole : std::uint8_t {
  kLayout,   // legal values follow from GPUs, model and batch (plans/search/enumerate.h)
  kVariant,  // every value is tried for every layout
  kGiven,    // part of the question: no search changes it
};

struct SettingWord {
  std::int64_t value = 0;
  std::string_view word;  // as options and files write it
  std::string_view tag;   // as names and filters of plans call it: one plan setting each
};

// A number, 0 or 1 for a switch, or an enumerator's number.
struct SettingValue {
  Setting setting{};
  std::int64_t value = 0;
  friend bool operator==(const SettingValue&, const SettingValue&) = default;
};

struct SettingAccess {
  std::int64_t (*get)(const Plan&) = nullptr;
  void (*set)(Plan&, std::int64_t) = nullptr;
};

struct SettingRow {
  Setting setting{};
  SettingKind kind{};
  SettingRole role{};
  std::string_view key = {};      // in files and Python; with '-' for '_' it names the option
  std::string_view tag = {};      // before a number in names and filters of plans: "mb"
  std::string_view title = {};    // in sentences and on the window's knobs
  std::string_view help = {};     // of the option
  std::string_view meaning = {};  // a sentence or two for those who do not know it
  std::int64_t least = 1, most = 1 << 20;
  std::span<const SettingWord> words = {};   // of switches and words
  std::span<const std::int64_t> tried = {};  // by a search that was not told; empty: what is legal
  SettingAccess access = {};                 // none for lists
  // A number that only counts something in plans that have this value, and stands behind its word:
  // "blocks:3". Such a number has no option of its own.
  const SettingValue* counts_for = nullptr;
  bool in_every_file = true;   // false: files from before it was added lack it
  bool in_every_name = false;  // short_name() tells it also where it is as usual
  // A search that starts from a saved plan keeps its value: the setting belongs to what is trained,
  // not to how it is laid out.
  bool fixed_by_plan = false;
  // What the setting needs of a model; null: nothing. `needs` names it.
  bool (*suits)(const ModelSpec&) = nullptr;
  std::string_view needs = {};

  bool is_list() const { return access.get == nullptr; }
  std::int64_t get(const Plan& plan) const { return access.get(plan); }
  void set(Plan& plan, std::int64_t value) const { access.set(plan, value); }
};

// In the order of Setting.
std::span<const SettingRow> setting_rows();
const SettingRow& row_of(Setting setting);

std::string_view name_of(Setting setting);    // "micro-batch"
std::string_view option_of(Setting setting);  // "--micro-batch"
// What an option takes: "N", "none|selective|full|blocks[:N]".
std::string placeholder_of(const SettingRow& row);
std::string to_string(const SettingValue& value);                // "tp=8"
std::string to_string(const std::vector<SettingValue>& values);  // "tp=8,pp=6"

// Not for lists.
SettingValue setting_of(const Plan& plan, Setting setting);
void set(Plan& plan, const SettingValue& value);
// As the option takes it: "4", "on", "blocks:3", "6,6,5".
std::string text_of(const Plan& plan, Setting setting);
// A value's own text: "4", "on", "blocks".
std::string text_of(const SettingValue& value);
// The number that stands behind a word: of recompute's "blocks" how many; null for all others.
const SettingRow* count_setting_of(const SettingValue& value);
// Whether the plan has what a plan has unasked (the defaults of Plan).
bool is_usual(const Plan& plan, Setting setting);

// "tp4 pp12 dp8 zero1 mb2 full-recompute sp": what is told of every plan, then what is not as
// usual; enough to tell plans apart in a table.
std::string short_name(const Plan& plan);
// The second part alone, with the cut of the stages: "cp2 ep8 v3 flash no-emb offload".
std::string extras_text(const Plan& plan);

// The value that `text` names; an error names the nearest valid one.
Result<std::int64_t> parse_value(const SettingRow& row, std::string_view text);
// "tp=8,recompute=full,recompute=blocks:3": settings that a search can be held to. An unknown name
// or value is an error that names the nearest valid one.
Result<std::vector<SettingValue>> parse_settings(std::string_view text);

// A list of values for every setting; an empty list says nothing about it.
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
