// The table of held_settings.h: for each setting, part and launcher, whether launch files state the
// value.
#include "frameworks/launch/held_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/text.h"

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

template <class Key>
struct HeldRow {
  Key key;
  // One cell per launcher, in the order of LaunchStack. A cell does not have a default value, so
  // each must be given.
  HeldCell megatron_lm, megatron_deepspeed, nemo, torchtitan, nanotron, accelerate, deepspeed;

  constexpr const HeldCell& operator[](LaunchStack stack) const {
    const std::array<const HeldCell*, kLauncherCount> cells = {
        &megatron_lm, &megatron_deepspeed, &nemo, &torchtitan, &nanotron, &accelerate, &deepspeed};
    return *cells[static_cast<std::size_t>(stack)];
  }
};

using SettingCells = HeldRow<Setting>;
constexpr auto kHeldSettings = std::to_array<SettingCells>({
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
    {Setting::kPrecision, kHeld, only("none"), kHeld, only("none"), only("none"), only("none"),
     only("none")},
    {Setting::kFp8ParamGather, kHeld, only("off"), kHeld, only("off"), only("off"), only("off"),
     only("off")},
    {Setting::kGlobalBatch, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld},
    {Setting::kStageLayers, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld},
});

using PartCells = HeldRow<StackPart>;
constexpr auto kHeldParts = std::to_array<PartCells>({
    // megatron-lm, megatron-deepspeed, nemo, torchtitan, nanotron, accelerate, deepspeed
    {StackPart::kAttentionKernel, only("torch flash2 flash3 cudnn"), only("torch"),
     only("torch flash2 flash3 cudnn"), kNot, kNot, only("torch flash2 flash3"),
     only("torch flash2 flash3")},
    {StackPart::kNormKernel, kNot, kNot, kNot, kNot, kNot, only("fused"), only("fused")},
    {StackPart::kRotaryKernel, only("torch"), kNot, only("torch"), kNot, kNot, only("fused"),
     only("fused")},
    {StackPart::kActivationKernel, only("torch"), only("torch"), only("torch"), kNot, kNot,
     only("fused"), only("fused")},
    {StackPart::kResidualKernel, only("torch"), only("torch"), only("torch"), kNot, kNot, kNot,
     kNot},
    {StackPart::kResidualGradient, kNot, kNot, kNot, kNot, kNot, kNot, kNot},
    {StackPart::kOptimizerKernel, kNot, kNot, kNot, kHeld, kNot, kHeld, kHeld},
    {StackPart::kLossHead, only("vocab_parallel vocab_parallel_fused"), kNot,
     only("vocab_parallel vocab_parallel_fused"), only("eager chunked"), kNot, only("chunked"),
     only("chunked")},
    {StackPart::kLogitsDtype, kNot, kNot, kNot, kNot, kNot, kNot, kNot},
    {StackPart::kGradientAccumulation, only("separate"), kNot, only("separate"), kNot, kNot, kNot,
     kNot},
    {StackPart::kDataParallelSync, kNot, kNot, kNot, kNot, kNot, kNot, kNot},
    {StackPart::kGradientSync, kNot, kIdle, kNot, kNot, kIdle, only("every_micro_batch"), kNot},
    {StackPart::kReduceDtype, kHeld, kIdle, kNot, only("as_added_up"), kIdle, kNot, kHeld},
    {StackPart::kOverlapGradientReduction, kHeld, kNot, kHeld, kNot, kNot, kNot, kHeld},
    {StackPart::kOverlapParameterGather, kHeld, kNot, kHeld, kNot, kNot, kNot, kHeld},
    {StackPart::kShardGroup, kHeld, kNot, kHeld, kHeld, kNot, kHeld, only("all")},
    {StackPart::kPipelineSends, kNot, kNot, kNot, kNot, kNot, kIdle, kIdle},
    {StackPart::kP2pCalls, kNot, kNot, kNot, kNot, kNot, kIdle, kIdle},
    {StackPart::kOverlapP2p, only("off"), kNot, only("off"), kNot, kNot, kIdle, kIdle},
    {StackPart::kTpOverlap, only("userbuffers"), kNot, only("userbuffers"), only("userbuffers"),
     kNot, kIdle, kNot},
    {StackPart::kTpRecomputeAllgather, kNot, kIdle, kNot, kNot, kHeld, kIdle, kIdle},
    {StackPart::kCpCommType, only("all_gather p2p a2a"), kIdle, only("all_gather p2p a2a"), kNot,
     kIdle, kIdle, kIdle},
    {StackPart::kBlockingLaunches, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld},
    {StackPart::kCudaGraphs, kHeld, kNot, kHeld, only("none full_iteration"), kNot, kNot, kNot},
    {StackPart::kCompile, kNot, kNot, kNot, kHeld, kNot, kHeld, kHeld},
    {StackPart::kRecomputeModules, kHeld, kIdle, kHeld, kIdle, kIdle, kIdle, kIdle},
    {StackPart::kOptimizerDtype, kHeld, kNot, kHeld, kHeld, kNot, kNot, kNot},
    {StackPart::kDispatcher, kHeld, kIdle, kHeld, kNot, kIdle, kNot, kNot},
    {StackPart::kRouterKernel, kHeld, kIdle, kHeld, kNot, kIdle, kNot, kNot},
    {StackPart::kPermute, only("fused unfused unfused_seq"), kIdle,
     only("fused unfused unfused_seq"), kNot, kIdle, kNot, kNot},
    {StackPart::kExpertWeighting, kNot, kIdle, kNot, kNot, kIdle, kNot, kNot},
    {StackPart::kExpertLoad, only("balanced"), kIdle, only("balanced"), only("balanced"), kIdle,
     kNot, kNot},
    {StackPart::kEpOverlap, kHeld, kIdle, kHeld, kNot, kIdle, kNot, kNot},
    {StackPart::kDelayWgrad, kHeld, kIdle, kHeld, kNot, kIdle, kNot, kNot},
    {StackPart::kExpandableSegments, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld},
    {StackPart::kMasterWeights, kNot, kNot, kNot, only("none"), kNot, kNot, kNot},
    {StackPart::kExpertKernel, only("grouped looped"), kIdle, only("grouped looped"), kNot, kIdle,
     kNot, kNot},
    {StackPart::kFp32Matmul, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld, kHeld},
    {StackPart::kOptimizerKind, kHeld, kNot, kHeld, kNot, kNot, kNot, kNot},
    {StackPart::kMuonTpMode, kHeld, kNot, kHeld, kNot, kNot, kNot, kNot},
    {StackPart::kExpertCapacity, kHeld, kIdle, kHeld, kNot, kIdle, kNot, kNot},
    {StackPart::kExpertStash, kHeld, kIdle, kHeld, kNot, kIdle, kNot, kNot},
    {StackPart::kOffloadLayers, kHeld, kNot, kHeld, kNot, kNot, kNot, kNot},
});

// Whether the table has one row for each of `count` keys, in the order of the enum.
template <std::size_t count, class Table>
constexpr bool has_every_row(const Table& table) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].key != static_cast<decltype(table[i].key)>(i)) return false;
  }
  return table.size() == count;
}
static_assert(has_every_row<kSettingCount>(kHeldSettings),
              "a setting has no row, or its row is out of order");
static_assert(has_every_row<kStackPartCount>(kHeldParts),
              "a part has no row, or its row is out of order");

// Values in `words` are separated by spaces, because the value of a set part contains commas.
Held held_in(const HeldCell& cell, std::string_view value) {
  if (cell.words.empty()) return cell.held;
  return matches_any(value, cell.words) ? Held::kWritten : Held::kRefused;
}

template <class Table>
void add_held_lines(const Table& table, std::string& text) {
  for (const auto& row : table) {
    text += fmt::format("| `{}` |", row_of(row.key).key);
    for (std::size_t i = 0; i < kLauncherCount; ++i) {
      const HeldCell& cell = row[static_cast<LaunchStack>(i)];
      const std::string values =
          joined_text(words_in(std::string(cell.words)), ", ",
                      [](const std::string& word) { return fmt::format("`{}`", word); });
      text += fmt::format(" {} |", values.empty() ? name_of(cell.held) : values);
    }
    text += "\n";
  }
}

}  // namespace

Held held(LaunchStack stack, const SettingValue& value) {
  return held_in(kHeldSettings[static_cast<std::size_t>(value.setting)][stack], text_of(value));
}

Held held(LaunchStack stack, StackPart part, std::int64_t value) {
  return held_in(kHeldParts[static_cast<std::size_t>(part)][stack], text_of(row_of(part), value));
}

std::string held_settings_text() {
  std::string text = "| setting or part |", line = "|---|";
  for (std::size_t i = 0; i < kLauncherCount; ++i) {
    text += fmt::format(" {} |", name_of(static_cast<LaunchStack>(i)));
    line += "---|";
  }
  text += "\n" + line + "\n";
  add_held_lines(kHeldSettings, text);
  add_held_lines(kHeldParts, text);
  return text;
}

}  // namespace tpsim
