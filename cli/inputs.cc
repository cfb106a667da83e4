#include "cli/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <thread>

#include "cli/values.h"
#include "core/catalogue.h"
#include "core/plan_json.h"
#include "core/text.h"
#include "sim/machine_cluster.h"

namespace tpsim::cli {
namespace {

constexpr const char* kDefaultCluster = "jean-zay-a100";
constexpr ValueRange kZeroStages{0, 3};
constexpr std::int64_t kMostUneven = 8;
constexpr std::int64_t kMostThreads = 256;

// The option's text, else the plan file's, else the default.
std::string name_for(const Arguments& arguments, Opt opt, const std::string& of_file,
                     const std::string& otherwise) {
  if (arguments.has(opt)) return *arguments[opt];
  return of_file.empty() ? otherwise : of_file;
}

const std::vector<Recompute> kRecomputes = {Recompute::kNone, Recompute::kSelective,
                                            Recompute::kFull, Recompute::kBlocks};
const std::vector<AttentionKind> kAttentions = {AttentionKind::kUnfused, AttentionKind::kFlash};
const std::vector<ScheduleKind> kSchedules = {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB,
                                              ScheduleKind::kInterleaved};
const std::vector<RankOrder> kRankOrders = {RankOrder::kTpDpPp, RankOrder::kTpPpDp};
const std::vector<Offload> kOffloads = {Offload::kNone, Offload::kOptimizer};
const std::vector<DType> kDTypes = {DType::kBFloat16, DType::kFloat16, DType::kFloat32};

// "none,blocks:2-4": kinds in their order, and how many blocks of every chunk; none said: any.
struct RecomputeChoices {
  std::vector<Recompute> kinds;
  std::vector<std::int64_t> blocks;
};
Result<RecomputeChoices> recompute_choices(const Arguments& arguments) {
  RecomputeChoices choices;
  if (!arguments.has(Opt::kRecompute)) return choices;
  std::vector<std::string_view> names;
  for (const Recompute kind : kRecomputes) names.push_back(name_of(kind));
  for (const std::string_view part : listed(*arguments[Opt::kRecompute])) {
    const std::size_t colon = part.find(':');
    const Result<std::size_t> kind = choose("value", part.substr(0, colon), names);
    if (!kind.ok()) return option_error(Opt::kRecompute, kind.error().message, kind.error().hint);
    choices.kinds.push_back(kRecomputes[*kind]);
    if (colon == std::string_view::npos) continue;
    if (choices.kinds.back() != Recompute::kBlocks) {
      return option_error(Opt::kRecompute, fmt::format("'{}' counts no blocks", part),
                          "blocks:3 recomputes three blocks of every chunk");
    }
    TPSIM_TRY_STATUS(append_range(Opt::kRecompute, part.substr(colon + 1), {}, choices.blocks));
  }
  sort_and_unite(choices.kinds);
  sort_and_unite(choices.blocks);
  return choices;
}

Status set_recompute(const Arguments& arguments, Plan& plan) {
  if (!arguments.has(Opt::kRecompute)) return Ok{};
  TPSIM_TRY(const RecomputeChoices choices, recompute_choices(arguments));
  TPSIM_TRY_STATUS(check_single(arguments, Opt::kRecompute,
                                std::max(choices.kinds.size(), choices.blocks.size())));
  plan.recompute = choices.kinds.front();
  plan.recompute_blocks = choices.blocks.empty() ? 0 : choices.blocks.front();
  if (plan.recompute != Recompute::kBlocks || plan.recompute_blocks > 0) return Ok{};
  return option_error(Opt::kRecompute, "'blocks' does not say how many", "write blocks:3");
}

Result<Objective> objective_of(const Arguments& arguments) {
  const std::array<std::string_view, 4> kNames = {
      name_of(Objective::kTime), name_of(Objective::kMemory), name_of(Objective::kCost),
      name_of(Objective::kEnergy)};
  TPSIM_TRY(const std::vector<std::size_t> chosen,
            chosen_names(arguments, Opt::kObjective, kNames));
  TPSIM_TRY_STATUS(check_single(arguments, Opt::kObjective, chosen.size()));
  return chosen.empty() ? Objective::kTime : static_cast<Objective>(chosen.front());
}

Status set_degrees(const Arguments& arguments, Plan& plan) {
  ParallelDegrees& degrees = plan.degrees;
  TPSIM_TRY(degrees.tp, integer_of(arguments, Opt::kTp, degrees.tp));
  TPSIM_TRY(degrees.pp, integer_of(arguments, Opt::kPp, degrees.pp));
  TPSIM_TRY(degrees.dp, integer_of(arguments, Opt::kDp, degrees.dp));
  TPSIM_TRY(degrees.cp, integer_of(arguments, Opt::kCp, degrees.cp));
  TPSIM_TRY(degrees.ep, integer_of(arguments, Opt::kEp, degrees.ep));
  TPSIM_TRY(plan.virtual_stages, integer_of(arguments, Opt::kVirtualStages, plan.virtual_stages));
  TPSIM_TRY(const std::int64_t zero, integer_of(arguments, Opt::kZero, plan.zero, kZeroStages));
  plan.zero = static_cast<int>(zero);
  TPSIM_TRY(plan.micro_batch, integer_of(arguments, Opt::kMicroBatch, plan.micro_batch));
  TPSIM_TRY(plan.global_batch, integer_of(arguments, Opt::kGlobalBatch, plan.global_batch));
  return Ok{};
}

Status set_choices(const Arguments& arguments, Plan& plan) {
  TPSIM_TRY(plan.sequence_parallel,
            switch_of(arguments, Opt::kSequenceParallel, plan.sequence_parallel));
  TPSIM_TRY_STATUS(set_recompute(arguments, plan));
  TPSIM_TRY(plan.attention, choice_of(arguments, Opt::kAttention, plan.attention, kAttentions));
  TPSIM_TRY(plan.schedule, choice_of(arguments, Opt::kSchedule, plan.schedule, kSchedules));
  TPSIM_TRY(plan.dtype, choice_of(arguments, Opt::kDtype, plan.dtype, kDTypes));
  TPSIM_TRY(plan.gradient_dtype,
            choice_of(arguments, Opt::kGradientDtype, plan.gradient_dtype, kDTypes));
  TPSIM_TRY(plan.rank_order, choice_of(arguments, Opt::kRankOrder, plan.rank_order, kRankOrders));
  TPSIM_TRY(plan.offload, choice_of(arguments, Opt::kOffload, plan.offload, kOffloads));
  return Ok{};
}

// Virtual stages alone say which schedule is meant.
ScheduleKind implied_schedule(const Plan& plan) {
  if (plan.virtual_stages > 1) return ScheduleKind::kInterleaved;
  return plan.schedule == ScheduleKind::kInterleaved ? ScheduleKind::kOneFOneB : plan.schedule;
}

bool asks_for_cut(const Arguments& arguments) {
  return arguments.has(Opt::kCountEmbedding) || arguments.has(Opt::kNoCountEmbedding);
}

Status check_cut_options(const Arguments& arguments) {
  if (arguments.has(Opt::kCountEmbedding) && arguments.has(Opt::kNoCountEmbedding)) {
    return option_error(Opt::kCountEmbedding, "contradicts --no-count-embedding", "give one");
  }
  if (arguments.has(Opt::kStageLayers) && asks_for_cut(arguments)) {
    return option_error(Opt::kStageLayers, "leaves nothing to cut for --count-embedding",
                        "give one of the two");
  }
  return Ok{};
}

std::int64_t blocks_of(const Plan& plan) {
  return std::accumulate(plan.stage_layers.begin(), plan.stage_layers.end(), std::int64_t{0});
}

Status set_stages(const Arguments& arguments, const ModelSpec& model, Plan& plan) {
  TPSIM_TRY_STATUS(check_cut_options(arguments));
  const std::int64_t chunks = chunk_count(plan);
  if (arguments.has(Opt::kStageLayers)) {
    TPSIM_TRY(plan.stage_layers, integers_of(arguments, Opt::kStageLayers, {0, 1 << 20}));
    return Ok{};
  }
  if (chunks > model.layers + 2) {
    return Error{ErrorKind::kBadInput,
                 fmt::format("pp x virtual_stages = {} are more than the {} layers of {}", chunks,
                             model.layers, model.name),
                 "--pp", ""};
  }
  if (asks_for_cut(arguments)) {
    const bool counts = arguments.has(Opt::kCountEmbedding);
    plan.stage_layers = even_stage_layers(model.layers, chunks, counts);
    if (plan.stage_layers.empty()) {
      return option_error(
          Opt::kCountEmbedding,
          fmt::format("leaves an end of the {} stages less than no blocks", chunks));
    }
  } else if (static_cast<std::int64_t>(plan.stage_layers.size()) != chunks ||
             arguments.has(Opt::kModel) || blocks_of(plan) != model.layers) {
    plan.stage_layers = default_stage_layers(model.layers, chunks);
  }
  return Ok{};
}

}  // namespace

Result<std::optional<PlanFile>> read_plan_argument(const Arguments& arguments) {
  if (arguments.positional.empty()) return std::optional<PlanFile>();
  TPSIM_TRY(PlanFile file, read_plan(arguments.positional));
  return std::optional<PlanFile>(std::move(file));
}

Result<ModelSpec> load_model(const Arguments& arguments, const Catalogue& catalogue,
                             const std::optional<PlanFile>& file, const KnownInputs& known) {
  ModelSpec model;
  if (arguments.has(Opt::kModel)) {
    TPSIM_TRY(model,
              blaming(catalogue.load_model(*arguments[Opt::kModel]), arguments, Opt::kModel));
  } else if (!known.model.empty()) {
    TPSIM_TRY(model, catalogue.load_model(known.model));
  } else if (file) {
    model = file->model;
  } else {
    return option_error(Opt::kModel, "is missing: which model?",
                        "tpsim list models shows the catalogue; a config.json is fine too");
  }
  TPSIM_TRY(model.seq, integer_of(arguments, Opt::kSeq, known.seq.value_or(model.seq)));
  TPSIM_TRY_STATUS(validate(model));
  return model;
}

namespace {

// The cluster that is meant, by option, by plan file, or because the profile comes with its own
// machine.
Result<std::string> cluster_name(const Arguments& arguments, const Catalogue& catalogue,
                                 const PlanFile& file) {
  const std::string name = name_for(arguments, Opt::kCluster, file.cluster, "");
  if (!name.empty()) return name;
  if (!arguments.has(Opt::kProfile)) return std::string(kDefaultCluster);
  TPSIM_TRY(const Profile profile,
            blaming(catalogue.load_profile(*arguments[Opt::kProfile]), arguments, Opt::kProfile));
  return std::string(profile.machine.devices > 0 ? kThisMachine : kDefaultCluster);
}

// The machine of a profile: the profile has to be named.
Status load_machine(const Arguments& arguments, const Catalogue& catalogue,
                    const std::string& profile, NamedScenario& named) {
  if (profile.empty()) {
    return option_error(Opt::kProfile, "is missing: the cluster this-machine is that of a profile",
                        "tpsim profile -o profile.json writes one");
  }
  named.profile = profile;
  Scenario& scenario = named.scenario;
  TPSIM_TRY(scenario.profile,
            blaming(catalogue.load_profile(named.profile), arguments, Opt::kProfile));
  if (scenario.profile.machine.devices == 0) {
    return option_error(Opt::kProfile, fmt::format("{} knows no machine", scenario.profile.name),
                        "choose a --cluster, or a profile that tpsim profile wrote");
  }
  scenario.cluster = machine_cluster(scenario.profile);
  return Ok{};
}

}  // namespace

Result<NamedScenario> load_scenario(const Arguments& arguments, const std::optional<PlanFile>& file,
                                    const KnownInputs& known) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  const PlanFile names = file.value_or(PlanFile{});
  NamedScenario named;
  Scenario& scenario = named.scenario;
  TPSIM_TRY(scenario.model, load_model(arguments, catalogue, file, known));
  TPSIM_TRY(named.cluster, cluster_name(arguments, catalogue, names));
  // Another cluster than the file's brings its own GPUs and software.
  const bool moved = arguments.has(Opt::kCluster);
  const std::string profile = name_for(arguments, Opt::kProfile, moved ? "" : names.profile, "");
  if (named.cluster == kThisMachine) {
    TPSIM_TRY_STATUS(load_machine(arguments, catalogue, profile, named));
  } else {
    TPSIM_TRY(scenario.cluster,
              blaming(catalogue.load_cluster(named.cluster), arguments, Opt::kCluster));
    named.profile = profile.empty() ? scenario.cluster.profile : profile;
    TPSIM_TRY(scenario.profile, blaming(catalogue.load_profile(named.profile), arguments,
                                        Opt::kProfile, named.cluster));
  }
  named.stack = name_for(arguments, Opt::kStack, moved ? "" : names.stack,
                         known.stack.empty() ? scenario.cluster.stack : known.stack);
  TPSIM_TRY(scenario.stack,
            blaming(catalogue.load_stack(named.stack), arguments, Opt::kStack, named.cluster));
  scenario.stack = stack_as_measured(std::move(scenario.stack), scenario.profile);
  if (named.cluster == kThisMachine) {
    scenario.stack = stack_on_machine(std::move(scenario.stack), scenario.profile);
  }
  return named;
}

Result<NamedScenario> executed_here(NamedScenario named) {
  Scenario& scenario = named.scenario;
  if (scenario.stack.name == own_stack(scenario.profile)) return named;
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  TPSIM_TRY(StackSpec own, catalogue.load_stack(std::string(own_stack(scenario.profile))));
  own = stack_as_measured(std::move(own), scenario.profile);
  if (named.cluster == kThisMachine) own = stack_on_machine(std::move(own), scenario.profile);
  scenario.stack = executed_stack(scenario.stack, std::move(own));
  return named;
}

Result<std::vector<SettingValue>> settings_of(const Arguments& arguments, Opt opt) {
  if (!arguments.has(opt)) return std::vector<SettingValue>();
  Result<std::vector<SettingValue>> values = parse_settings(*arguments[opt]);
  if (!values.ok()) return option_error(opt, values.error().message, values.error().hint);
  return values;
}

Result<int> threads_of(const Arguments& arguments) {
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  TPSIM_TRY(const std::int64_t threads,
            integer_of(arguments, Opt::kThreads, cores, {1, kMostThreads}));
  return static_cast<int>(threads);
}

Result<SearchSpace> search_space(const Arguments& arguments, const ClusterSpec& cluster) {
  if (!arguments.has(Opt::kGpus)) {
    return option_error(
        Opt::kGpus, "is missing: how many GPUs?",
        fmt::format("{} has {}", cluster.name, cluster.nodes * cluster.gpus_per_node));
  }
  SearchSpace space;
  TPSIM_TRY(space.gpus, integer_of(arguments, Opt::kGpus, 1));
  TPSIM_TRY(space.global_batch, integer_of(arguments, Opt::kGlobalBatch, kDefaultGlobalBatch));
  TPSIM_TRY(space.tp, dimension_of(arguments, Opt::kTp));
  TPSIM_TRY(space.pp, dimension_of(arguments, Opt::kPp));
  TPSIM_TRY(space.dp, dimension_of(arguments, Opt::kDp));
  TPSIM_TRY(space.cp, dimension_of(arguments, Opt::kCp));
  TPSIM_TRY(space.ep, dimension_of(arguments, Opt::kEp));
  TPSIM_TRY(space.zero, dimension_of(arguments, Opt::kZero, kZeroStages));
  TPSIM_TRY(space.micro_batch, dimension_of(arguments, Opt::kMicroBatch));
  TPSIM_TRY(space.virtual_stages, dimension_of(arguments, Opt::kVirtualStages));
  TPSIM_TRY(RecomputeChoices recompute, recompute_choices(arguments));
  space.recompute = std::move(recompute.kinds);
  space.recompute_blocks = std::move(recompute.blocks);
  TPSIM_TRY(space.sequence_parallel, switches_of(arguments, Opt::kSequenceParallel));
  TPSIM_TRY(space.attention, choices_of<AttentionKind>(arguments, Opt::kAttention, kAttentions));
  TPSIM_TRY(space.schedule, choices_of<ScheduleKind>(arguments, Opt::kSchedule, kSchedules));
  TPSIM_TRY(space.rank_order, choices_of<RankOrder>(arguments, Opt::kRankOrder, kRankOrders));
  TPSIM_TRY(space.offload, choices_of<Offload>(arguments, Opt::kOffload, kOffloads));
  TPSIM_TRY(space.excluded, settings_of(arguments, Opt::kExclude));
  TPSIM_TRY(space.uneven_ends,
            integer_of(arguments, Opt::kUnevenEnds, space.uneven_ends, {0, kMostUneven}));
  TPSIM_TRY(space.dtype, choice_of(arguments, Opt::kDtype, space.dtype, kDTypes));
  TPSIM_TRY(space.gradient_dtype,
            choice_of(arguments, Opt::kGradientDtype, space.gradient_dtype, kDTypes));
  TPSIM_TRY(space.objective, objective_of(arguments));
  TPSIM_TRY(space.memory_limit, bytes_of(arguments, Opt::kMaxMemory));
  TPSIM_TRY(space.oom_risk, probability_of(arguments, Opt::kMaxOom, space.oom_risk));
  return space;
}

Result<Plan> single_plan(const Arguments& arguments, const ModelSpec& model,
                         const std::optional<PlanFile>& file, const PlanDefaults& defaults) {
  Plan plan;
  plan.recompute = defaults.recompute;
  plan.global_batch = defaults.global_batch.value_or(0);
  if (file) plan = file->plan;
  TPSIM_TRY_STATUS(set_degrees(arguments, plan));
  if (plan.global_batch == 0) plan.global_batch = plan.degrees.dp * plan.micro_batch;
  TPSIM_TRY_STATUS(set_choices(arguments, plan));
  if (!arguments.has(Opt::kSchedule)) plan.schedule = implied_schedule(plan);
  TPSIM_TRY_STATUS(set_stages(arguments, model, plan));
  TPSIM_TRY_STATUS(validate(plan, model));
  return plan;
}

Status check_runs_on(const Plan& plan, std::string_view device) {
  if (plan.offload == Offload::kNone || device != "cuda") return Ok{};
  return option_error(Opt::kOffload, "an offloaded optimizer runs on the CPU device only",
                      "use --device cpu, or --offload none");
}

PlanFile plan_file_of(const NamedScenario& named, const Plan& plan) {
  return {named.scenario.model, named.cluster, named.profile, named.stack, plan};
}

}  // namespace tpsim::cli
