#include "devices/measured_profile.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/base/date.h"
#include "core/model/model_support.h"
#include "core/scenario/catalogue.h"
#include "costs/machine_cluster.h"
#include "devices/local_devices.h"
#include "devices/ops_to_profile.h"
#include "devices/reserved_memory.h"
#include "plans/search/enumerate.h"
#include "profiler/device_fit.h"
#include "profiler/profiler.h"
#include "ranks/gathered.h"
#include "ranks/launcher.h"
#include "reference_model/training/training.h"

namespace tpsim::app {
namespace {

// Maximum share of the free memory for the ranks of a plan whose whole step is timed.
constexpr double kMemoryShare = 0.5;
// Maximum memory of these ranks with --quick.
constexpr Bytes kQuickMemory(kGiB);

// Plans to measure, all of one model. Without a model only the device is measured, and `plans` is
// empty.
struct Subject {
  ModelSpec model;
  TrainingOptions options;
  std::vector<Plan> plans;
  std::int64_t ranks = 1;
};

// Returns a scenario for enumerating plans. Its profile describes only the machine, without any
// measured time.
Result<Scenario> machine_scenario(const ScenarioRequest& request, const LocalDevices& devices) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  Scenario scenario;
  TPSIM_TRY(scenario.model, load_model(request, catalogue));
  TPSIM_TRY_STATUS(check_computable(scenario.model));
  scenario.profile.machine = devices.machine;
  scenario.profile.device = devices.facts;
  scenario.profile.device.memory_bandwidth = BytesPerSecond(1);
  scenario.cluster = machine_cluster(scenario.profile);
  std::string stack = request.stack;
  if (stack.empty() && request.file) stack = request.file->stack;
  if (stack.empty()) stack = scenario.cluster.stack;
  TPSIM_TRY(scenario.stack, catalogue.load_stack(stack));
  return scenario;
}

// Removes plans that the device cannot run. Returns the error of the first plan if none is left.
Status keep_runnable(std::string_view device, std::vector<Plan>& plans) {
  const Status first = check_runs_on(plans.front(), device);
  std::erase_if(plans, [&](const Plan& plan) { return !check_runs_on(plan, device).ok(); });
  return plans.empty() ? first : Status(Ok{});
}

Result<Subject> subject_of(const ProfilingRequest& request, const LocalDevices& devices) {
  const std::optional<PlanFile>& file = request.scenario.file;
  Subject subject;
  subject.ranks = devices.ranks.started > 0 ? devices.ranks.started : devices.machine.devices;
  if (!file && request.scenario.model.empty()) return subject;
  TPSIM_TRY(const Scenario scenario, machine_scenario(request.scenario, devices));
  subject.model = scenario.model;
  subject.options = scenario.stack.training;
  if (file) {
    TPSIM_TRY(const Plan plan,
              single_plan(request.settings, scenario.model, file, plan_defaults(scenario)));
    subject.plans = {plan};
    subject.ranks = gpu_count(plan);
  } else {
    TPSIM_TRY(const SearchSpace space, search_space(request.search, scenario, file));
    enumerate_plans(scenario, space, [&](const Plan& plan) { subject.plans.push_back(plan); });
    subject.ranks = space.gpus;
    if (subject.plans.empty()) {
      return bad_input("no plan with these options is legal", "",
                       "tpsim plan with the same options shows why");
    }
  }
  TPSIM_TRY_STATUS(keep_runnable(request.device, subject.plans));
  return subject;
}

std::vector<CollectiveNeed> collective_needs(const StepTimes& work, const Subject& subject,
                                             std::int64_t largest_of_all) {
  std::map<std::pair<CollectiveKind, std::int64_t>, std::int64_t> largest;
  std::set<CollectiveNeed> needs;
  for (const CollectiveTime& call : work.collectives) {
    const CollectiveRecord& r = call.record;
    if (r.kind == CollectiveKind::kReceive) continue;
    const std::int64_t ranks = r.kind == CollectiveKind::kSend ? 2 : r.ranks;
    needs.insert({r.kind, ranks, r.bytes});
    std::int64_t& most = largest[{r.kind, ranks}];
    most = std::max(most, r.bytes);
  }
  for (std::int64_t ranks = 2; largest_of_all > 0 && ranks <= subject.ranks; ranks *= 2) {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
          CollectiveKind::kBroadcast, CollectiveKind::kAllToAll, CollectiveKind::kSend}) {
      const std::int64_t members = kind == CollectiveKind::kSend ? 2 : ranks;
      largest[{kind, members}] = largest_of_all;
      needs.insert({kind, members, largest_of_all});
    }
  }
  for (const auto& [call, most] : largest) {
    for (const std::int64_t bytes : size_ladder(most)) {
      needs.insert({call.first, call.second, bytes});
    }
  }
  return {needs.begin(), needs.end()};
}

// Returns the training steps in which ops are timed on CPUs. Ops on a CPU are timed inside complete
// steps because their times depend on the data that earlier ops leave in the caches. Each step runs
// once for every rank with a distinct program.
std::vector<InStepRun> in_step_runs_of(const Subject& subject, std::int64_t world, Bytes memory) {
  const auto fits = [&](const TimedPlan& step) {
    Bytes most;  // of the first or the last stage
    for (const std::int64_t rank : {std::int64_t{0}, gpu_count(step.plan) - 1}) {
      most = std::max(most, host_memory_of(step.model, step.plan, subject.options, rank));
    }
    return static_cast<double>(world) * most <= memory;
  };
  std::vector<InStepRun> all;
  for (const TimedPlan& step : plans_to_time(subject.model, subject.plans, fits)) {
    const std::vector<std::int64_t> ranks = distinct_ranks(step.plan);
    const std::int64_t turns = static_cast<std::int64_t>(ranks.size() + world - 1) / world * world;
    for (std::int64_t i = 0; i < turns; ++i) {
      all.push_back({step.model, step.plan, subject.options,
                     ranks[static_cast<std::size_t>(i) % ranks.size()]});
    }
  }
  return all;
}

// Returns the ops that --quick times, in order. Probes of the device are first. The others cover
// all durations coarsely and then ever more finely, because ops between two timed ones are
// interpolated.
std::vector<OpTime> quick_ops(std::vector<OpTime> ops, const std::set<OpKey>& probes) {
  constexpr double kFlopsOfByte = 5, kMostFlops = 2e10;  // rough: seconds on a CPU
  const auto cost = [](const OpTime& op) {
    return op.record.flops + kFlopsOfByte * static_cast<double>(op.record.bytes);
  };
  std::erase_if(ops, [&](const OpTime& op) { return cost(op) > kMostFlops; });
  std::stable_sort(ops.begin(), ops.end(),
                   [&](const OpTime& a, const OpTime& b) { return cost(a) < cost(b); });
  std::vector<OpTime> ordered(ops.begin(), ops.begin() + (ops.empty() ? 0 : 1));
  for (std::size_t stride = std::bit_ceil(ops.size()); stride > 0; stride /= 2) {
    for (std::size_t i = stride; i < ops.size(); i += 2 * stride) ordered.push_back(ops[i]);
  }
  std::stable_partition(ordered.begin(), ordered.end(),
                        [&](const OpTime& op) { return probes.contains(op.record.key); });
  return ordered;
}

std::int64_t tokens_of(const InStepRun& run) {
  return run.plan.global_batch / run.plan.degrees.dp * run.model.seq;
}

ProfileRequest request_of(const ProfilingRequest& asked, const Subject& subject,
                          const StepTimes& work, const std::set<OpKey>& probes,
                          const LocalDevices& devices, std::int64_t world) {
  ProfileRequest request;
  for (const OpTime& op : asked.is_quick ? quick_ops(work.ops, probes) : work.ops) {
    request.ops.push_back(op.record.key);
  }
  constexpr std::int64_t kLargest = 64 << 20, kLargestOnGpus = 1 << 30;
  const std::int64_t largest = devices.facts.asynchronous ? kLargestOnGpus : kLargest;
  request.collectives = collective_needs(work, subject, asked.all_collectives ? largest : 0);
  request.sustained = devices.facts.asynchronous;
  if (!devices.facts.asynchronous) {
    const Bytes memory = kMemoryShare * devices.free_memory(nullptr).bytes;
    request.in_step_runs =
        in_step_runs_of(subject, world, asked.is_quick ? std::min(memory, kQuickMemory) : memory);
  }
  // Rotating operand sets of this multiple of the cache size evicts operands before each op.
  constexpr double kCachesFull = 4;
  request.op_timer.rotated = std::max(request.op_timer.rotated, kCachesFull * devices.cache);
  request.collective_timer.rotated = request.op_timer.rotated;
  if (asked.is_quick) {
    // One budget each for ops in their step, single ops, and collectives. Short work is first.
    constexpr Seconds kBudget(12);
    request.budget = kBudget;
    std::stable_sort(
        request.in_step_runs.begin(), request.in_step_runs.end(),
        [](const InStepRun& a, const InStepRun& b) { return tokens_of(a) < tokens_of(b); });
    request.op_timer.budget = kBudget / static_cast<double>(request.ops.size());
    request.op_timer.making = request.op_timer.soak = request.op_timer.budget;
    request.collective_timer.budget =
        kBudget / static_cast<double>(std::max<std::size_t>(1, request.collectives.size()));
    request.in_step = {.least_steps = 2, .most_steps = 4};
  }
  return request;
}

// Name of the NVLink domain. Hosts with the same name, such as trays of an NVL72, count as one
// node. Set by the user, since libraries do not report the domain.
constexpr const char* kDomainVariable = "TPSIM_NVLINK_DOMAIN";

// Returns an error if the ranks run on several nodes. The collectives of a profile do not
// distinguish links within a node from links between nodes.
Status check_one_node(World& ranks, Device& device) {
  utsname names{};
  ::uname(&names);
  const std::string own = process_environment(kDomainVariable).value_or(names.nodename);
  const std::vector<std::string> hosts = gathered(ranks, device, own);
  for (const std::string& host : hosts) {
    if (host == hosts.front()) continue;
    return bad_input(
        fmt::format("ranks were started on several hosts: {} and {}", hosts.front(), host),
        "profile",
        fmt::format(
            "a profile covers one node: start all ranks on one node, or set {} to the same name on "
            "all hosts of one NVLink domain; the cluster file describes links between nodes",
            kDomainVariable));
  }
  return Ok{};
}

// Samples of all ranks, and properties of the first rank's device.
struct Findings {
  Samples samples;
  RuntimeFacts runtime;
  AlgorithmChoices algorithms;
  std::vector<std::string> notes;
};

// Records clocks, power and temperature while ops are timed. `soaked`: the device has reached its
// sustained clock.
class Gauge {
 public:
  explicit Gauge(const LocalDevices& devices) : devices_(devices) {}
  void read(bool soaked) {
    // Minimum time between readings, because a reading takes longer than a short op.
    constexpr std::chrono::milliseconds kPause(20);
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kPause) return;
    last_ = now;
    const std::optional<DeviceState> state = devices_.state ? devices_.state() : std::nullopt;
    if (!state) return;
    (soaked ? mhz_soaked_ : mhz_).push_back(state->mhz);
    if (!soaked) return;
    watts_.push_back(state->watts);
    celsius_.push_back(state->celsius);
  }
  void fill(RuntimeFacts& facts) const {
    const auto median = [](const std::vector<double>& numbers) {
      return numbers.empty() ? 0.0 : median_and_spread(numbers).median;
    };
    facts.burst_mhz = median(mhz_);
    facts.sustained_mhz = median(mhz_soaked_);
    facts.sustained_watts = median(watts_);
    facts.sustained_celsius = median(celsius_);
  }

 private:
  const LocalDevices& devices_;
  std::chrono::steady_clock::time_point last_;
  std::vector<double> mhz_, mhz_soaked_, watts_, celsius_;
};

std::function<void(double)> part_of(const ProfilingProgress& progress, const char* what) {
  return [progress, what](double share) {
    if (progress) progress(what, share);
  };
}

// Executes the request on all ranks and collects their samples on the first rank. kMissing if the
// device cannot run one of the plans.
Result<Findings> measured(const LocalDevices& devices, const Subject& subject,
                          ProfileRequest request, std::int64_t world,
                          const ProfilingProgress& progress) {
  Findings found;
  Gauge gauge(devices);
  if (devices.state) request.op_timer.at_work = [&](bool soaked) { gauge.read(soaked); };
  const DeviceRankBody body = [&](World& ranks, Device& device) -> Status {
    const bool first = ranks.rank() == 0;
    TPSIM_TRY_STATUS(check_one_node(ranks, device));
    for (const Plan& plan : subject.plans) {
      TPSIM_TRY_STATUS(check_device(device, subject.model, plan));
    }
    if (first) {
      TPSIM_TRY_STATUS(check_ops(device, request.ops, part_of(progress, "checking")));
    }
    const std::unique_ptr<LoadMeter> meter = devices.meter();
    TPSIM_TRY(const Samples mine,
              profile_rank(ranks, device, *meter, request,
                           part_of(first ? progress : ProfilingProgress(), "timing")));
    for (const std::string& text : gathered(ranks, device, mine.packed())) {
      if (first) found.samples.add(Samples::unpacked(text));
    }
    if (!first) return Ok{};
    found.algorithms = device.algorithms();
    if (devices.runtime) found.runtime = devices.runtime(device, found.notes);
    return Ok{};
  };
  TPSIM_TRY_STATUS(run_ranks(devices, static_cast<int>(world), body));
  gauge.fill(found.runtime);
  return found;
}

Profile profile_of(const ProfilingRequest& request, const LocalDevices& devices,
                   const StepTimes& work, const Findings& found) {
  Profile profile;
  profile.name = "this-machine";
  profile.date = utc_date();
  profile.source = fmt::format("{}{} on {}, {}", request.command,
                               devices.ranks.started > 1 ? " as processes of a launcher" : "",
                               devices.machine.description, profile.date);
  profile.provenance = Provenance::kMeasuredHere;
  profile.machine = devices.machine;
  if (process_environment(kDomainVariable)) {
    profile.machine.devices =
        std::max<std::int64_t>(profile.machine.devices, devices.ranks.started);
  }
  profile.machine.rank_jitter = found.samples.rank_jitter();
  profile.device = devices.facts;
  profile.runtime = found.runtime;
  profile.algorithms = found.algorithms;
  profile.ops = found.samples.ops();
  profile.sustained = found.samples.sustained();
  profile.collectives = found.samples.collectives();
  std::vector<OpRecord> records;
  for (const OpTime& op : work.ops) records.push_back(op.record);
  fit_device(records, profile);
  return profile;
}

// Returns the size of the largest group if it exceeds the number of ranks here; otherwise 0.
std::int64_t group_left_out(const std::vector<CollectiveNeed>& needs, std::int64_t world) {
  std::int64_t most = 0;
  for (const CollectiveNeed& need : needs) most = std::max(most, need.ranks);
  return most > world ? most : 0;
}

// Returns the most operand bytes of an op that is timed. On a CPU, larger ops take as long per
// byte.
Bytes largest_timed(const LocalDevices& devices, std::int64_t world, bool is_quick) {
  const Bytes largest_on_cpu((is_quick ? 128 : 512) * kMiB);
  const Bytes share =
      kMemoryShare / static_cast<double>(world) * devices.free_memory(nullptr).bytes;
  return devices.facts.asynchronous ? share : std::min(share, largest_on_cpu);
}

}  // namespace

Result<std::optional<MeasuredProfile>> measured_profile(const ProfilingRequest& request) {
  TPSIM_TRY(const LocalDevices devices, local_devices(request.device));
  TPSIM_TRY(const Subject subject, subject_of(request, devices));
  StepTimesSum sum;
  sum.add(ops_to_profile(subject.model, subject.options, subject.plans));
  const DType own = devices.facts.asynchronous ? DType::kBFloat16 : DType::kFloat32;
  const DType dtype = subject.plans.empty() ? own : subject.plans.front().dtype;
  std::set<OpKey> probes;
  for (const OpRecord& probe : probe_ops(dtype, devices.facts)) {
    sum.add(probe, Seconds());
    probes.insert(probe.key);
  }
  StepTimes work = sum.times();
  const std::int64_t world = devices.ranks.started > 0
                                 ? devices.ranks.started
                                 : std::min(subject.ranks, devices.machine.devices);
  MeasuredProfile measurement;
  measurement.too_large = drop_larger(largest_timed(devices, world, request.is_quick), work);
  const ProfileRequest own_request = request_of(request, subject, work, probes, devices, world);
  TPSIM_TRY(Findings found, measured(devices, subject, own_request, world, request.progress));
  if (!devices.ranks.speaks) return std::optional<MeasuredProfile>();
  measurement.profile = profile_of(request, devices, work, found);
  measurement.without_sample = work.ops.size() - measurement.profile.ops.size();
  measurement.group_left_out = group_left_out(own_request.collectives, world);
  measurement.notes = std::move(found.notes);
  return std::optional(std::move(measurement));
}

}  // namespace tpsim::app
