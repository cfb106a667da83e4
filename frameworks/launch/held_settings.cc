// For each setting, part and launcher, whether launch files state the value.
#include "frameworks/launch/held_settings.h"

#include <fmt/format.h>

#include <array>

#include "core/base/text.h"
#include "frameworks/launch/environment_parts.h"
#include "frameworks/launch/fixed_behaviour.h"

namespace tpsim {
namespace {

constexpr std::size_t kLauncherCount = static_cast<std::size_t>(LaunchStack::kDeepSpeed) + 1;

struct HeldCell {
  Held held;
  std::string_view words = {};  // if kWritten: values that are written; empty: all
};

constexpr HeldCell kHeld{Held::kWritten};
constexpr HeldCell kIdle{Held::kNoEffect};
constexpr HeldCell kNot{Held::kRefused};
constexpr HeldCell only(std::string_view words) { return {Held::kWritten, words}; }

struct HeldRow {
  Setting key;
  // One cell per launcher, in the order of LaunchStack. A cell does not have a default value, so
  // each must be given.
  HeldCell megatron_lm, megatron_deepspeed, nemo, torchtitan, nanotron, accelerate, deepspeed;

  constexpr const HeldCell& operator[](LaunchStack stack) const {
    const std::array<const HeldCell*, kLauncherCount> cells = {
        &megatron_lm, &megatron_deepspeed, &nemo, &torchtitan, &nanotron, &accelerate, &deepspeed};
    return *cells[static_cast<std::size_t>(stack)];
  }
};

constexpr auto kHeldSettings = std::to_array<HeldRow>({
    // megatron-lm, megatron-deepspeed, nemo, torchtitan, nanotron, accelerate, deepspeed
    {Setting::kTp, kHeld, kHeld, kHeld, kHeld, kHeld, kNot, kHeld},
    {Setting::kPp, kHeld, kHeld, kHeld, kHeld, kHeld, kNot, kNot},
    {Setting::kDp, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld},
    {Setting::kCp, kHeld, kNot, kHeld, kHeld, kNot, kNot, kNot},
    {Setting::kEp, kHeld, kIdle, kHeld, kHeld, kIdle, kNot, kNot},
    {Setting::kEtp, kHeld, kIdle, kHeld, kHeld, kIdle, kIdle, kIdle},
    {Setting::kZero, kHeld, only("0 1"), kHeld, only("0 2 3"), only("0 1"), only("0 2 3"), kHeld},
    {Setting::kMicroBatch, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld},
    {Setting::kVirtualStages, kHeld, kNot, kHeld, kHeld, kNot, kNot, kNot},
    {Setting::kRecompute, only("none selective full blocks"), only("none full"),
     only("none selective full blocks"), only("none full ops"), only("none full"),
     only("none full"), only("none full")},
    {Setting::kRecomputeBlocks, kHeld, kNot, kHeld, kNot, kNot, kNot, kNot},
    {Setting::kSequenceParallel, kHeld, only("off"), kHeld, kHeld, kHeld, only("off"), only("off")},
    {Setting::kAttention, kHeld, only("unfused"), kHeld, only("flash"), only("flash"), kHeld,
     kHeld},
    {Setting::kSchedule, only("1f1b interleaved"), only("1f1b"), only("1f1b interleaved"),
     only("gpipe 1f1b interleaved"), only("gpipe 1f1b"), only("1f1b"), only("1f1b")},
    {Setting::kRankOrder, kHeld, only("tp-dp-pp"), kHeld, only("tp-dp-pp"), only("tp-dp-pp"),
     only("tp-dp-pp"), only("tp-dp-pp")},
    {Setting::kOffload, kHeld, kHeld, kHeld, only("none"), only("none"), only("none"), kHeld},
    {Setting::kDtype, kHeld, kHeld, kHeld, only("bf16 fp32"), kHeld, kHeld, kHeld},
    {Setting::kGradientDtype, kHeld, only("fp16 fp32"), kHeld, only("fp32"), kHeld,
     only("fp16 fp32"), kHeld},
    {Setting::kPrecision, kHeld, only("none"), kHeld, only("none fp8-current mxfp8"), only("none"),
     only("none"), only("none")},
    {Setting::kFp8ParamGather, kHeld, only("off"), kHeld, only("off"), only("off"), only("off"),
     only("off")},
    {Setting::kGlobalBatch, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld},
    {Setting::kStageLayers, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld},
});

// Parts without effect in plans for some launchers, whose plans have no experts, no tensor
// parallelism or no pipeline.
struct IdlePart {
  StackPart part;
  unsigned launchers;
};
constexpr unsigned bit_of(LaunchStack stack) { return 1U << static_cast<int>(stack); }
constexpr unsigned kOfFork = bit_of(LaunchStack::kMegatronDeepSpeed);
constexpr unsigned kOfTitan = bit_of(LaunchStack::kTorchTitan);
constexpr unsigned kOfNanotron = bit_of(LaunchStack::kNanotron);
constexpr unsigned kOfAccelerate = bit_of(LaunchStack::kAccelerate);
constexpr unsigned kOfTrainers = kOfAccelerate | bit_of(LaunchStack::kDeepSpeed);
constexpr IdlePart kIdleParts[] = {
    {StackPart::kGradientSync, kOfFork | kOfNanotron},
    {StackPart::kReduceDtype, kOfFork | kOfNanotron},
    {StackPart::kPipelineSends, kOfTrainers},
    {StackPart::kP2pCalls, kOfTrainers},
    {StackPart::kOverlapP2p, kOfTrainers},
    {StackPart::kTpOverlap, kOfAccelerate},
    {StackPart::kTpRecomputeAllgather, kOfFork | kOfTrainers},
    {StackPart::kCpCommType, kOfFork | kOfNanotron | kOfTrainers},
    {StackPart::kRecomputeModules, kOfFork | kOfTitan | kOfNanotron | kOfTrainers},
    {StackPart::kDispatcher, kOfFork | kOfNanotron},
    {StackPart::kRouterKernel, kOfFork | kOfNanotron},
    {StackPart::kPermute, kOfFork | kOfNanotron},
    {StackPart::kExpertWeighting, kOfFork | kOfNanotron},
    {StackPart::kExpertLoad, kOfFork | kOfNanotron},
    {StackPart::kEpOverlap, kOfFork | kOfNanotron},
    {StackPart::kDelayWgrad, kOfFork | kOfNanotron},
    {StackPart::kExpertKernel, kOfFork | kOfNanotron},
    {StackPart::kExpertCapacity, kOfFork | kOfNanotron},
    {StackPart::kExpertStash, kOfFork | kOfNanotron},
};

HeldCell cell_of(LaunchStack stack, Setting setting) {
  return kHeldSettings[static_cast<std::size_t>(setting)][stack];
}

// Environment variables state a part for all launchers.
HeldCell cell_of(LaunchStack stack, StackPart part) {
  if (is_in_environment(part)) return kHeld;
  for (const IdlePart& idle : kIdleParts) {
    if (idle.part == part && (idle.launchers & bit_of(stack)) != 0) return kIdle;
  }
  const StatedValues stated = stated_values(stack, part);
  if (stated.are_all) return kHeld;
  return stated.words.empty() ? kNot : only(stated.words);
}

// Whether the table has one row for each setting, in the order of the enum.
constexpr bool has_every_setting() {
  for (std::size_t i = 0; i < kHeldSettings.size(); ++i) {
    if (kHeldSettings[i].key != static_cast<Setting>(i)) return false;
  }
  return kHeldSettings.size() == kSettingCount;
}
static_assert(has_every_setting(), "a setting has no row, or its row is out of order");

// Values in `words` are separated by spaces, because the value of a set part contains commas.
Held held_in(const HeldCell& cell, std::string_view value) {
  if (cell.words.empty()) return cell.held;
  return matches_any(value, cell.words) ? Held::kWritten : Held::kRefused;
}

template <class Row, class Key>
std::string held_line(const Row& row, Key key) {
  std::string text = fmt::format("| `{}` |", row.key);
  for (std::size_t i = 0; i < kLauncherCount; ++i) {
    const HeldCell cell = cell_of(static_cast<LaunchStack>(i), key);
    const std::string values =
        joined_text(words_in(std::string(cell.words)), ", ",
                    [](const std::string& word) { return fmt::format("`{}`", word); });
    text += fmt::format(" {} |", values.empty() ? name_of(cell.held) : values);
  }
  return text + "\n";
}

}  // namespace

Held held(LaunchStack stack, const SettingValue& value) {
  return held_in(cell_of(stack, value.setting), text_of(value));
}

Held held(LaunchStack stack, StackPart part, std::int64_t value) {
  return held_in(cell_of(stack, part), text_of(row_of(part), value));
}

std::string held_settings_text() {
  std::string text = "| setting or part |", line = "|---|";
  for (std::size_t i = 0; i < kLauncherCount; ++i) {
    text += fmt::format(" {} |", name_of(static_cast<LaunchStack>(i)));
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (const SettingRow& row : setting_rows()) text += held_line(row, row.setting);
  for (const PartRow& row : part_rows()) text += held_line(row, row.part);
  return text;
}

}  // namespace tpsim
