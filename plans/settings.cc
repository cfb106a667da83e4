#include "plans/settings.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "core/text.h"

namespace tpsim {
namespace {

constexpr std::array<std::string_view, kSettingCount> kNames = {"tp",
                                                                "pp",
                                                                "dp",
                                                                "cp",
                                                                "zero",
                                                                "micro-batch",
                                                                "virtual-stages",
                                                                "recompute",
                                                                "sequence-parallel",
                                                                "attention",
                                                                "schedule",
                                                                "rank-order",
                                                                "offload"};

constexpr std::int64_t kMost = 1 << 20;

// The names of a setting's values, in the order of their numbers; empty for plain numbers.
std::vector<std::string_view> value_names(Setting setting) {
  switch (setting) {
    case Setting::kRecompute:
      return {name_of(Recompute::kNone), name_of(Recompute::kSelective), name_of(Recompute::kFull),
              name_of(Recompute::kBlocks)};
    case Setting::kSequenceParallel: return {"off", "on"};
    case Setting::kAttention:
      return {name_of(AttentionKind::kUnfused), name_of(AttentionKind::kFlash)};
    case Setting::kSchedule:
      return {name_of(ScheduleKind::kGpipe), name_of(ScheduleKind::kOneFOneB),
              name_of(ScheduleKind::kInterleaved)};
    case Setting::kRankOrder: return {name_of(RankOrder::kTpDpPp), name_of(RankOrder::kTpPpDp)};
    case Setting::kOffload: return {name_of(Offload::kNone), name_of(Offload::kOptimizer)};
    default: return {};
  }
}

Error bad_setting(std::string message, std::string hint = "") {
  return Error{ErrorKind::kBadInput, std::move(message), "", std::move(hint)};
}

Result<SettingValue> parse_setting(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return bad_setting(fmt::format("'{}' is no setting", text), "write NAME=VALUE, as tp=8");
  }
  TPSIM_TRY(const std::size_t index,
            choose("setting", text.substr(0, equals), std::span<const std::string_view>(kNames)));
  const auto setting = static_cast<Setting>(index);
  const std::string_view value = text.substr(equals + 1);
  const std::vector<std::string_view> names = value_names(setting);
  if (!names.empty()) {
    TPSIM_TRY(const std::size_t chosen,
              choose("value", value, std::span<const std::string_view>(names)));
    return SettingValue{setting, static_cast<std::int64_t>(chosen)};
  }
  const std::int64_t least = setting == Setting::kZero ? 0 : 1;
  const std::int64_t most = setting == Setting::kZero ? 3 : kMost;
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (code != std::errc() || end != value.data() + value.size() || number < least ||
      number > most) {
    return bad_setting(fmt::format("'{}' of {} is no whole number from {} to {}", value,
                                   name_of(setting), least, most));
  }
  return SettingValue{setting, number};
}

}  // namespace

std::string_view name_of(Setting setting) { return kNames[static_cast<std::size_t>(setting)]; }

std::string to_string(const SettingValue& value) {
  const std::vector<std::string_view> names = value_names(value.setting);
  if (names.empty()) return fmt::format("{}={}", name_of(value.setting), value.value);
  return fmt::format("{}={}", name_of(value.setting), names[static_cast<std::size_t>(value.value)]);
}

std::string to_string(const std::vector<SettingValue>& values) {
  std::string text;
  for (const SettingValue& value : values) text += (text.empty() ? "" : ",") + to_string(value);
  return text;
}

SettingValue setting_of(const Plan& plan, Setting setting) {
  const auto value = [&]() -> std::int64_t {
    switch (setting) {
      case Setting::kTp: return plan.degrees.tp;
      case Setting::kPp: return plan.degrees.pp;
      case Setting::kDp: return plan.degrees.dp;
      case Setting::kCp: return plan.degrees.cp;
      case Setting::kZero: return plan.zero;
      case Setting::kMicroBatch: return plan.micro_batch;
      case Setting::kVirtualStages: return plan.virtual_stages;
      case Setting::kRecompute: return static_cast<std::int64_t>(plan.recompute);
      case Setting::kSequenceParallel: return plan.sequence_parallel ? 1 : 0;
      case Setting::kAttention: return static_cast<std::int64_t>(plan.attention);
      case Setting::kSchedule: return static_cast<std::int64_t>(plan.schedule);
      case Setting::kRankOrder: return static_cast<std::int64_t>(plan.rank_order);
      case Setting::kOffload: return static_cast<std::int64_t>(plan.offload);
    }
    return 0;
  };
  return {setting, value()};
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

}  // namespace tpsim
