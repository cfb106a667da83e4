// The rows of core/plan/plan_settings.h.
#include <array>
#include <type_traits>

#include "core/plan/plan_settings.h"

namespace tpsim {
namespace {

template <class E, std::size_t n>
constexpr std::array<SettingWord, n> words_with_tags(const std::array<E, n>& values,
                                                     const std::array<std::string_view, n>& tags) {
  std::array<SettingWord, n> words{};
  for (std::size_t i = 0; i < n; ++i) {
    words[i] = {static_cast<std::int64_t>(values[i]), name_of(values[i]), tags[i]};
  }
  return words;
}

using Tags2 = std::array<std::string_view, 2>;
using Tags3 = std::array<std::string_view, 3>;
using Tags5 = std::array<std::string_view, 5>;
using Tags6 = std::array<std::string_view, 6>;

constexpr auto kSwitch = std::to_array<SettingWord>({{0, "off", "no-sp"}, {1, "on", "sp"}});
constexpr auto kRecomputes =
    words_with_tags(all_of<Recompute>(), Tags5{"none", "selective", "full", "blocks", "ops"});
constexpr auto kAttentions = words_with_tags(all_of<AttentionKind>(), Tags2{"unfused", "flash"});
constexpr auto kSchedules =
    words_with_tags(all_of<ScheduleKind>(), Tags3{"gpipe", "1f1b", "interleaved"});
constexpr auto kRankOrders = words_with_tags(all_of<RankOrder>(), Tags2{"tp-dp-pp", "tp-pp-dp"});
constexpr auto kOffloads = words_with_tags(all_of<Offload>(), Tags2{"no-offload", "offload"});
constexpr std::array kFloats = {DType::kBFloat16, DType::kFloat16, DType::kFloat32};
constexpr auto kDtypes = words_with_tags(kFloats, Tags3{"bf16", "fp16", "fp32"});
constexpr auto kGradientDtypes =
    words_with_tags(kFloats, Tags3{"bf16-gradients", "fp16-gradients", "fp32-gradients"});

constexpr auto kPrecisions = words_with_tags(
    all_of<Precision>(),
    Tags6{"no-recipe", "fp8-delayed", "fp8-current", "fp8-block", "mxfp8", "nvfp4"});
constexpr auto kFp8Gathers =
    std::to_array<SettingWord>({{0, "off", "bf16-weights"}, {1, "on", "fp8-weights"}});

template <class... E>
constexpr auto numbers(E... values) {
  return std::array{static_cast<std::int64_t>(values)...};
}
constexpr auto kZeroTried = numbers(0, 1, 2, 3);
constexpr auto kSwitchTried = numbers(0, 1);
constexpr auto kRecomputeTried =
    numbers(Recompute::kNone, Recompute::kSelective, Recompute::kFull, Recompute::kBlocks);
constexpr auto kAttentionTried = numbers(AttentionKind::kUnfused, AttentionKind::kFlash);
constexpr auto kScheduleTried =
    numbers(ScheduleKind::kOneFOneB, ScheduleKind::kGpipe, ScheduleKind::kInterleaved);
constexpr auto kRankOrderTried = numbers(RankOrder::kTpDpPp, RankOrder::kTpPpDp);
constexpr auto kOffloadTried = numbers(Offload::kNone);  // more only where nothing fits without
constexpr auto kDtypeTried = numbers(DType::kBFloat16);
constexpr auto kGradientDtypeTried = numbers(DType::kFloat32);

constexpr auto kPrecisionTried = numbers(Precision::kNone);
constexpr auto kNotTried = numbers(0);

constexpr SettingValue kSomeBlocks{Setting::kRecompute,
                                   static_cast<std::int64_t>(Recompute::kBlocks)};

// A member of Plan that is a number or an enumerator.
template <auto member>
constexpr SettingAccess part() {
  return {[](const Plan& plan) { return static_cast<std::int64_t>(plan.*member); },
          [](Plan& plan, std::int64_t value) {
            plan.*member = static_cast<std::remove_reference_t<decltype(plan.*member)>>(value);
          }};
}
template <std::int64_t ParallelDegrees::*member>
constexpr SettingAccess degree() {
  return {[](const Plan& plan) { return plan.degrees.*member; },
          [](Plan& plan, std::int64_t value) { plan.degrees.*member = value; }};
}

// How many blocks are recomputed is said only where some are.
void set_recompute(Plan& plan, std::int64_t value) {
  plan.recompute = static_cast<Recompute>(value);
  if (plan.recompute != Recompute::kBlocks) plan.recompute_blocks = 0;
}

using D = ParallelDegrees;
const std::array<SettingRow, kSettingCount> kRows = {{
    {.setting = Setting::kTp,
     .role = SettingRole::kLayout,
     .key = "tp",
     .tag = "tp",
     .title = "tensor parallel",
     .help = "tensor-parallel degree",
     .meaning = "GPUs that share every layer. Less memory on each, but two all-reduces in every "
                "layer: keep it inside a node.",
     .access = degree<&D::tp>(),
     .in_every_name = true},
    {.setting = Setting::kPp,
     .role = SettingRole::kLayout,
     .key = "pp",
     .tag = "pp",
     .title = "pipeline stages",
     .help = "pipeline stages",
     .meaning = "Groups of layers, one after the other. Little traffic, but GPUs idle while the "
                "pipeline fills and drains.",
     .access = degree<&D::pp>(),
     .in_every_name = true},
    {.setting = Setting::kDp,
     .role = SettingRole::kLayout,
     .key = "dp",
     .tag = "dp",
     .title = "data parallel",
     .help = "data-parallel degree",
     .meaning =
         "Copies of the model that each take a share of the batch and add up their gradients.",
     .access = degree<&D::dp>(),
     .in_every_name = true},
    {.setting = Setting::kCp,
     .role = SettingRole::kLayout,
     .key = "cp",
     .tag = "cp",
     .title = "context parallel",
     .help = "context-parallel degree: ranks that share a sequence",
     .meaning = "GPUs that share every sequence and gather each other's keys and values: for "
                "sequences too long for one.",
     .access = degree<&D::cp>(),
     .in_every_file = false},
    {.setting = Setting::kEp,
     .role = SettingRole::kLayout,
     .key = "ep",
     .tag = "ep",
     .title = "expert parallel",
     .help = "expert-parallel degree: ranks that share the experts",
     .meaning = "Ranks that share out the experts of a layer and send each other the tokens: "
                "neighbours, beyond the replicas of a data-parallel group too.",
     .access = degree<&D::ep>(),
     .in_every_file = false,
     .suits = [](const ModelSpec& model) { return has_experts(model); },
     .needs = "experts"},
    {.setting = Setting::kEtp,
     .role = SettingRole::kLayout,
     .key = "etp",
     .tag = "etp",
     .title = "expert tensor parallel",
     .help = "ranks that share every expert; 0: as many as tp",
     .meaning =
         "How many ranks cut every expert; 0: as the rest of the layer is cut. Whole experts "
         "(1) need no traffic inside them, and the ranks of a tensor group each send their "
         "own tokens.",
     .least = 0,
     .access = degree<&D::etp>(),
     .in_every_file = false,
     .suits = [](const ModelSpec& model) { return has_experts(model); },
     .needs = "experts"},
    {.setting = Setting::kZero,
     .role = SettingRole::kLayout,
     .key = "zero",
     .tag = "zero",
     .title = "ZeRO",
     .help = "ZeRO stage: what data-parallel ranks share out",
     .meaning = "What data-parallel copies share out: 0 nothing, 1 optimizer state, 2 and "
                "gradients, 3 and weights.",
     .least = 0,
     .most = 3,
     .tried = kZeroTried,
     .access = part<&Plan::zero>(),
     .in_every_name = true},
    {.setting = Setting::kMicroBatch,
     .role = SettingRole::kLayout,
     .key = "micro_batch",
     .tag = "mb",
     .title = "micro-batch",
     .help = "sequences in a micro-batch",
     .meaning = "Sequences that pass through the pipeline together. Larger ones use the GPU "
                "better, need more memory and leave fewer of them to fill the pipeline.",
     .access = part<&Plan::micro_batch>(),
     .in_every_name = true},
    {.setting = Setting::kVirtualStages,
     .role = SettingRole::kLayout,
     .key = "virtual_stages",
     .tag = "v",
     .title = "chunks per stage",
     .help = "model chunks on each pipeline stage",
     .meaning = "Chunks of the model on each stage. More of them shorten the bubble and send more "
                "(interleaved schedule).",
     .access = part<&Plan::virtual_stages>(),
     .in_every_file = false},
    {.setting = Setting::kRecompute,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "recompute",
     .title = "recompute",
     .help = "activations computed again; blocks:N in N of a chunk's",
     .meaning = "Activations thrown away in forward and computed again in backward: less memory, "
                "more work. Selective does so for the attention core only, blocks for the first "
                "blocks of every chunk, ops for every second product (predicted only).",
     .words = kRecomputes,
     .tried = kRecomputeTried,
     .access = {part<&Plan::recompute>().get, set_recompute},
     .in_every_name = true},
    {.setting = Setting::kRecomputeBlocks,
     .role = SettingRole::kLayout,
     .key = "recompute_blocks",
     .tag = "blocks",
     .title = "recomputed blocks",
     .help = "blocks of every chunk that are recomputed",
     .meaning = "How many blocks of every chunk are computed again in backward; the others keep "
                "their activations.",
     .least = 0,
     .most = 1 << 24,
     .access = part<&Plan::recompute_blocks>(),
     .counts_for = &kSomeBlocks,
     .in_every_file = false},
    {.setting = Setting::kSequenceParallel,
     .kind = SettingKind::kSwitch,
     .role = SettingRole::kVariant,
     .key = "sequence_parallel",
     .title = "sequence parallel",
     .help = "shard norms over the tensor group",
     .meaning = "Splits norms and dropout over the tensor group by tokens: less memory for the "
                "same traffic. Needs a tensor-parallel degree above one.",
     .words = kSwitch,
     .tried = kSwitchTried,
     .access = part<&Plan::sequence_parallel>()},
    {.setting = Setting::kAttention,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "attention",
     .title = "attention",
     .help = "attention kernel",
     .meaning = "Flash attention never writes the scores to memory.",
     .words = kAttentions,
     .tried = kAttentionTried,
     .access = part<&Plan::attention>()},
    {.setting = Setting::kSchedule,
     .kind = SettingKind::kWord,
     .role = SettingRole::kLayout,
     .key = "schedule",
     .title = "schedule",
     .help = "pipeline schedule",
     .meaning = "1F1B runs each backward as soon as it can, so few activations are alive. "
                "Interleaved does so with several chunks of the model on each stage: a shorter "
                "bubble, more transfers; the micro-batches must divide by the stages. GPipe runs "
                "all forwards first.",
     .words = kSchedules,
     .tried = kScheduleTried,
     .access = part<&Plan::schedule>()},
    {.setting = Setting::kRankOrder,
     .kind = SettingKind::kWord,
     .role = SettingRole::kLayout,
     .key = "rank_order",
     .title = "rank order",
     .help = "innermost degree first",
     .meaning = "Which ranks are neighbours: those of the first degree named lie closest together, "
                "and so most likely in one node.",
     .words = kRankOrders,
     .tried = kRankOrderTried,
     .access = part<&Plan::rank_order>(),
     .in_every_file = false},
    {.setting = Setting::kOffload,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "offload",
     .title = "offload",
     .help = "what lies and works in the host's memory",
     .meaning = "Where master weights and Adam's moments lie and are updated. In the host's memory "
                "they leave room on the GPU, and every step waits for the link.",
     .words = kOffloads,
     .tried = kOffloadTried,
     .access = part<&Plan::offload>(),
     .in_every_file = false},
    {.setting = Setting::kDtype,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "dtype",
     .title = "dtype",
     .help = "of weights and activations [bf16, or what the GPU has]",
     .meaning = "In which weights and activations are stored and multiplied.",
     .words = kDtypes,
     .tried = kDtypeTried,
     .access = part<&Plan::dtype>(),
     .fixed_by_plan = true},
    {.setting = Setting::kGradientDtype,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "gradient_dtype",
     .title = "gradient dtype",
     .help = "in which gradients add up [fp32]",
     .meaning = "In which the gradients of micro-batches add up and are reduced.",
     .words = kGradientDtypes,
     .tried = kGradientDtypeTried,
     .access = part<&Plan::gradient_dtype>(),
     .fixed_by_plan = true},
    {.setting = Setting::kPrecision,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "precision",
     .title = "precision",
     .help = "recipe of the blocks' linear layers: 8 or 4 bits [none]",
     .meaning = "Rounds what the linear layers multiply to 8 or 4 bits, with scales by tensor "
                "(fp8: of steps before, fp8-current: its own), by block, by 32 (mxfp8) or by 16 "
                "(nvfp4). Faster where products are large, as rounding costs passes over memory.",
     .words = kPrecisions,
     .tried = kPrecisionTried,
     .access = part<&Plan::precision>(),
     .in_every_file = false,
     .fixed_by_plan = true},
    {.setting = Setting::kFp8ParamGather,
     .kind = SettingKind::kSwitch,
     .role = SettingRole::kVariant,
     .key = "fp8_param_gather",
     .title = "fp8 weights",
     .help = "keep and gather linear weights in 8 bits",
     .meaning = "Weights of the linear layers live in the recipe's 8 bits alone, and are gathered "
                "in them after the optimizer's update: less memory and traffic.",
     .words = kFp8Gathers,
     .tried = kNotTried,
     .access = part<&Plan::fp8_param_gather>(),
     .in_every_file = false,
     .fixed_by_plan = true},
    {.setting = Setting::kGlobalBatch,
     .role = SettingRole::kGiven,
     .key = "global_batch",
     .tag = "batch",
     .title = "global batch",
     .help = "sequences in a step [2048]",
     .meaning = "Sequences in a step, over all data-parallel ranks.",
     .access = part<&Plan::global_batch>(),
     .fixed_by_plan = true},
    {.setting = Setting::kStageLayers,
     .kind = SettingKind::kList,
     .role = SettingRole::kGiven,
     .key = "stage_layers",
     .tag = "layers",
     .title = "stage layers",
     .help = "blocks of each chunk, in model order",
     .meaning = "How many blocks each chunk of the model holds, in the order of the model.",
     .least = 0,
     .most = 1 << 24},
}};

}  // namespace

std::span<const SettingRow> setting_rows() { return kRows; }

}  // namespace tpsim
