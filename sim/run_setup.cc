#include "sim/run_setup.h"

#include <fmt/format.h>

#include <cmath>

namespace tpsim {
namespace {

constexpr std::int64_t kUsualVocabulary = 51200;  // GPT-2's, padded: what Megatron's papers use
// Software that was not calibrated on runs of its table: as extra_spread of the environments that
// stand for any other run.
constexpr double kForeignSpread = 0.08;
constexpr const char* kOwnZeroOne = "BF16_Optimizer";

Error cannot(std::string reason) { return Error{ErrorKind::kBadInput, std::move(reason), "", ""}; }

const std::string& stated_or(const std::string& stated, const std::string& otherwise) {
  return stated.empty() ? otherwise : stated;
}

std::int64_t or_else(std::int64_t stated, std::int64_t otherwise) {
  return stated > 0 ? stated : otherwise;
}

Result<DType> dtype_of(const std::string& text, DType otherwise) {
  if (text.empty()) return otherwise;
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    if (text == name_of(dtype)) return dtype;
  }
  return cannot(fmt::format("dtype {} is not modelled", text));
}

// Half-precision training adds gradients up in its own dtype where nothing else is said, bf16
// training in fp32.
Result<DType> gradient_dtype_of(const PublishedRun& run, const RunEnvironment& environment,
                                DType dtype) {
  return dtype_of(stated_or(run.gradient_dtype, environment.gradient_dtype),
                  dtype == DType::kBFloat16 ? DType::kFloat32 : dtype);
}

// Linear layers of 8 bits, all else as in bf16 training.
bool is_fp8(const PublishedRun& run) { return run.dtype == "fp8"; }

Result<int> zero_of(const PublishedRun& run, int otherwise) {
  if (run.zero.empty()) return otherwise;
  // BigScience's bf16 optimizer calls itself stage 0 and shards its state all the same.
  if (run.zero.find(kOwnZeroOne) != std::string::npos) return 1;
  if (run.zero.size() == 1 && run.zero[0] >= '0' && run.zero[0] <= '3') return run.zero[0] - '0';
  return cannot(fmt::format("ZeRO stage '{}' is not known", run.zero));
}

Result<Recompute> recompute_of(const std::string& text) {
  if (text.empty()) return Recompute::kNone;
  for (const Recompute recompute : all_of<Recompute>()) {
    if (text == name_of(recompute)) return recompute;
  }
  return cannot(fmt::format("recompute '{}' is not modelled", text));
}

Result<AttentionKind> attention_of(const std::string& text) {
  if (text.empty() || text == name_of(AttentionKind::kFlash)) return AttentionKind::kFlash;
  if (text == name_of(AttentionKind::kUnfused)) return AttentionKind::kUnfused;
  return cannot(fmt::format("attention '{}' is not modelled", text));
}

std::int64_t virtual_stages_of(const PublishedRun& run, const RunEnvironment& environment) {
  if (run.virtual_stages > 0) return run.virtual_stages;
  const std::int64_t blocks_of_stages = environment.blocks_per_chunk * run.pp;
  if (run.pp == 1 || blocks_of_stages == 0 || run.layers % blocks_of_stages != 0) return 1;
  return run.layers / blocks_of_stages;
}

Status check_stated(const PublishedRun& run) {
  for (const auto& [name, value] :
       {std::pair{"layers", run.layers}, std::pair{"hidden", run.hidden},
        std::pair{"heads", run.heads}, std::pair{"seq", run.seq}, std::pair{"tp", run.tp},
        std::pair{"pp", run.pp}, std::pair{"dp", run.dp}, std::pair{"micro_batch", run.micro_batch},
        std::pair{"global_batch", run.global_batch}}) {
    if (value < 1) return cannot(fmt::format("{} is not stated", name));
  }
  if (run.hidden % run.heads != 0) {
    return cannot(fmt::format("hidden {} does not divide by {} heads", run.hidden, run.heads));
  }
  return Ok{};
}

}  // namespace

ModelSpec model_of(const PublishedRun& run, const RunEnvironment& environment) {
  // Tables state a gated MLP and little else: models that have one are of the LLaMA family.
  const bool gated = run.gated_ffn.value_or(false);
  ModelSpec model;
  model.name = run.model;
  model.source = run.source;
  model.layers = run.layers;
  model.hidden = run.hidden;
  model.ffn_hidden = or_else(run.ffn_hidden, 4 * run.hidden);
  model.vocab = or_else(run.vocab, kUsualVocabulary);
  if (environment.unpadded_vocabulary && run.tp == 1) model.vocab_multiple = 1;
  model.seq = run.seq;
  model.attention.heads = run.heads;
  model.attention.kv_heads = or_else(run.kv_heads, run.heads);
  model.attention.head_dim = run.hidden / run.heads;
  model.attention.position = gated ? PositionKind::kRotary : environment.position;
  model.norm = gated ? NormKind::kRmsNorm : NormKind::kLayerNorm;
  model.mlp = gated ? MlpKind::kSwiglu : MlpKind::kGelu;
  model.linear_bias = !gated;
  model.fused_qkv = model.attention.kv_heads == model.attention.heads && !gated;
  model.tied_embedding = environment.tied_embedding && !gated;
  model.embedding_norm = environment.embedding_norm;
  const std::string& attention = stated_or(run.attention, environment.attention);
  const bool flash = attention != name_of(AttentionKind::kUnfused);
  model.attention_dropout = flash ? 0 : environment.attention_dropout;
  model.hidden_dropout = environment.hidden_dropout;
  return model;
}

Result<Plan> plan_of(const PublishedRun& run, const RunEnvironment& environment) {
  TPSIM_TRY_STATUS(check_stated(run));
  Plan plan;
  plan.degrees = {run.tp, run.pp, run.dp, or_else(run.cp, 1)};
  plan.virtual_stages = virtual_stages_of(run, environment);
  if (plan.virtual_stages > 1) plan.schedule = ScheduleKind::kInterleaved;
  plan.micro_batch = run.micro_batch;
  plan.global_batch = run.global_batch;
  // Without a tensor group there is nothing to shard norms over.
  plan.sequence_parallel =
      run.tp > 1 && run.sequence_parallel.value_or(environment.sequence_parallel);
  TPSIM_TRY(plan.zero, zero_of(run, environment.zero));
  TPSIM_TRY(plan.recompute, recompute_of(run.recompute));
  TPSIM_TRY(plan.attention, attention_of(stated_or(run.attention, environment.attention)));
  TPSIM_TRY(plan.dtype, dtype_of(is_fp8(run) ? "bf16" : run.dtype, environment.dtype));
  TPSIM_TRY(plan.gradient_dtype, gradient_dtype_of(run, environment, plan.dtype));
  for (const auto& [setting, text] : run.settings) {
    TPSIM_TRY(const std::int64_t value, parse_value(row_of(setting), text));
    set(plan, {setting, value});
  }
  plan.stage_layers = even_stage_layers(
      run.layers, chunk_count(plan),
      run.stage_split.find("embedding") != std::string::npos || environment.embedding_counts);
  if (plan.stage_layers.empty()) return cannot("the stages cannot be cut as stated");
  if (run.gpus > 0 && run.gpus != gpu_count(plan)) {
    return cannot(
        fmt::format("{} GPUs are stated, the layout takes {}", run.gpus, gpu_count(plan)));
  }
  return plan;
}

RunLoader::RunLoader(Catalogue catalogue, std::vector<RunEnvironment> environments,
                     RunOverrides overrides)
    : catalogue_(std::move(catalogue)),
      environments_(std::move(environments)),
      overrides_(std::move(overrides)) {
  fallback_.runs_on = overrides_.cluster;
}

const RunEnvironment* RunLoader::environment(const PublishedRun& run) const {
  const RunEnvironment* found = environment_of(environments_, run);
  return found != nullptr || fallback_.runs_on.empty() ? found : &fallback_;
}

Result<const RunLoader::Machine*> RunLoader::machine(const RunEnvironment& environment) {
  const auto chosen = [](const std::string& first, const std::string& second) {
    return first.empty() ? second : first;
  };
  const std::string cluster = chosen(overrides_.cluster, environment.runs_on);
  const std::string stack = chosen(overrides_.stack, environment.stack);
  std::unique_ptr<Machine>& slot = machines_[cluster + "\n" + stack];
  if (slot == nullptr) {
    auto loaded = std::make_unique<Machine>();
    TPSIM_TRY(loaded->cluster, catalogue_.load_cluster(cluster));
    TPSIM_TRY(loaded->stack, catalogue_.load_stack(chosen(stack, loaded->cluster.stack)));
    TPSIM_TRY(loaded->profile,
              catalogue_.load_profile(chosen(overrides_.profile, loaded->cluster.profile)));
    slot = std::move(loaded);
  }
  return static_cast<const Machine*>(slot.get());
}

Result<RunSetup> RunLoader::setup(const PublishedRun& run) {
  const RunEnvironment* where = environment(run);
  if (where == nullptr) {
    return cannot(
        fmt::format("no environment is known for cluster '{}', GPU '{}'; --cluster names one",
                    run.cluster, run.gpu));
  }
  // An environment without a cluster is there to say why its rows are not predicted.
  if (where->runs_on.empty()) return cannot(where->source);
  RunSetup setup;
  TPSIM_TRY(setup.plan, plan_of(run, *where));
  TPSIM_TRY(const Machine* machine, this->machine(*where));
  setup.scenario = {model_of(run, *where), machine->cluster, machine->profile, machine->stack};
  if (is_fp8(run)) {
    if (machine->profile.device.fp8_peak.value() <= 0) {
      return cannot(fmt::format("{} has no rate for fp8", machine->profile.name));
    }
    setup.scenario.stack.fp8_products = true;
  }
  double& spread = setup.scenario.stack.residual_spread;
  const bool foreign = !overrides_.stack.empty() && overrides_.stack != where->stack;
  spread = std::hypot(spread, where->extra_spread, foreign ? kForeignSpread : 0.0);
  return setup;
}

Result<Seconds> measured_step(const PublishedRun& run) {
  if (run.step_s && *run.step_s > 0) return Seconds(*run.step_s);
  const auto tokens = static_cast<double>(run.global_batch * run.seq);
  const auto gpus =
      static_cast<double>(or_else(run.gpus, run.tp * run.pp * run.dp * or_else(run.cp, 1)));
  if (run.tokens_per_s_per_gpu && *run.tokens_per_s_per_gpu > 0) {
    return Seconds(tokens / (*run.tokens_per_s_per_gpu * gpus));
  }
  if (!run.hardware_tflops_per_gpu || *run.hardware_tflops_per_gpu <= 0) {
    return cannot("neither time nor speed is stated");
  }
  // What a source counts as hardware FLOPs is agreed upon for full recompute alone.
  if (run.recompute != name_of(Recompute::kFull)) {
    return cannot("only hardware TFLOPs are stated, and not of full recompute");
  }
  const auto h = static_cast<double>(run.hidden), s = static_cast<double>(run.seq);
  const auto l = static_cast<double>(run.layers);
  const auto v = static_cast<double>(or_else(run.vocab, kUsualVocabulary));
  // Narayanan et al. 2021, arXiv 2104.04473: FLOPs of a step with full recompute.
  const double flops = 96 * tokens * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
  return Seconds(flops / (*run.hardware_tflops_per_gpu * 1e12 * gpus));
}

}  // namespace tpsim
