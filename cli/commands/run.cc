// tpsim run: trains a plan with the reference model.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <optional>

#include "app/reports/times_json.h"
#include "cli/commands/commands.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/base/leading_number.h"
#include "core/base/standard_streams.h"
#include "core/json/json_document.h"
#include "core/model/model_support.h"
#include "devices/local_devices.h"
#include "devices/memory_check.h"
#include "ranks/process_signals.h"
#include "reference_model/training/training.h"

namespace tpsim::cli {
namespace {

Result<double> number_of(const Arguments& arguments, Opt opt, double fallback) {
  if (!arguments.has(opt)) return fallback;
  const std::string& text = *arguments[opt];
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value) || *value < 0) {
    return option_error(opt, fmt::format("'{}' is not a number of at least 0", text));
  }
  return *value;
}

Status read_betas(const Arguments& arguments, OptimizerSettings& optimizer) {
  if (!arguments.has("--betas")) return Ok{};
  std::vector<double> betas;
  for (const OptionValue& part : values_of(arguments, "--betas")) {
    betas.push_back(parse_number<double>(text_of(part)).value_or(-1));
  }
  const bool are_valid =
      std::all_of(betas.begin(), betas.end(), [](double beta) { return beta >= 0 && beta < 1; });
  if (betas.size() != 2 || !are_valid) {
    return option_error(
        "--betas",
        fmt::format("'{}' is not a pair of numbers from 0 to below 1", *arguments["--betas"]),
        "write 0.9,0.95");
  }
  optimizer.beta1 = betas[0];
  optimizer.beta2 = betas[1];
  return Ok{};
}

Result<OptimizerSettings> optimizer_of(const Arguments& arguments) {
  OptimizerSettings optimizer;
  TPSIM_TRY(optimizer.rate, number_of(arguments, "--lr", optimizer.rate));
  TPSIM_TRY_STATUS(read_betas(arguments, optimizer));
  TPSIM_TRY(optimizer.momentum, number_of(arguments, "--momentum", optimizer.momentum));
  if (optimizer.momentum >= 1) {
    return option_error("--momentum", "a momentum is at least 0 and below 1", "write 0.95");
  }
  TPSIM_TRY(optimizer.epsilon, number_of(arguments, "--eps", optimizer.epsilon));
  TPSIM_TRY(optimizer.weight_decay, number_of(arguments, "--weight-decay", optimizer.weight_decay));
  TPSIM_TRY(optimizer.clip_norm, number_of(arguments, "--clip-grad", optimizer.clip_norm));
  return optimizer;
}

// Default stack of `run`.
constexpr const char* kStackOfRuns = "reference";

// Opens the token file of --tokens, if given. The file determines the sequence length.
Result<std::optional<TokenSource>> read_tokens(const Arguments& arguments) {
  if (!arguments.has("--tokens")) return std::optional<TokenSource>();
  TPSIM_TRY_STATUS(refuse(arguments, {"--seq"}, "the token file sets the sequence length"));
  Result<TokenSource> tokens = TokenSource::open(*arguments["--tokens"]);
  if (!tokens.ok()) return tokens.error();
  std::optional<TokenSource> read;
  read.emplace(std::move(tokens).value());
  return read;
}

struct Prepared {
  NamedScenario named;
  TrainingRun run;
  TokenSource tokens;
};

// Refuses fp16 with many tokens per step. The gradient of the mean loss is inversely proportional
// to the tokens, and the smallest positive fp16 value is 6e-8.
Status check_digits(const TrainingRun& run) {
  constexpr std::int64_t kMostTokens = 100'000;
  const std::int64_t tokens = run.plan.global_batch * run.model.seq;
  if (run.plan.dtype != DType::kFloat16 || tokens <= kMostTokens) return Ok{};
  return bad_input(fmt::format("fp16 gradients underflow with {} tokens per step: the limit is {}",
                               tokens, kMostTokens),
                   "--dtype", "choose bf16, or a smaller --global-batch");
}

// Returns an error if an option requests an overlap that tpsim cannot execute. The only one it
// executes is the dgrad all-reduce with the wgrad GEMM.
Status check_overlap(const Arguments& arguments, const StackSpec& stack) {
  const Opt option = opt_of(StackPart::kTpOverlap);
  const TpOverlap overlap = stack.parts.tp_overlap;
  const bool is_run = overlap == TpOverlap::kNone || overlap == TpOverlap::kReductions;
  if (is_run || !arguments.has(option)) return Ok{};
  return option_error(
      option, std::string(name_of(overlap)) + " can be predicted, but tpsim cannot execute it",
      "use --tp-overlap reductions or none");
}

// Refuses options that name a cluster or profile, because the run uses this machine. They are valid
// with --rank, which models the other ranks.
Status refuse_machines(const Arguments& arguments) {
  if (arguments.has("--rank")) return Ok{};
  constexpr const char* kWhy =
      "the run uses this machine; only with --rank are the other ranks of a cluster modelled";
  TPSIM_TRY_STATUS(refuse(arguments, {"--cluster", "--node-gbps"}, kWhy));
  // On GPUs the profile is accepted, because it has the fastest algorithms of the ops.
  if (arguments["--device"].value_or("cpu") == "cuda") return Ok{};
  return refuse(arguments, {"--profile"}, kWhy);
}

Result<Prepared> prepare(const Arguments& arguments) {
  TPSIM_TRY_STATUS(refuse_machines(arguments));
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  TPSIM_TRY(std::optional<TokenSource> tokens, read_tokens(arguments));
  TPSIM_TRY(ScenarioRequest request, scenario_request(arguments, file));
  if (!file) request.defaults.stack = kStackOfRuns;
  if (tokens) request.defaults.seq = tokens->seq();
  if (arguments.has("--checkpoint")) {
    TPSIM_TRY_STATUS(refuse(arguments, {"--model"}, "the checkpoint contains the model"));
    request.defaults.model = *arguments["--checkpoint"] + "/config.json";
  }
  TPSIM_TRY(const NamedScenario named, load_scenario(request));
  TrainingRun run;
  run.model = named.scenario.model;
  TPSIM_TRY_STATUS(check_trainable(run.model));
  TPSIM_TRY_STATUS(check_overlap(arguments, named.scenario.stack));
  run.options = named.scenario.stack.training;
  run.time_ops = arguments.has("--json");
  run.record_work = arguments.has("--cuda-graphs");
  run.algorithms = named.scenario.profile.algorithms;
  PlanDefaults defaults = plan_defaults(named.scenario);
  defaults.usual_batch = false;
  TPSIM_TRY(const StatedSettings stated, single_settings(arguments));
  TPSIM_TRY(run.plan, single_plan(stated, run.model, file, defaults));
  TPSIM_TRY_STATUS(check_runs_on(run.plan, arguments["--device"].value_or("cpu")));
  TPSIM_TRY_STATUS(check_digits(run));
  TPSIM_TRY(run.optimizer, optimizer_of(arguments));
  if (run.options.optimizer_kind != OptimizerKind::kMuon) {
    TPSIM_TRY_STATUS(refuse(arguments, {"--momentum"}, "only Muon has it; --betas sets AdamW's"));
  }
  TPSIM_TRY(run.balance.auxiliary_loss, number_of(arguments, "--aux-loss-coeff", 0));
  TPSIM_TRY(run.balance.bias_rate, number_of(arguments, "--bias-update-rate", 0));
  TPSIM_TRY(run.steps, integer_of(arguments, "--steps", 10));
  TPSIM_TRY(const std::int64_t seed, integer_of(arguments, "--seed", 1, {0, 1 << 30}));
  run.seed = static_cast<std::uint64_t>(seed);
  if (arguments.has("--checkpoint")) run.checkpoint = *arguments["--checkpoint"];
  if (arguments.has("--state")) run.state_folder = *arguments["--state"];
  if (arguments.has("--dump-gradients")) run.dump_gradients = *arguments["--dump-gradients"];
  TPSIM_TRY(run.save_every, integer_of(arguments, "--save-every", 0, {0, 1 << 30}));
  if (run.save_every > 0 && run.state_folder.empty()) {
    return option_error("--save-every", "needs a folder to save to", "give --state DIR");
  }
  if (!tokens) tokens = TokenSource::synthetic(run.model.seq, run.model.vocab, run.seed);
  return Prepared{named, run, *std::move(tokens)};
}

double tokens_per_s(const TrainingRun& run, const StepReport& report) {
  return static_cast<double>(run.plan.global_batch * run.model.seq) / report.seconds;
}

double gflops_per_rank(const TrainingRun& run, const StepReport& report) {
  ModelSpec executed = run.model;
  executed.ends.prediction_layers = 0;  // tpsim run does not execute MTP layers
  return model_flops_per_step(executed, run.plan.global_batch).value() / report.seconds /
         static_cast<double>(gpu_count(run.plan)) * 1e-9;
}

Status print_step(const TrainingRun& run, const StepReport& report) {
  return print(fmt::format(
      "{:>6} {:>11.6f} {:>10.4f} {:>10} {:>11.0f} {:>9.2f} {:>11}\n", report.step, report.loss,
      report.grad_norm, to_string(Seconds(report.seconds)), tokens_per_s(run, report),
      gflops_per_rank(run, report), to_string(Bytes(static_cast<double>(report.peak_bytes)))));
}

// Prints the JSON report step by step, so that an interrupted run has printed its completed steps.
class JsonPrinter {
 public:
  Status begin(const TrainingRun& run) {
    return print(json_.begin({{"version", "tpsim-run-report/1"},
                              {"model", run.model.name},
                              {"plan", short_name(run.plan)},
                              {"dtype", name_of(run.plan.dtype)},
                              {"ranks", gpu_count(run.plan)}},
                             "steps"));
  }
  Status step(const TrainingRun& run, const StepReport& report) {
    return print(json_.item({{"step", report.step},
                             {"loss", report.loss},
                             {"grad_norm", report.grad_norm},
                             {"step_s", report.seconds},
                             {"tokens_per_s", tokens_per_s(run, report)},
                             {"model_gflops_per_rank", gflops_per_rank(run, report)},
                             {"peak_memory_mib", static_cast<double>(report.peak_bytes) / kMiB},
                             {"used_memory_mib", static_cast<double>(report.used_bytes) / kMiB}}));
  }
  Status end(bool completed, const StepTimes& times) {
    return print(json_.end({{"completed", completed},
                            {"ops", ops_json(times.ops)},
                            {"collectives", collectives_json(times.collectives)}}));
  }

 private:
  GrowingJson json_;
};

Status print_heading(const TrainingRun& run, bool gpus) {
  return print(fmt::format(
      "{}, {}, on {} {}{}{}, {}\n\n{:>6} {:>11} {:>10} {:>10} {:>11} {:>9} {:>11}\n",
      run.model.name, short_name(run.plan), gpu_count(run.plan), gpus ? "GPU" : "rank",
      gpu_count(run.plan) == 1 ? "" : "s", gpus ? "" : " of this CPU", name_of(run.plan.dtype),
      "step", "loss", "grad norm", "time", "tokens/s", "GFLOP/s*", "memory**"));
}

void print_note(const std::string& note) { say(fmt::format("tpsim: {}\n", printable(note))); }

// Disables the progress bar if JSON is printed on a terminal, because the incomplete last line of
// the JSON would mix with the bar.
Terminal beside(Terminal terminal, bool json) {
  if (json && ::isatty(STDOUT_FILENO) == 1) terminal.progress = false;
  return terminal;
}

Error stopped_error(const TrainingRun& run, std::int64_t done) {
  const bool interrupted = stop_signal() == SIGINT;
  std::string saved;
  if (run.save_every > 0) {
    saved = fmt::format("the state is saved in {}; the same command continues from there",
                        run.state_folder.string());
  }
  return Error{interrupted ? ErrorKind::kInterrupted : ErrorKind::kTerminated,
               fmt::format("stopped by {} after step {} of {}", interrupted ? "SIGINT" : "SIGTERM",
                           done, run.steps),
               "", std::move(saved)};
}

constexpr const char* kRandomTokens =
    "the tokens are random, so the loss cannot fall; --tokens FILE trains on your data";

}  // namespace

Result<Answer> run_training(const Arguments& arguments, const Terminal& terminal) {
  TPSIM_TRY(const Prepared prepared, prepare(arguments));
  const TrainingRun& run = prepared.run;
  if (arguments.has("--rank")) {
    return run_rank_alone(arguments, terminal, prepared.named, run, prepared.tokens);
  }
  const std::string device = arguments["--device"].value_or("cpu");
  TPSIM_TRY(const LocalDevices devices, local_devices(device));
  TPSIM_TRY_STATUS(check_started(devices.ranks, run.plan));
  TPSIM_TRY(const MemoryCheck memory, MemoryCheck::of(prepared.named, devices));
  TPSIM_TRY_STATUS(memory.threads(run.plan));
  const bool speaks = devices.ranks.speaks;
  const bool json = arguments.has("--json");
  JsonPrinter printer;
  catch_stop_signals();
  ProgressBar progress(beside(terminal, json), "training");
  std::int64_t done = 0;
  Status printed = Ok{};
  StepTimesSum times;
  std::atomic<bool> is_heard = true;  // false after printing failed; read by all ranks
  const auto on_step = [&](const StepReport& report) {
    done = report.step;
    times.add(report.times);
    progress.clear();
    const Status status = json ? printer.step(run, report) : print_step(run, report);
    if (!status) {
      printed = status;
      is_heard = false;
    }
    progress.show(static_cast<double>(done) / static_cast<double>(run.steps));
  };
  const bool quiet = arguments.has("--quiet");
  const bool says_random = !json && !quiet && !arguments.has("--tokens");
  const TrainingHooks hooks{.on_note =
                                [&](const std::string& note) {
                                  if (!quiet) print_note(note);
                                },
                            .should_stop = [&] { return stop_signal() != 0 || !is_heard; }};
  const auto ranks = static_cast<int>(gpu_count(run.plan));
  const DeviceRankBody body = [&](World& world, Device& own) -> Status {
    TPSIM_TRY_STATUS(memory.launched(world, own, run.plan));
    if (world.rank() == 0) {
      TPSIM_TRY_STATUS(json ? printer.begin(run) : print_heading(run, device == "cuda"));
      if (says_random) print_note(kRandomTokens);
    }
    const auto report_first = [&](const StepReport& report) {
      if (world.rank() == 0) on_step(report);
    };
    return train(world, own, run, prepared.tokens, report_first, hooks);
  };
  TPSIM_TRY_STATUS(run_ranks(devices, ranks, body));
  if (!speaks) return Answer{};
  if (!printed.ok()) return printed.error();
  const bool stopped = done > 0 && done < run.steps;
  Answer answer;
  if (stopped) answer.outcome = stopped_error(run, done);
  if (json) {
    TPSIM_TRY_STATUS(printer.end(!stopped, times.times()));
  } else {
    answer.text = "\n* model FLOPs per rank and second  ** peak allocated by the first rank\n";
    answer.is_prose = false;
  }
  return answer;
}

}  // namespace tpsim::cli
