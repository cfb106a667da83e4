// The table of core/plan/plan_settings.h.
#include <array>

#include "core/plan/plan_settings.h"

namespace tpsim {
namespace {

template <class E, std::size_t n>
constexpr std::array<FieldWord, n> words_with_tags(const std::array<E, n>& values,
                                                   const std::array<std::string_view, n>& tags) {
  std::array<FieldWord, n> words{};
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

constexpr auto kSwitch = std::to_array<FieldWord>({{0, "off", "no-sp"}, {1, "on", "sp"}});
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
    std::to_array<FieldWord>({{0, "off", "bf16-weights"}, {1, "on", "fp8-weights"}});

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

template <auto... path>
constexpr SettingRow row(Setting setting, std::string_view key, FieldFacts facts,
                         const SettingUse& use) {
  facts.key = key;
  SettingRow made{field_at<Plan, path...>(facts), use, setting};
  made.is_executed = true;
  return made;
}
template <auto member>
constexpr SettingRow degree(Setting setting, std::string_view key, const FieldFacts& facts,
                            const SettingUse& use) {
  return row<&Plan::degrees, member>(setting, key, facts, use);
}

// Also clears the number of recomputed blocks, which only Recompute::kBlocks uses.
constexpr SettingRow recompute_row(SettingRow made) {
  made.set = [](Plan& plan, std::int64_t value) {
    plan.recompute = static_cast<Recompute>(value);
    if (plan.recompute != Recompute::kBlocks) plan.recompute_blocks = 0;
  };
  return made;
}

constexpr SettingRow list_row(Setting setting, std::string_view key, FieldFacts facts,
                              const SettingUse& use) {
  facts.key = key;
  facts.kind = FieldKind::kList;
  facts.is_executed = true;
  return {{facts}, use, setting};
}

bool suits_experts(const ModelSpec& model) { return has_experts(model); }

using D = ParallelDegrees;
constexpr std::array<SettingRow, kSettingCount> kSettingRows = {{
    degree<&D::tp>(
        Setting::kTp, "tp",
        {.title = "tensor parallel",
         .help = "tensor-parallel degree",
         .meaning =
             "Splits the matrices of every layer over this many GPUs. This saves memory, but "
             "needs two all-reduces per layer and pass: keep tp inside a node."},
        {.role = SettingRole::kLayout, .tag = "tp", .in_every_name = true}),
    degree<&D::pp>(
        Setting::kPp, "pp",
        {.title = "pipeline stages",
         .help = "pipeline stages",
         .meaning = "Splits the layers into this many consecutive groups on different GPUs. This "
                    "causes little traffic, but GPUs idle while the pipeline fills and drains."},
        {.role = SettingRole::kLayout, .tag = "pp", .in_every_name = true}),
    degree<&D::dp>(
        Setting::kDp, "dp",
        {.title = "data parallel",
         .help = "data-parallel degree",
         .meaning =
             "Number of model replicas. Each processes a share of the batch; gradients are summed "
             "over replicas."},
        {.role = SettingRole::kLayout, .tag = "dp", .in_every_name = true}),
    degree<&D::cp>(
        Setting::kCp, "cp",
        {.title = "context parallel",
         .help = "context-parallel degree: ranks per sequence",
         .meaning =
             "Splits every sequence over this many GPUs, which exchange keys and values: for "
             "sequences too long for one GPU."},
        {.role = SettingRole::kLayout, .tag = "cp", .in_every_file = false}),
    degree<&D::ep>(
        Setting::kEp, "ep",
        {.title = "expert parallel",
         .help = "expert-parallel degree: ranks over which experts are spread",
         .meaning = "Spreads the experts of a layer over this many ranks, which exchange tokens by "
                    "all-to-all. The group may extend over data-parallel replicas."},
        {.role = SettingRole::kLayout,
         .tag = "ep",
         .in_every_file = false,
         .suits = suits_experts,
         .needs = "experts"}),
    degree<&D::etp>(
        Setting::kEtp, "etp",
        {.title = "expert tensor parallel",
         .help = "expert tensor-parallel degree; 0: same as --tp",
         .meaning =
             "Number of ranks that split each expert; 0: same as tp. With 1, experts need no "
             "tensor-parallel traffic, and each tensor-parallel rank dispatches its own tokens.",
         .least = 0},
        {.role = SettingRole::kLayout,
         .tag = "etp",
         .in_every_file = false,
         .suits = suits_experts,
         .needs = "experts"}),
    row<&Plan::zero>(
        Setting::kZero, "zero",
        {.title = "ZeRO",
         .help = "ZeRO stage: 1 shards optimizer state, 2 gradients, 3 weights",
         .meaning = "State that data-parallel ranks shard. 0: nothing; 1: optimizer state; 2: "
                    "gradients as well; 3: weights as well.",
         .least = 0,
         .most = 3},
        {.role = SettingRole::kLayout, .tag = "zero", .tried = kZeroTried, .in_every_name = true}),
    row<&Plan::micro_batch>(
        Setting::kMicroBatch, "micro_batch",
        {.title = "micro-batch",
         .help = "sequences per micro-batch",
         .meaning =
             "Sequences per pass through the pipeline. Larger micro-batches use the GPU better, "
             "but need more memory and leave fewer micro-batches to fill the pipeline."},
        {.role = SettingRole::kLayout, .tag = "mb", .in_every_name = true}),
    row<&Plan::virtual_stages>(
        Setting::kVirtualStages, "virtual_stages",
        {.title = "chunks per stage",
         .help = "model chunks per pipeline stage (interleaved schedule)",
         .meaning =
             "Model chunks per stage (interleaved schedule). More chunks shorten the bubble and "
             "add P2P traffic."},
        {.role = SettingRole::kLayout, .tag = "v", .in_every_file = false}),
    recompute_row(row<&Plan::recompute>(
        Setting::kRecompute, "recompute",
        {.title = "recompute",
         .help = "activations to recompute; blocks:N: all of N layers per chunk",
         .meaning =
             "Activations dropped in forward and computed again in backward: less memory, more "
             "compute. selective: the attention core only; blocks: the first layers of each chunk; "
             "ops: every second GEMM and all other ops except attention (predicted only).",
         .words = kRecomputes},
        {.role = SettingRole::kVariant, .tried = kRecomputeTried, .in_every_name = true})),
    row<&Plan::recompute_blocks>(
        Setting::kRecomputeBlocks, "recompute_blocks",
        {.title = "recomputed blocks",
         .help = "number of layers recomputed in each chunk",
         .meaning = "Number of layers recomputed in each chunk; the others keep their activations.",
         .least = 0,
         .most = 1 << 24},
        {.role = SettingRole::kLayout,
         .tag = "blocks",
         .counts_for = &kSomeBlocks,
         .in_every_file = false}),
    row<&Plan::sequence_parallel>(
        Setting::kSequenceParallel, "sequence_parallel",
        {.title = "sequence parallel",
         .help = "Megatron's sequence parallelism: shard norms over the TP group",
         .meaning =
             "Splits norms and dropout over the tensor-parallel group by tokens: less memory "
             "with the same traffic. Needs tp > 1.",
         .words = kSwitch},
        {.role = SettingRole::kVariant, .tried = kSwitchTried}),
    row<&Plan::attention>(
        Setting::kAttention, "attention",
        {.title = "attention",
         .help = "attention kernel",
         .meaning = "Unfused attention writes the scores to memory, flash attention does not.",
         .words = kAttentions},
        {.role = SettingRole::kVariant, .tried = kAttentionTried}),
    row<&Plan::schedule>(
        Setting::kSchedule, "schedule",
        {.title = "schedule",
         .help = "pipeline schedule",
         .meaning =
             "1F1B runs each backward as soon as it can, so few activations are alive. "
             "Interleaved does the same with several model chunks per stage, for a shorter "
             "bubble and more transfers; the number of micro-batches must be a multiple of the "
             "stages. GPipe runs all forwards first.",
         .words = kSchedules},
        {.role = SettingRole::kLayout, .tried = kScheduleTried}),
    row<&Plan::rank_order>(
        Setting::kRankOrder, "rank_order",
        {.title = "rank order",
         .help = "order of ranks, innermost degree first",
         .meaning =
             "Placement of ranks. The degree named first varies fastest, so its groups are most "
             "likely inside one node.",
         .words = kRankOrders},
        {.role = SettingRole::kLayout, .tried = kRankOrderTried, .in_every_file = false}),
    row<&Plan::offload>(
        Setting::kOffload, "offload",
        {.title = "offload",
         .help = "optimizer: keep and update optimizer state on the CPU",
         .meaning = "Location of master weights and Adam's moments, and of their update. The host "
                    "saves GPU memory, but every step waits for the host link.",
         .words = kOffloads},
        {.role = SettingRole::kVariant, .tried = kOffloadTried, .in_every_file = false}),
    row<&Plan::dtype>(Setting::kDtype, "dtype",
                      {.title = "dtype",
                       .help = "dtype of weights and activations [bf16 if the GPU supports it]",
                       .meaning = "Data type of weights, activations and GEMMs.",
                       .words = kDtypes},
                      {.role = SettingRole::kVariant, .tried = kDtypeTried, .fixed_by_plan = true}),
    row<&Plan::gradient_dtype>(
        Setting::kGradientDtype, "gradient_dtype",
        {.title = "gradient dtype",
         .help = "dtype of gradient accumulation [fp32]",
         .meaning = "Data type in which gradients are accumulated over micro-batches and reduced.",
         .words = kGradientDtypes},
        {.role = SettingRole::kVariant, .tried = kGradientDtypeTried, .fixed_by_plan = true}),
    row<&Plan::precision>(
        Setting::kPrecision, "precision",
        {.title = "precision",
         .help = "8-bit or 4-bit recipe of the linear layers [none]",
         .meaning =
             "Quantizes the operands of linear layers to 8 or 4 bits. Scales are per tensor (fp8: "
             "delayed, fp8-current: current), per block (fp8-block), per 32 values (mxfp8) or per "
             "16 "
             "(nvfp4). This pays off for large GEMMs, since quantization adds passes over memory.",
         .words = kPrecisions},
        {.role = SettingRole::kVariant,
         .tried = kPrecisionTried,
         .in_every_file = false,
         .fixed_by_plan = true}),
    row<&Plan::fp8_param_gather>(
        Setting::kFp8ParamGather, "fp8_param_gather",
        {.title = "fp8 weights",
         .help = "store and all-gather linear weights in 8 bits",
         .meaning =
             "Linear weights are stored in the recipe's 8 bits only, and all-gathered in 8 bits "
             "after the optimizer step: less memory and traffic.",
         .words = kFp8Gathers},
        {.role = SettingRole::kVariant,
         .tried = kNotTried,
         .in_every_file = false,
         .fixed_by_plan = true}),
    row<&Plan::global_batch>(Setting::kGlobalBatch, "global_batch",
                             {.title = "global batch",
                              .help = "sequences per step [2048]",
                              .meaning = "Sequences per step over all data-parallel ranks."},
                             {.role = SettingRole::kGiven, .tag = "batch", .fixed_by_plan = true}),
    list_row(Setting::kStageLayers, "stage_layers",
             {.title = "stage layers",
              .help = "layers of each chunk, in model order",
              .meaning = "Number of layers of each chunk, in model order.",
              .least = 0,
              .most = 1 << 24},
             {.role = SettingRole::kGiven, .tag = "layers"}),
}};

}  // namespace

std::span<const SettingRow> setting_rows() { return kSettingRows; }

}  // namespace tpsim
