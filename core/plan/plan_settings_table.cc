// The table of core/plan/plan_settings.h.
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
using Tags4 = std::array<std::string_view, 4>;
using Tags5 = std::array<std::string_view, 5>;
using Tags6 = std::array<std::string_view, 6>;

constexpr auto kSwitch = std::to_array<SettingWord>({{0, "off", "no-sp"}, {1, "on", "sp"}});
constexpr auto kRecomputes =
    words_with_tags(all_of<Recompute>(), Tags5{"none", "selective", "full", "blocks", "ops"});
constexpr auto kAttentions = words_with_tags(all_of<AttentionKind>(), Tags2{"unfused", "flash"});
constexpr auto kSchedules =
    words_with_tags(all_of<ScheduleKind>(), Tags4{"gpipe", "1f1b", "interleaved", "zb-h1"});
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
constexpr auto kOffloadTried =
    numbers(Offload::kNone);  // the search adds offload if nothing fits without
constexpr auto kDtypeTried = numbers(DType::kBFloat16);
constexpr auto kGradientDtypeTried = numbers(DType::kFloat32);

constexpr auto kPrecisionTried = numbers(Precision::kNone);
constexpr auto kNotTried = numbers(0);

constexpr SettingValue kSomeBlocks{Setting::kRecompute,
                                   static_cast<std::int64_t>(Recompute::kBlocks)};

// Access to a member of Plan that is a number or an enumerator.
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

// Also clears the number of recomputed blocks, which only Recompute::kBlocks uses.
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
     .meaning = "Splits the matrices of every layer over this many GPUs. This saves memory, but "
                "needs two all-reduces per layer and pass: keep tp inside a node.",
     .access = degree<&D::tp>(),
     .in_every_name = true},
    {.setting = Setting::kPp,
     .role = SettingRole::kLayout,
     .key = "pp",
     .tag = "pp",
     .title = "pipeline stages",
     .help = "pipeline stages",
     .meaning = "Splits the layers into this many consecutive groups on different GPUs. This "
                "causes little traffic, but GPUs idle while the pipeline fills and drains.",
     .access = degree<&D::pp>(),
     .in_every_name = true},
    {.setting = Setting::kDp,
     .role = SettingRole::kLayout,
     .key = "dp",
     .tag = "dp",
     .title = "data parallel",
     .help = "data-parallel degree",
     .meaning =
         "Number of model replicas. Each processes a share of the batch; gradients are summed "
         "over replicas.",
     .access = degree<&D::dp>(),
     .in_every_name = true},
    {.setting = Setting::kCp,
     .role = SettingRole::kLayout,
     .key = "cp",
     .tag = "cp",
     .title = "context parallel",
     .help = "context-parallel degree: ranks per sequence",
     .meaning = "Splits every sequence over this many GPUs, which exchange keys and values: for "
                "sequences too long for one GPU.",
     .access = degree<&D::cp>(),
     .in_every_file = false},
    {.setting = Setting::kEp,
     .role = SettingRole::kLayout,
     .key = "ep",
     .tag = "ep",
     .title = "expert parallel",
     .help = "expert-parallel degree: ranks over which experts are spread",
     .meaning = "Spreads the experts of a layer over this many ranks, which exchange tokens by "
                "all-to-all. The group may extend over data-parallel replicas.",
     .access = degree<&D::ep>(),
     .in_every_file = false,
     .suits = [](const ModelSpec& model) { return has_experts(model); },
     .needs = "experts"},
    {.setting = Setting::kEtp,
     .role = SettingRole::kLayout,
     .key = "etp",
     .tag = "etp",
     .title = "expert tensor parallel",
     .help = "expert tensor-parallel degree; 0: same as --tp",
     .meaning = "Number of ranks that split each expert; 0: same as tp. With 1, experts need no "
                "tensor-parallel traffic, and each tensor-parallel rank dispatches its own tokens.",
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
     .help = "ZeRO stage: 1 shards optimizer state, 2 gradients, 3 weights",
     .meaning = "State that data-parallel ranks shard. 0: nothing; 1: optimizer state; 2: "
                "gradients as well; 3: weights as well.",
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
     .help = "sequences per micro-batch",
     .meaning = "Sequences per pass through the pipeline. Larger micro-batches use the GPU better, "
                "but need more memory and leave fewer micro-batches to fill the pipeline.",
     .access = part<&Plan::micro_batch>(),
     .in_every_name = true},
    {.setting = Setting::kVirtualStages,
     .role = SettingRole::kLayout,
     .key = "virtual_stages",
     .tag = "v",
     .title = "chunks per stage",
     .help = "model chunks per pipeline stage (interleaved schedule)",
     .meaning = "Model chunks per stage (interleaved schedule). More chunks shorten the bubble and "
                "add P2P traffic.",
     .access = part<&Plan::virtual_stages>(),
     .in_every_file = false},
    {.setting = Setting::kRecompute,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "recompute",
     .title = "recompute",
     .help = "activations to recompute; blocks:N: all of N layers per chunk",
     .meaning = "Activations dropped in forward and computed again in backward: less memory, more "
                "compute. selective: the attention core only; blocks: the first layers of each "
                "chunk; ops: every second GEMM and all other ops except attention (predicted "
                "only).",
     .words = kRecomputes,
     .tried = kRecomputeTried,
     .access = {part<&Plan::recompute>().get, set_recompute},
     .in_every_name = true},
    {.setting = Setting::kRecomputeBlocks,
     .role = SettingRole::kLayout,
     .key = "recompute_blocks",
     .tag = "blocks",
     .title = "recomputed blocks",
     .help = "number of layers recomputed in each chunk",
     .meaning = "Number of layers recomputed in each chunk; the others keep their activations.",
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
     .help = "Megatron's sequence parallelism: shard norms over the TP group",
     .meaning = "Splits norms and dropout over the tensor-parallel group by tokens: less memory "
                "with the same traffic. Needs tp > 1.",
     .words = kSwitch,
     .tried = kSwitchTried,
     .access = part<&Plan::sequence_parallel>()},
    {.setting = Setting::kAttention,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "attention",
     .title = "attention",
     .help = "attention kernel",
     .meaning = "Unfused attention writes the scores to memory, flash attention does not.",
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
                "Interleaved does the same with several model chunks per stage, for a shorter "
                "bubble and more transfers; the number of micro-batches must be a multiple of the "
                "stages. GPipe runs all forwards first.",
     .words = kSchedules,
     .tried = kScheduleTried,
     .access = part<&Plan::schedule>()},
    {.setting = Setting::kRankOrder,
     .kind = SettingKind::kWord,
     .role = SettingRole::kLayout,
     .key = "rank_order",
     .title = "rank order",
     .help = "order of ranks, innermost degree first",
     .meaning = "Placement of ranks. The degree named first varies fastest, so its groups are most "
                "likely inside one node.",
     .words = kRankOrders,
     .tried = kRankOrderTried,
     .access = part<&Plan::rank_order>(),
     .in_every_file = false},
    {.setting = Setting::kOffload,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "offload",
     .title = "offload",
     .help = "optimizer: keep and update optimizer state on the CPU",
     .meaning = "Location of master weights and Adam's moments, and of their update. The host "
                "saves GPU memory, but every step waits for the host link.",
     .words = kOffloads,
     .tried = kOffloadTried,
     .access = part<&Plan::offload>(),
     .in_every_file = false},
    {.setting = Setting::kDtype,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "dtype",
     .title = "dtype",
     .help = "dtype of weights and activations [bf16 if the GPU supports it]",
     .meaning = "Data type of weights, activations and GEMMs.",
     .words = kDtypes,
     .tried = kDtypeTried,
     .access = part<&Plan::dtype>(),
     .fixed_by_plan = true},
    {.setting = Setting::kGradientDtype,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "gradient_dtype",
     .title = "gradient dtype",
     .help = "dtype of gradient accumulation [fp32]",
     .meaning = "Data type in which gradients are accumulated over micro-batches and reduced.",
     .words = kGradientDtypes,
     .tried = kGradientDtypeTried,
     .access = part<&Plan::gradient_dtype>(),
     .fixed_by_plan = true},
    {.setting = Setting::kPrecision,
     .kind = SettingKind::kWord,
     .role = SettingRole::kVariant,
     .key = "precision",
     .title = "precision",
     .help = "8-bit or 4-bit recipe of the linear layers [none]",
     .meaning =
         "Quantizes the operands of linear layers to 8 or 4 bits. Scales are per tensor (fp8: "
         "delayed, fp8-current: current), per block (fp8-block), per 32 values (mxfp8) or per 16 "
         "(nvfp4). This pays off for large GEMMs, since quantization adds passes over memory.",
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
     .help = "store and all-gather linear weights in 8 bits",
     .meaning = "Linear weights are stored in the recipe's 8 bits only, and all-gathered in 8 bits "
                "after the optimizer step: less memory and traffic.",
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
     .help = "sequences per step [2048]",
     .meaning = "Sequences per step over all data-parallel ranks.",
     .access = part<&Plan::global_batch>(),
     .fixed_by_plan = true},
    {.setting = Setting::kStageLayers,
     .kind = SettingKind::kList,
     .role = SettingRole::kGiven,
     .key = "stage_layers",
     .tag = "layers",
     .title = "stage layers",
     .help = "layers of each chunk, in model order",
     .meaning = "Number of layers of each chunk, in model order.",
     .least = 0,
     .most = 1 << 24},
}};

}  // namespace

std::span<const SettingRow> setting_rows() { return kRows; }

}  // namespace tpsim
