#include "reference_model/training/training.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>

#include "core/model/model_support.h"
#include "core/plan/rank_layout.h"
#include "kernels/timing_recorder.h"
#include "reference_model/layers/expert_balance.h"
#include "reference_model/parallel/delayed_scales.h"
#include "reference_model/parallel/process_groups.h"
#include "reference_model/state/rank_state.h"
#include "reference_model/training/training_facts.h"

namespace tpsim {
namespace {

Status check_run(const World& world, const TrainingRun& run, const TokenSource& tokens) {
  TPSIM_TRY_STATUS(validate(run.model));
  TPSIM_TRY_STATUS(check_trainable(run.model));
  TPSIM_TRY_STATUS(validate(run.plan, run.model));
  if (run.model.attention.qk_norm == QkNorm::kWidth && run.plan.degrees.tp > 1) {
    return Error{ErrorKind::kMissing,
                 "tpsim cannot train q/k norms over all heads at once with tp > 1 yet", "",
                 "choose --tp 1"};
  }
  const OptimizerRow& optimizer = row_of(run.options.optimizer_kind);
  if (!optimizer.is_executed) {
    return bad_input(fmt::format("tpsim cannot train with {} yet", optimizer.title), "",
                     "use --optimizer adamw or muon; simulate predicts the others");
  }
  if (offloads_optimizer(run.plan) && !optimizer.can_offload) {
    return bad_input(fmt::format("tpsim cannot offload the state of {} yet", optimizer.title), "",
                     "use --offload none, or --optimizer adamw");
  }
  if (gpu_count(run.plan) != world.size()) {
    return bad_input(fmt::format("the plan needs {} ranks, but {} were started",
                                 gpu_count(run.plan), world.size()));
  }
  if (tokens.seq() != run.model.seq) {
    return bad_input(fmt::format("the tokens have sequences of length {}, but the model has seq {}",
                                 tokens.seq(), run.model.seq));
  }
  if (tokens.batch() > 0 && tokens.batch() < run.plan.global_batch) {
    return bad_input(
        fmt::format("the token file has {} samples per step, but the global batch is {}",
                    tokens.batch(), run.plan.global_batch),
        "", "choose a smaller --global-batch");
  }
  if (tokens.largest() >= run.model.vocab) {
    return bad_input(fmt::format("token id {} is outside the model's vocabulary of {} tokens",
                                 tokens.largest(), run.model.vocab));
  }
  return Ok{};
}

// Error if tpsim predicts the fine-tuning of a run, but cannot train it.
Status check_finetune(const TrainingRun& run) {
  const Finetune& finetune = run.options.finetune;
  if (!finetune.adapts) return Ok{};
  const char* lacking = finetune.quantizes_base() ? "frozen weights of few bits"
                        : finetune.dropout > 0    ? "dropout of adapters"
                        : has_experts(run.model)  ? "adapters of models with experts"
                                                  : nullptr;
  const std::string_view part = unadapted_part(run.model);
  if (lacking == nullptr && part.empty()) return Ok{};
  return Error{ErrorKind::kMissing,
               lacking != nullptr ? fmt::format("tpsim cannot train {} yet", lacking)
                                  : fmt::format("tpsim cannot train adapters of {} yet", part),
               "",
               "tpsim simulate predicts the run; --finetune lora --lora-dropout 0 of dense "
               "models can be trained"};
}

bool counts_experts(const TrainingRun& run) {
  return run.count_experts || run.balance.bias_rate > 0;
}

Status check_balance(const TrainingRun& run) {
  const ExpertShape& experts = run.model.experts;
  if (run.balance.auxiliary_loss > 0 && !has_experts(run.model)) {
    return bad_input("an auxiliary loss needs experts, but the model has none", "",
                     "remove --aux-loss-coeff");
  }
  if (run.balance.bias_rate > 0 && !experts.router.correction_bias) {
    return bad_input("the model's router has no expert biases to update", "",
                     "remove --bias-update-rate, or balance with --aux-loss-coeff");
  }
  return Ok{};
}

// Error if a micro-batch cannot be captured as a CUDA graph. A replay repeats the captured kernels
// with the same shapes, and no host code runs between them.
Status check_recordable(const TrainingRun& run) {
  const ModelSpec& model = run.model;
  const char* obstacle = nullptr;
  if (gpu_count(run.plan) > 1) {
    obstacle = "it has collectives or P2P between ranks";
  } else if (model.hidden_dropout > 0 || model.attention_dropout > 0) {
    obstacle = "dropout needs other random numbers in each replay";
  } else if (!fuses_accumulation(run.options)) {
    obstacle = "gradients accumulate outside the GEMMs (needs --gradient-accumulation fused)";
  } else if (!alternates(pipeline_shape(run.plan))) {
    obstacle = "several micro-batches are in flight at once (use --schedule 1f1b)";
  } else if (run.balance.auxiliary_loss > 0 || counts_experts(run)) {
    obstacle = "the host counts the tokens of each expert";
  } else if (has_experts(model) && model.experts.dropless) {
    obstacle = "the host computes the buffer sizes of dropless experts";
  } else if (run.plan.precision == Precision::kFp8) {
    obstacle =
        "fp8 uses scales of earlier steps, which the first step lacks (use --precision "
        "fp8-current)";
  } else if (run.time_ops) {
    obstacle = "--json, --rank and validate time single ops";
  }
  if (obstacle == nullptr) return Ok{};
  return bad_input(
      fmt::format("a micro-batch of this plan cannot be captured as a CUDA graph: {}", obstacle),
      "--cuda-graphs", "remove the option");
}

void tell(const SavedState& state, const RunFacts& run, std::int64_t steps,
          const TrainingHooks& hooks) {
  for (const std::string& damaged : state.passed_over) {
    hooks.on_note("a damaged saved state is skipped: " + damaged);
  }
  if (state.step >= steps) {
    hooks.on_note(fmt::format("{} already contains all {} steps; nothing is left to train",
                              state.path.string(), steps));
  } else if (state.step > 0) {
    hooks.on_note(fmt::format("training resumes from {}", state.path.string()));
  }
  if (state.step == 0) return;
  if (state.run.empty()) {
    hooks.on_note(
        "an older tpsim saved this state without the settings of its run, so they cannot be "
        "compared");
    return;
  }
  const std::vector<std::string> others = differences(state.run, run);
  if (others.empty()) return;
  hooks.on_note(fmt::format("this run differs from the run that saved the state: {}",
                            fmt::join(others, "; ")));
}

Error at_folder(Error error, const std::filesystem::path& path) {
  error.where = path.string();
  return error;
}

// Sets the weights from a saved state, a checkpoint or the seed. Returns the step to resume from.
Result<std::int64_t> start_from(RankModel& model, const TrainingRun& run, const RunFacts& facts,
                                const TrainingHooks& hooks) {
  model.materialize(run.seed);
  SavedState state;
  if (!run.state_folder.empty()) {
    TPSIM_TRY(state, agreed_state(model, run.state_folder));
  }
  const bool is_first = global_rank(model.context().plan, model.context().at) == 0;
  // Only the first rank has the saved run settings.
  Status same_model = check_model(state.run, facts);
  if (!same_model.ok()) same_model = at_folder(same_model.error(), state.path);
  TPSIM_TRY_STATUS(agree(model, same_model));
  if (is_first && hooks.on_note) tell(state, facts, run.steps, hooks);
  const auto load = [&]() -> Status {
    // Saved states have no frozen weights.
    if (!run.checkpoint.empty() && (state.step == 0 || run.options.finetune.freezes())) {
      TPSIM_TRY(const BlockReader reader, BlockReader::open(run.checkpoint));
      TPSIM_TRY_STATUS(load_weights(model, reader));
    }
    return state.step > 0 ? load_state(model, state.path) : Status(Ok{});
  };
  TPSIM_TRY_STATUS(agree(model, load()));
  return state.step;
}

// Whether any rank wants to stop. A signal reaches ranks at different times. The result is equal on
// all ranks, so that all stop after the same step.
bool any_rank_stops(RankModel& model, const TrainingHooks& hooks) {
  if (!hooks.should_stop) return false;
  return greatest_over_world(model.context(), hooks.should_stop() ? 1.0F : 0.0F,
                             {ModelPart::kCoordination, "stop"}) > 0;
}

// Locks the state folder on the first rank of a run that saves.
Result<std::optional<StateLock>> lock_state(RankModel& model, const TrainingRun& run) {
  std::optional<StateLock> lock;
  const bool holds =
      run.save_every > 0 && global_rank(model.context().plan, model.context().at) == 0;
  const auto acquire = [&]() -> Status {
    if (!holds) return Ok{};
    TPSIM_TRY(StateLock acquired, StateLock::acquire(run.state_folder));
    lock.emplace(std::move(acquired));
    return Ok{};
  };
  TPSIM_TRY_STATUS(agree(model, acquire()));
  return lock;
}

class Trainer {
 public:
  Trainer(RankModel& model, const TrainingRun& run, const TokenSource& tokens, ExpertLoads& loads,
          DelayedScales& scales)
      : model_(model), run_(run), tokens_(tokens), loads_(loads), scales_(scales) {
    if (run.time_ops) timer_.emplace(model.context().device);
  }

  Result<StepReport> run_step(std::int64_t step) {
    if (timer_) timer_->clear();
    const auto start = std::chrono::steady_clock::now();
    model_.run_pipeline([&](std::int64_t micro_batch) {
      return micro_batch_samples(tokens_, run_.plan,
                                 {step - 1, micro_batch, model_.context().at.dp});
    });
    model_.reduce_gradients();
    const double load = balance_experts();
    if (model_.context().scales != nullptr) scales_.end_step(model_.context());
    if (step == 1 && !run_.dump_gradients.empty()) {
      TPSIM_TRY_STATUS(write_merged(model_, gather_gradients(model_), run_.dump_gradients));
    }
    const StepResult result = model_.update(step);
    model_.context().device.synchronize();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    return StepReport{step,
                      result.loss,
                      result.grad_norm,
                      load,
                      elapsed.count(),
                      model_.context().device.peak_allocated_bytes(),
                      model_.context().device.used_bytes(),
                      timer_ ? timer_->take() : StepTimes(),
                      timer_ ? timer_->share_on_core() : 1};
  }

 private:
  // Returns the load of the step's busiest expert over all ranks, and updates the biases.
  double balance_experts() {
    const RankContext& context = model_.context();
    if (context.loads == nullptr) return 0;
    loads_.reduce(context);
    if (run_.balance.bias_rate > 0) {
      loads_.correct(context.device, model_.store(), run_.balance.bias_rate);
    }
    const auto own = static_cast<float>(loads_.imbalance());
    loads_.clear();
    return static_cast<double>(
        greatest_over_world(context, own, {ModelPart::kCoordination, "experts.load"}));
  }

  RankModel& model_;
  const TrainingRun& run_;
  const TokenSource& tokens_;
  ExpertLoads& loads_;
  DelayedScales& scales_;
  std::optional<TimingRecorder> timer_;
};

}  // namespace

Status check_device(const Device& device, const ModelSpec& model, const Plan& plan) {
  if (const std::string reason = device.refusal_reason(plan.precision); !reason.empty()) {
    return Error{ErrorKind::kMissing,
                 fmt::format("precision={}: {}", name_of(plan.precision), reason), model.name,
                 "use the CPU: --device cpu"};
  }
  if (device.computes_all()) return Ok{};
  const char* lacking = nullptr;
  for (std::int64_t i = 0; i < block_kind_count(model); ++i) {
    const BlockShape block = block_of_kind(model, i);
    const AttentionShape& attention = block.attention;
    if (attention.score.sinks) lacking = "attention sinks";
    if (attention.latent.kv_rank > 0) lacking = "latent attention";
    if (block.experts.router != RouterShape{}) lacking = "this kind of router";
  }
  if (model.mlp != MlpKind::kGelu && model.mlp != MlpKind::kSwiglu) lacking = "this activation";
  if (lacking == nullptr) return Ok{};
  return Error{ErrorKind::kMissing, fmt::format("tpsim has no GPU kernels for {} yet", lacking),
               model.name, "use the CPU: --device cpu"};
}

Status train(World& world, Device& device, const TrainingRun& run, const TokenSource& tokens,
             const std::function<void(const StepReport&)>& on_step, const TrainingHooks& hooks) {
  TPSIM_TRY_STATUS(check_run(world, run, tokens));
  TPSIM_TRY_STATUS(check_finetune(run));
  TPSIM_TRY_STATUS(check_device(device, run.model, run.plan));
  if (run.options.finetune.freezes() && !device.computes_all()) {
    return Error{ErrorKind::kMissing, "tpsim has no GPU kernels for frozen norms yet",
                 run.model.name, "use the CPU: --device cpu"};
  }
  TPSIM_TRY_STATUS(check_balance(run));
  device.use_algorithms(run.algorithms);
  if (run.record_work) {
    TPSIM_TRY_STATUS(check_recordable(run));
    TPSIM_TRY_STATUS(device.start_recording());
  }
  const OwnedGroups owned = form_groups(world, device, run.plan, run.options);
  ExpertLoads loads;
  DelayedScales scales;
  RankModel model(
      RankContext{device, owned.groups(), coordinates(run.plan, world.rank()), run.model, run.plan,
                  run.options, run.balance, counts_experts(run) ? &loads : nullptr,
                  run.plan.precision == Precision::kFp8 ? &scales : nullptr},
      run.optimizer);
  TPSIM_TRY(const std::optional<StateLock> lock, lock_state(model, run));
  const RunFacts facts = run.state_folder.empty() ? RunFacts() : facts_of(run, tokens);
  TPSIM_TRY(const std::int64_t done, start_from(model, run, facts, hooks));
  if (model.context().scales != nullptr) scales.attach(device, model.store());
  Trainer trainer(model, run, tokens, loads, scales);
  bool stops = false;
  for (std::int64_t step = done + 1; step <= run.steps && !stops; ++step) {
    TPSIM_TRY(const StepReport report, trainer.run_step(step));
    on_step(report);
    stops = any_rank_stops(model, hooks);
    const bool is_due =
        run.save_every > 0 && (step % run.save_every == 0 || step == run.steps || stops);
    if (is_due) TPSIM_TRY_STATUS(save_state(model, step, run.state_folder, facts));
  }
  return Ok{};
}

}  // namespace tpsim
