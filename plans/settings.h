// Settings of a plan by name, for constraints and questions: "tp=8", "zero=3", "recompute=full".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan.h"
#include "core/result.h"

namespace tpsim {

enum class Setting : std::uint8_t {
  kTp,
  kPp,
  kDp,
  kCp,
  kZero,
  kMicroBatch,
  kVirtualStages,
  kRecompute,
  kSequenceParallel,
  kAttention,
  kSchedule,
  kRankOrder,
  kOffload,
};
inline constexpr int kSettingCount = static_cast<int>(Setting::kOffload) + 1;

// A number, 0 or 1 for a switch, or an enumerator's number.
struct SettingValue {
  Setting setting{};
  std::int64_t value = 0;
  friend bool operator==(const SettingValue&, const SettingValue&) = default;
};

std::string_view name_of(Setting setting);  // as the option is called: "micro-batch"
std::string to_string(const SettingValue& value);
std::string to_string(const std::vector<SettingValue>& values);  // "tp=8,pp=6"

SettingValue setting_of(const Plan& plan, Setting setting);

// "tp=8,recompute=full". An unknown name or value is an error that names the nearest valid one.
Result<std::vector<SettingValue>> parse_settings(std::string_view text);

}  // namespace tpsim
