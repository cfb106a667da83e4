// Converts Megatron-LM's arguments to a plan. Source: megatron/training/arguments.py,
// validate_args.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>

#include "core/base/text.h"
#include "core/software/launched_models.h"
#include "frameworks/launch/megatron_options.h"
#include "frameworks/launch/nemo_settings.h"

namespace tpsim {
namespace {

constexpr const char* kOverlapReduction = "--overlap-grad-reduce";
constexpr const char* kOverlapGather = "--overlap-param-gather";
constexpr CpCommType kMegatronExchange = CpCommType::kP2p;  // Megatron's default

void check_overlap(LaunchOptionReader& in, const Plan& plan) {
  const bool reduces = in.flag(kOverlapReduction);
  const bool gathers = in.flag(kOverlapGather);
  if (gathers && plan.zero == 0) {
    in.fail("--overlap-param-gather needs a distributed optimizer: --use-distributed-optimizer");
  }
  if (gathers && !reduces) in.fail("--overlap-param-gather needs --overlap-grad-reduce");
}

int zero_of(LaunchOptionReader& in) {
  const bool fsdp = in.flag("--use-megatron-fsdp");
  const bool distributed = in.flag("--use-distributed-optimizer");
  const std::string strategy = in.text("--data-parallel-sharding-strategy").value_or("no_shard");
  in.drop("--ckpt-format");  // the checkpoint format does not affect the step
  if (!fsdp) return distributed ? 1 : 0;
  if (strategy == "optim_grads") return 2;
  if (strategy == "optim_grads_params") return 3;
  in.fail(
      fmt::format("--data-parallel-sharding-strategy is '{}'; with FSDP it must be optim_grads or "
                  "optim_grads_params",
                  strategy));
  return 0;
}

Offload offload_of(LaunchOptionReader& in) {
  const bool offloads = in.flag("--optimizer-cpu-offload");
  const bool aware = in.flag("--use-precision-aware-optimizer");
  const std::string fraction = in.text("--optimizer-offload-fraction").value_or("1.0");
  if ((offloads && !aware) || (offloads && fraction != "1.0" && fraction != "1")) {
    in.fail(
        "tpsim reads a fully offloaded optimizer only: --optimizer-cpu-offload, "
        "--use-precision-aware-optimizer and --optimizer-offload-fraction 1.0");
  }
  return offloads ? Offload::kOptimizer : Offload::kNone;
}

void read_precision(LaunchOptionReader& in, Plan& plan) {
  const bool bf16 = in.flag("--bf16");
  const bool fp16 = in.flag("--fp16");
  const bool wide = in.flag("--accumulate-allreduce-grads-in-fp32");
  const std::string added = in.text("--main-grads-dtype").value_or("fp32");
  const bool narrow = in.flag("--grad-reduce-in-bf16") || matches_any(added, "bf16 torch.bfloat16");
  if (!narrow && !matches_any(added, "fp32 torch.float32")) {
    in.fail(fmt::format("--main-grads-dtype is {}; it must be fp32 or bf16", added));
  }
  if (bf16 && fp16) in.fail("--bf16 and --fp16 exclude each other");
  plan.dtype = bf16 ? DType::kBFloat16 : fp16 ? DType::kFloat16 : DType::kFloat32;
  // By default gradients are reduced in fp32 if the model is bf16, and in fp16 if the model is
  // fp16.
  plan.gradient_dtype = bf16 && narrow  ? DType::kBFloat16
                        : fp16 && !wide ? DType::kFloat16
                                        : DType::kFloat32;
}

// Converts module names such as "mla_up_proj mlp" to a bit set of RecomputeModule. Nothing if a
// name is unknown.
std::optional<std::int64_t> modules_in(std::string_view words) {
  constexpr auto& kWords = kEnumNames<RecomputeModule>;
  std::int64_t set = 0;
  while (!words.empty()) {
    const std::string_view word = cut_off(words, " ,");
    if (word.empty()) continue;
    const auto known = std::find(kWords.begin(), kWords.end(), word);
    if (known == kWords.end()) return std::nullopt;
    set |= bit(static_cast<RecomputeModule>(known - kWords.begin()));
  }
  return set;
}

void read_recompute(LaunchOptionReader& in, Plan& plan) {
  const std::string granularity = in.text("--recompute-granularity").value_or("none");
  const std::string method = in.text("--recompute-method").value_or("");
  const std::int64_t layers = in.integer("--recompute-num-layers", 0);
  const std::string modules = in.text(kRecomputeModules).value_or("core_attn");
  if (granularity == "selective" && !modules_in(modules)) {
    in.fail(
        fmt::format("--recompute-modules {} contains an unknown module", modules),
        "the modules are core_attn, layernorm, moe_act, mlp, moe, mla_up_proj and shared_experts");
  }
  if (granularity == "none" || granularity == "selective") {
    if (!method.empty())
      in.fail(fmt::format("--recompute-method is not valid with {} recompute", granularity));
    plan.recompute = granularity == "none" ? Recompute::kNone : Recompute::kSelective;
    return;
  }
  const bool some = method == "block";
  if (granularity != "full" || layers < 1 || (!some && method != "uniform")) {
    in.fail(
        "tpsim reads full recompute with --recompute-method uniform or block and a number of "
        "layers of at least 1: --recompute-num-layers 1");
  }
  const auto& chunks = plan.stage_layers;
  const std::int64_t most = chunks.empty() ? 0 : *std::max_element(chunks.begin(), chunks.end());
  const bool all = layers >= most;
  if (const std::int64_t unit = std::min(layers, most); !some && unit > 1) {
    in.fail(
        fmt::format("--recompute-method uniform with --recompute-num-layers {} saves the input of "
                    "units of {} layers and recomputes a unit at once, which is not modelled",
                    layers, unit),
        "units of 1 layer take as long and differ in memory: --set recompute-num-layers=1, or "
        "--set model.recompute_num_layers=1 for a YAML file");
  }
  plan.recompute = some && !all ? Recompute::kBlocks : Recompute::kFull;
  if (plan.recompute == Recompute::kBlocks) plan.recompute_blocks = layers;
}

constexpr std::array kModelSwitches = {
    "--group-query-attention", "--swiglu", "--disable-bias-linear",
    "--untie-embeddings-and-output-weights", "--apply-residual-connection-post-layernorm"};

bool has_place(LaunchStack stack, std::string_view option) {
  return stack != LaunchStack::kNemo || nemo_has(option);
}

// Whether the option may be absent although the model has a value. Such options do not affect time
// and memory, or the tokenizer or the named model also defines them.
bool may_be_left_out(std::string_view option) {
  return matches_any(option, "--vocab-size --rotary-base --norm-epsilon --max-position-embeddings");
}

// Whether read_capacity() reads the option.
bool is_of_capacity(std::string_view option) {
  return matches_any(option,
                     "--moe-expert-capacity-factor --moe-token-drop-policy "
                     "--moe-pad-expert-input-to-capacity --moe-router-load-balancing-type");
}

// Returns Megatron-LM's default value of an option; empty if the option is required.
std::string default_of(std::string_view option, const ModelSpec& model) {
  if (option == "--ffn-hidden-size") return std::to_string(usual_ffn(model));
  if (option == "--kv-channels") return std::to_string(model.hidden / attention_shape(model).heads);
  if (option == "--position-embedding-type") return "learned_absolute";
  if (option == "--normalization") return "LayerNorm";
  if (option == "--moe-router-topk") return "2";
  if (option == "--attention-dropout" || option == "--hidden-dropout") return "0.1";
  return "";
}

// Reads the options of expert capacity. Fails unless unused expert slots are padded, because the
// prediction assumes it.
void read_capacity(LaunchOptionReader& in, const ModelSpec& model) {
  const std::string policy = in.text("--moe-token-drop-policy").value_or("position");
  const bool pads = in.flag("--moe-pad-expert-input-to-capacity");
  const bool has_capacity = in.text("--moe-expert-capacity-factor").has_value();
  if (policy != "position" && policy != "probs") {
    in.fail(fmt::format("--moe-token-drop-policy is {}; it must be probs or position", policy));
  }
  if (has_experts(model) && has_capacity != pads) {
    in.fail("--moe-expert-capacity-factor needs --moe-pad-expert-input-to-capacity and vice versa");
  }
}

// Compares the options with the model. Differences are added to `differences`; if it is null, they
// are errors.
void read_model(LaunchOptionReader& in, LaunchStack stack, const ModelSpec& model,
                std::vector<std::string>* differences) {
  LaunchOptions wanted;
  add_megatron_model(model, wanted);
  const AttentionShape& attention = attention_shape(model);
  const bool rotary = attention.position == PositionKind::kRotary;
  for (const LaunchOption& option : wanted.all()) {
    const std::string& name = option.key;
    if (option.value.empty() || !has_place(stack, name)) continue;
    if (stack == LaunchStack::kNemo && !in.has(name)) continue;  // the recipe defines it
    if (is_of_capacity(name) || is_rare_shape(name)) continue;   // compared elsewhere
    // Options without an effect here: the vocab size is already padded, and rotary positions do not
    // need a table.
    const bool is_free =
        name == "--make-vocab-size-divisible-by" ||
        (name == "--max-position-embeddings" && rotary) ||
        (name == "--kv-channels" && attention.latent.kv_rank > 0) ||
        (name == "--ffn-hidden-size" && in.has("--moe-ffn-hidden-size")) ||
        (name == "--moe-ffn-hidden-size" && !in.has(name)) ||
        (name == "--position-embedding-type" && rotary && in.has_value(name, "yarn"));
    if (is_free) {
      in.text(name);
    } else if (differences != nullptr) {
      in.note_other(option, *differences);
    } else if (!may_be_left_out(name)) {
      in.expect(option, default_of(name, model));
    } else if (in.has(name)) {
      in.expect(option, "");
    }
  }
  if (differences != nullptr) {
    in.note_other(kModelSwitches, wanted, *differences);
  } else if (stack != LaunchStack::kNemo) {
    in.refuse_other(kModelSwitches, wanted);
  }
  read_capacity(in, model);
}

// Returns the attention kind. "auto" and "fused" select kernels that do not store the
// probabilities, like flash attention. "local" is Megatron's own unfused kernel.
AttentionKind attention_of(LaunchOptionReader& in) {
  const bool flash = in.flag("--use-flash-attn");
  const bool local = in.text("--transformer-impl").value_or("transformer_engine") == "local";
  const std::string backend =
      in.text("--attention-backend").value_or(local && !flash ? "local" : "flash");
  if (backend == "unfused" || backend == "local") return AttentionKind::kUnfused;
  if (backend != "flash" && backend != "auto" && backend != "fused") {
    in.fail("--attention-backend must be flash, fused, auto, unfused or local");
  }
  return AttentionKind::kFlash;
}

void read_expert_degrees(LaunchOptionReader& in, const ModelSpec& model, ParallelDegrees& degrees) {
  const std::int64_t experts = in.degree("--expert-model-parallel-size");
  const std::int64_t cut = in.integer("--expert-tensor-parallel-size", degrees.tp);
  read_megatron_dispatch(in, model);
  if (!has_experts(model)) return;
  degrees.ep = experts;
  degrees.etp = cut == degrees.tp ? 0 : cut;
}

// Returns the word of --cp-comm-type. If the option has one word per layer and the words differ,
// returns the whole text. Transformer Engine also accepts the spelling "allgather".
std::string exchange_of(const std::optional<std::string>& said) {
  const std::string text = said.value_or(std::string(name_of(kMegatronExchange)));
  std::vector<std::string> words = words_in(text);
  for (std::string& word : words) {
    if (word == "allgather") word = "all_gather";
  }
  const bool alike =
      !words.empty() && std::all_of(words.begin(), words.end(),
                                    [&](const auto& word) { return word == words.front(); });
  return alike ? words.front() : text;
}

void read_degrees(LaunchOptionReader& in, const ModelSpec& model, const LaunchSize& size,
                  ParallelDegrees& degrees) {
  degrees.tp = in.degree("--tensor-model-parallel-size");
  degrees.pp = in.degree("--pipeline-model-parallel-size");
  degrees.cp = in.degree("--context-parallel-size");
  const std::string exchange = exchange_of(in.text(kCpCommType));
  if (degrees.cp > 1 && !matches_any(exchange, "p2p all_gather a2a")) {
    in.fail(
        fmt::format("{} is {}; tpsim models p2p, all_gather and a2a", kCpCommType, exchange),
        "use --set cp-comm-type=p2p, or --set model.cp_comm_type=p2p for a YAML file, to predict "
        "the run with p2p");
  }
  read_expert_degrees(in, model, degrees);
  const std::int64_t world = size.nodes * size.gpus_per_node;
  const std::int64_t replica = degrees.tp * degrees.pp * degrees.cp;
  if (world % replica != 0) {
    in.fail(fmt::format("{} GPUs are not divisible by tensor {} x pipeline {} x context {} = {}",
                        world, degrees.tp, degrees.pp, degrees.cp, replica),
            fmt::format("state the number of GPUs: --gpus N, a multiple of {}", replica));
  }
  degrees.dp = std::max<std::int64_t>(1, world / replica);
  check_expert_ranks(in, model, degrees, world);
}

// Returns the sequences per step: the stated number, or the last of a schedule such as
// "0:768 250B:1536", which most of the training has.
std::int64_t global_batch_of(LaunchOptionReader& in, std::int64_t usual) {
  const std::optional<std::string> schedule = in.text("--step-batch-size-schedule");
  if (!schedule) return in.integer("--global-batch-size", usual);
  const std::string last = schedule->substr(schedule->rfind(':') + 1);
  const std::int64_t batch = std::strtoll(last.c_str(), nullptr, 10);
  if (batch <= 0) {
    in.fail(fmt::format("--step-batch-size-schedule is {}; the form is THRESHOLD:BATCH ...",
                        *schedule));
  }
  return in.integer("--global-batch-size", batch);
}

}  // namespace

std::optional<std::int64_t> recomputed_modules(const std::vector<LaunchOption>& options,
                                               const Plan& plan) {
  if (plan.recompute != Recompute::kSelective) return std::nullopt;
  const LaunchOption* modules = find_setting(options, kRecomputeModules);
  return modules == nullptr ? std::nullopt : modules_in(modules->value);
}

PartValues overlap_parts(const std::vector<LaunchOption>& options, const Plan& plan) {
  PartValues parts;
  if (!has_replicas(plan)) return parts;
  parts[StackPart::kOverlapGradientReduction] = has_key(options, kOverlapReduction) ? 1 : 0;
  if (plan.zero > 0)
    parts[StackPart::kOverlapParameterGather] = has_key(options, kOverlapGather) ? 1 : 0;
  return parts;
}

PartValues context_parts(const std::vector<LaunchOption>& options, const Plan& plan) {
  if (plan.degrees.cp == 1) return {};
  const LaunchOption* said = find_setting(options, kCpCommType);
  const std::string word = exchange_of(said == nullptr ? std::nullopt : std::optional(said->value));
  const PartRow& row = row_of(StackPart::kCpCommType);
  return {{row.part, parse_value(row, word).value()}};
}

bool runs_flash(const std::vector<LaunchOption>& options) {
  if (has_key(options, "--deepspeed")) return has_key(options, "--use-flash-attn");
  LaunchOptionReader in(options);
  return attention_of(in) == AttentionKind::kFlash;
}

Result<Plan> plan_of_megatron(LaunchStack stack, const ShellOptions& shell, const ModelSpec& model,
                              LeftSettings& left, std::vector<std::string>* unasked) {
  LaunchOptionReader in(shell.options);
  read_model(in, stack, model, shell.differences);
  Plan plan;
  read_degrees(in, model, shell.size, plan.degrees);
  read_megatron_stages(in, model, plan);
  if (in.flag("--use-tp-pp-dp-mapping")) plan.rank_order = RankOrder::kTpPpDp;
  plan.sequence_parallel = in.flag("--sequence-parallel") && plan.degrees.tp > 1;
  plan.micro_batch = in.integer("--micro-batch-size", 1);
  plan.global_batch = global_batch_of(in, plan.micro_batch * plan.degrees.dp);
  plan.zero = zero_of(in);
  check_overlap(in, plan);
  plan.offload = offload_of(in);
  read_precision(in, plan);
  read_megatron_recipe(in, plan);
  read_recompute(in, plan);
  plan.attention = attention_of(in);
  if (unasked != nullptr) *unasked = in.left();
  TPSIM_TRY_STATUS(shell.is_log ? in.error() : in.finish(left));
  TPSIM_TRY_STATUS(validate(plan, model));
  return plan;
}

}  // namespace tpsim
