// The rules of validate(): which plans are legal for a model.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "core/base/checked_product.h"
#include "core/plan/plan.h"

namespace tpsim {
namespace {

Error illegal(std::string message, std::string hint = "") {
  return bad_input(std::move(message), "", std::move(hint));
}

Status check_degrees(const Plan& plan) {
  const ParallelDegrees& d = plan.degrees;
  constexpr std::int64_t kMost = 1 << 20;
  for (const auto& [name, value] :
       {std::pair{"tp", d.tp}, std::pair{"pp", d.pp}, std::pair{"dp", d.dp}, std::pair{"cp", d.cp},
        std::pair{"ep", d.ep}, std::pair{"etp", expert_tensor_ranks(plan)},
        std::pair{"virtual_stages", plan.virtual_stages},
        std::pair{"micro_batch", plan.micro_batch}, std::pair{"global_batch", plan.global_batch}}) {
    if (value < 1 || value > kMost) {
      return illegal(fmt::format("{} is {}; it must be between 1 and {}", name, value, kMost));
    }
  }
  constexpr std::int64_t kMostGpus = std::int64_t{1} << 34;  // upper bound for any cluster
  const auto gpus = checked_product({d.tp, d.pp, d.dp, d.cp});
  if (!gpus || *gpus > kMostGpus) {
    return illegal(fmt::format("tp x pp x dp x cp is above the limit of {}", kMostGpus));
  }
  if (plan.zero < 0 || plan.zero > 3) {
    return illegal(fmt::format("zero is {}; ZeRO stages are 0, 1, 2 and 3", plan.zero));
  }
  return Ok{};
}

// Each rank takes one early and one late chunk of the sequence, because causal attention costs more
// for late positions. The sequence must divide evenly into these chunks.
Status check_context_parallel(const Plan& plan, const ModelSpec& model) {
  const std::int64_t cp = plan.degrees.cp;
  if (cp > 1 && needs_whole_sequences(model)) {
    return illegal(
        fmt::format("cp is {}; context parallelism of recurrent and sparse layers is not modelled",
                    cp),
        "set cp to 1");
  }
  if (cp > 1 && model.seq % (2 * cp) != 0) {
    return illegal(
        fmt::format("sequence length {} is not divisible by 2 x cp = {}", model.seq, 2 * cp),
        "each context-parallel rank works on two of 2 x cp equal chunks");
  }
  return Ok{};
}

// Returns the divisor of `all` that is nearest to n.
std::int64_t nearest_divisor(std::int64_t all, std::int64_t n) {
  std::int64_t nearest = 1;
  for (std::int64_t divisor = 2; divisor <= all; ++divisor) {
    if (all % divisor == 0 && std::abs(divisor - n) < std::abs(nearest - n)) nearest = divisor;
  }
  return nearest;
}

// Checks the width of every kind of experts.
Status check_experts_divide(const ModelSpec& model, std::int64_t etp) {
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    const ModelSpec block = with_block_kind(model, kind);
    if (!has_experts(block) || block.ffn_hidden % etp == 0) continue;
    return illegal(
        fmt::format("the experts' width {} is not divisible by etp = {}", block.ffn_hidden, etp),
        "etp 1 does not split the experts");
  }
  return Ok{};
}

Status check_expert_tensor_parallel(const Plan& plan, const ModelSpec& model) {
  const std::int64_t etp = expert_tensor_ranks(plan);
  TPSIM_TRY_STATUS(check_experts_divide(model, etp));
  if (stage_ranks(plan) % etp != 0) {
    return illegal(
        fmt::format("tp x cp x dp = {} is not divisible by etp = {}", stage_ranks(plan), etp));
  }
  return Ok{};
}

// Returns the smallest etp below the plan's with which ep divides the ranks and the experts; 0 if
// none.
std::int64_t etp_for(Plan plan, const ModelSpec& model) {
  const std::int64_t ranks = stage_ranks(plan), ep = plan.degrees.ep;
  if (model.experts.count % ep != 0) return 0;
  const std::int64_t own = expert_tensor_ranks(plan);
  for (std::int64_t etp = 1; etp < own; ++etp) {
    plan.degrees.etp = etp;
    if (ranks % etp != 0 || ranks / etp % ep != 0 || !experts_fit_ranks(plan)) continue;
    if (check_experts_divide(model, etp).ok()) return etp;
  }
  return 0;
}

Status check_expert_parallel(const Plan& plan, const ModelSpec& model) {
  const ParallelDegrees& d = plan.degrees;
  if (!has_experts(model)) {
    if (d.ep == 1 && d.etp == 0) return Ok{};
    return d.ep > 1
               ? illegal(fmt::format("ep is {}; the model has no experts", d.ep), "set ep to 1")
               : illegal(fmt::format("etp is {}; the model has no experts", d.etp), "remove etp");
  }
  TPSIM_TRY_STATUS(check_expert_tensor_parallel(plan, model));
  const std::int64_t ranks = stage_ranks(plan) / expert_tensor_ranks(plan);
  const std::int64_t all = std::gcd(ranks, model.experts.count);
  if (all % d.ep != 0) {
    const bool by_ranks = ranks % d.ep != 0;
    const std::int64_t etp = etp_for(plan, model);
    const std::string nearest = fmt::format("the nearest ep that divides ranks and experts is {}",
                                            nearest_divisor(all, d.ep));
    return illegal(
        fmt::format("{} = {} is not divisible by ep = {}",
                    by_ranks ? "tp x cp x dp / etp" : "experts",
                    by_ranks ? ranks : model.experts.count, d.ep),
        etp == 0
            ? nearest
            : fmt::format(
                  "etp {} allows ep {}{}; with the current etp, {}", etp, d.ep,
                  etp == 1 ? ", with experts that are not split over tensor-parallel ranks" : "",
                  nearest));
  }
  if (!experts_fit_ranks(plan)) {
    return illegal(
        fmt::format("etp x ep = {} x {} neither divides tp x cp = {} nor is a multiple of it, as "
                    "rank order {} requires",
                    expert_tensor_ranks(plan), d.ep, d.tp * d.cp, name_of(plan.rank_order)),
        "use rank order tp-dp-pp");
  }
  if (d.tp > 1 && !plan.sequence_parallel) {
    return illegal(
        "experts with tp > 1 need sequence parallelism",
        "each tensor-parallel rank routes its own tokens; switch sequence parallelism on");
  }
  return Ok{};
}

// Returns the positive multiple of `of` that is nearest to n; of two equally near ones, the
// smaller.
std::int64_t nearest_multiple(std::int64_t of, std::int64_t n) {
  const std::int64_t below = n / of * of;
  return std::max(of, n - below <= of / 2 ? below : below + of);
}

// Whether every tensor rank has whole key/value heads, or each head is split evenly over ranks.
bool heads_fit_ranks(const AttentionShape& attention, std::int64_t tp) {
  if (attention.kv_heads % tp == 0) return true;
  const bool is_whole = attention.qk_norm == QkNorm::kWidth ||  // normalizes all heads at once
                        attention.qk_norm == QkNorm::kEachHead || attention.value_dim > 0;
  return !is_whole && tp % attention.kv_heads == 0 &&
         attention.kv_heads * attention.head_dim % tp == 0;
}

std::string nearest_tp(const ModelSpec& model, std::int64_t tp) {
  const std::int64_t all = std::gcd(
      std::gcd(model.attention.heads, std::gcd(model.recurrent.heads, model.recurrent.key_heads)),
      has_experts(model) ? model.experts.shared_ffn : model.ffn_hidden);
  std::int64_t nearest = 1;
  for (std::int64_t divisor = 2; divisor <= all; ++divisor) {
    if (all % divisor != 0 || !heads_fit_ranks(model.attention, divisor)) continue;
    if (std::abs(divisor - tp) < std::abs(nearest - tp)) nearest = divisor;
  }
  return fmt::format("the nearest valid tp is {}", nearest);
}

Status check_block_divides(const ModelSpec& model, std::int64_t tp) {
  if (model.attention.heads % tp != 0) {
    return illegal(
        fmt::format("{} attention heads are not divisible by tp = {}", model.attention.heads, tp),
        nearest_tp(model, tp));
  }
  if (!heads_fit_ranks(model.attention, tp)) {
    return illegal(fmt::format("{} key/value heads are neither a multiple nor a divisor of tp = {}",
                               model.attention.kv_heads, tp),
                   nearest_tp(model, tp));
  }
  const RecurrentShape& recurrent = model.recurrent;
  if (recurrent.heads % tp != 0 || recurrent.key_heads % tp != 0) {
    return illegal(
        fmt::format("{} recurrent heads and {} key heads are not both divisible by tp = {}",
                    recurrent.heads, recurrent.key_heads, tp),
        nearest_tp(model, tp));
  }
  for (const PlannedOp& op : model.planned) {
    const bool by_rows = op.sharding == PlannedSharding::kRows;
    const bool by_columns = op.sharding == PlannedSharding::kColumns;
    const std::int64_t shared =
        by_rows ? std::gcd(std::gcd(op.width, op.heads), op.parameters) : op.columns;
    if ((by_rows || by_columns) && shared % tp != 0) {
      return illegal(
          fmt::format("the size of planned op '{}' is not divisible by tp = {}", op.name, tp),
          nearest_tp(model, tp));
    }
  }
  if (!has_experts(model) && model.ffn_hidden % tp != 0) {
    return illegal(fmt::format("ffn_hidden {} is not divisible by tp = {}", model.ffn_hidden, tp),
                   nearest_tp(model, tp));
  }
  if (model.experts.shared_ffn % tp != 0) {
    return illegal(fmt::format("the shared expert's width {} is not divisible by tp = {}",
                               model.experts.shared_ffn, tp));
  }
  return Ok{};
}

Status check_blocks_divide(const ModelSpec& model, std::int64_t tp) {
  for (std::int64_t kind = 0; kind < block_kind_count(model); ++kind) {
    TPSIM_TRY_STATUS(check_block_divides(with_block_kind(model, kind), tp));
  }
  return Ok{};
}

Status check_tensor_parallel(const Plan& plan, const ModelSpec& model) {
  const std::int64_t tp = plan.degrees.tp;
  TPSIM_TRY_STATUS(check_blocks_divide(model, tp));
  if (plan.sequence_parallel && tp == 1) {
    return illegal("sequence parallelism needs tp > 1", "it shards over the tensor group");
  }
  const std::int64_t positions = model.seq / plan.degrees.cp;
  if (plan.sequence_parallel && positions % tp != 0) {
    const char* of_whom = plan.degrees.cp > 1 ? " of a context-parallel rank" : "";
    return illegal(
        fmt::format("sequence length {}{} is not divisible by tp = {}", positions, of_whom, tp),
        "switch sequence parallelism off");
  }
  return Ok{};
}

Status check_batch(const Plan& plan) {
  const std::int64_t per_step = plan.degrees.dp * plan.micro_batch;
  if (plan.global_batch % per_step != 0) {
    return illegal(fmt::format("global batch {} is not divisible by dp x micro_batch = {} x {}",
                               plan.global_batch, plan.degrees.dp, plan.micro_batch),
                   fmt::format("the nearest valid global batch is {}",
                               nearest_multiple(per_step, plan.global_batch)));
  }
  return Ok{};
}

Status check_stages(const Plan& plan, const ModelSpec& model) {
  const std::int64_t chunks = chunk_count(plan);
  if (static_cast<std::int64_t>(plan.stage_layers.size()) != chunks) {
    return illegal(fmt::format("stage_layers has {} entries; it needs pp x virtual_stages = {}",
                               plan.stage_layers.size(), chunks));
  }
  for (const std::int64_t layers : plan.stage_layers) {
    if (layers < 0) return illegal("stage_layers contains a negative number");
  }
  const std::int64_t sum =
      std::accumulate(plan.stage_layers.begin(), plan.stage_layers.end(), std::int64_t{0});
  if (sum != model.layers) {
    return illegal(
        fmt::format("stage_layers add up to {}; the model has {} layers", sum, model.layers));
  }
  return Ok{};
}

// Rejects Recompute::kBlocks if it covers all blocks of every chunk. Such plans must use
// Recompute::kFull, so that equal plans compare equal.
Status check_recompute(const Plan& plan) {
  if (plan.recompute != Recompute::kBlocks) {
    if (plan.recompute_blocks == 0) return Ok{};
    return illegal(fmt::format("with {} recompute, recompute_blocks must be 0, not {}",
                               name_of(plan.recompute), plan.recompute_blocks),
                   "set recompute to blocks, or recompute_blocks to 0");
  }
  const std::int64_t most = most_recomputed_blocks(plan.stage_layers);
  if (plan.recompute_blocks >= 1 && plan.recompute_blocks <= most) return Ok{};
  return illegal(fmt::format("recompute_blocks is {}, but chunks have at most {} layers",
                             plan.recompute_blocks, most + 1),
                 most < 1 ? "use full or no recompute"
                          : fmt::format("choose 1 to {}, or full recompute", most));
}

Status check_schedule(const Plan& plan) {
  const std::int64_t pp = plan.degrees.pp;
  if ((plan.schedule == ScheduleKind::kInterleaved) != (plan.virtual_stages > 1)) {
    return illegal(fmt::format("schedule {} is not possible with {} virtual stages",
                               name_of(plan.schedule), plan.virtual_stages),
                   "interleaved needs virtual_stages > 1, other schedules need 1");
  }
  if (plan.virtual_stages > 1 && pp == 1) return illegal("virtual stages need pp > 1");
  if (plan.schedule == ScheduleKind::kZbH1 && pp == 1) {
    return illegal("schedule zb-h1 needs pp > 1", "it fills the bubble of a pipeline: use 1f1b");
  }
  if (plan.schedule == ScheduleKind::kZbH1 && plan.zero >= 2) {
    return illegal(fmt::format("schedule zb-h1 is not possible with ZeRO {}", plan.zero),
                   "ZeRO 2 and 3 reduce the gradients of a block when its backward ends, before "
                   "its weight gradients exist: use ZeRO 0 or 1");
  }
  if (plan.virtual_stages > 1 && micro_batches(plan) % pp != 0) {
    return illegal(
        fmt::format("the interleaved schedule has {} micro-batches, but needs a multiple of "
                    "pp = {}",
                    micro_batches(plan), pp));
  }
  return Ok{};
}

// Rules of Transformer Engine and Megatron (arguments.py, validate_args).
Status check_precision(const Plan& plan) {
  if (plan.fp8_param_gather &&
      (plan.precision == Precision::kNone || plan.precision == Precision::kNvFp4)) {
    return illegal(
        fmt::format("fp8_param_gather is not possible with precision {}", name_of(plan.precision)),
        "8-bit weights need an fp8 or mxfp8 recipe");
  }
  if (plan.precision != Precision::kNone && plan.dtype != DType::kBFloat16) {
    return illegal(fmt::format("precision {} is not possible with dtype {}",
                               name_of(plan.precision), name_of(plan.dtype)),
                   "low-precision recipes need dtype bf16");
  }
  return Ok{};
}

}  // namespace

bool divides_by_tp(const ModelSpec& model, std::int64_t tp) {
  return check_blocks_divide(model, tp).ok();
}

bool divides_by_etp(const ModelSpec& model, std::int64_t etp) {
  return check_experts_divide(model, etp).ok();
}

bool experts_fit_ranks(const Plan& plan) {
  const std::int64_t etp = expert_tensor_ranks(plan), group = etp * plan.degrees.ep;
  if (stage_ranks(plan) % group != 0) return false;
  if (plan.rank_order == RankOrder::kTpDpPp || plan.degrees.pp == 1) return true;
  const std::int64_t replica = plan.degrees.tp * plan.degrees.cp;
  const auto fits = [&](std::int64_t ranks) {
    return replica % ranks == 0 || ranks % replica == 0;
  };
  return fits(etp) && fits(group);
}

bool has_countable_tensors(const Plan& plan, const ModelSpec& model) {
  constexpr double kMostElements = 1e16;  // 40 PB; a layer has tens of such tensors
  const auto count = [](std::int64_t n) { return static_cast<double>(n); };
  const double tokens =
      count(plan.micro_batch) * std::ceil(count(model.seq) / count(plan.degrees.cp));
  const double of_experts = has_experts(model)
                                ? count(model.experts.per_token) * model.experts.capacity_factor +
                                      count(model.experts.count)
                                : 1;
  const double width = count(query_width(model)) + 2 * count(kv_width(model)) +
                       count(model.hidden + 2 * model.ffn_hidden) * of_experts +
                       count(padded_vocab(model, plan.degrees.tp)) +
                       4 * count(recurrent_channels(model.recurrent)) +
                       count(model.attention.heads) * count(model.seq);
  return tokens * width <= kMostElements;
}

Status validate(const Plan& plan, const ModelSpec& model) {
  TPSIM_TRY_STATUS(check_degrees(plan));
  if (!has_countable_tensors(plan, model)) {
    return illegal(
        fmt::format(
            "a micro-batch of {} sequences of {} tokens makes tensors too large for 64-bit sizes",
            plan.micro_batch, model.seq),
        "choose a smaller micro_batch, or a shorter sequence");
  }
  TPSIM_TRY_STATUS(check_context_parallel(plan, model));
  TPSIM_TRY_STATUS(check_tensor_parallel(plan, model));
  TPSIM_TRY_STATUS(check_expert_parallel(plan, model));
  TPSIM_TRY_STATUS(check_batch(plan));
  TPSIM_TRY_STATUS(check_stages(plan, model));
  TPSIM_TRY_STATUS(check_recompute(plan));
  TPSIM_TRY_STATUS(check_precision(plan));
  if (plan.attention == AttentionKind::kFlash && model.attention_dropout > 0) {
    return illegal(
        "flash attention with dropout is not supported; the model's attention_dropout is above "
        "zero",
        "use unfused attention, or set attention_dropout to 0");
  }
  return check_schedule(plan);
}

}  // namespace tpsim
