// tpsim profile: times on this machine what a model's plans need.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <set>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/local_devices.h"
#include "cli/table.h"
#include "cli/values.h"
#include "core/files.h"
#include "core/profile_json.h"
#include "kernels/gathered.h"
#include "plans/enumerate.h"
#include "profiler/device_fit.h"
#include "profiler/profiler.h"
#include "sim/machine_cluster.h"
#include "sim/needed_work.h"

namespace tpsim {
namespace {

// Of a device's memory, for the weights and optimizer state of a rehearsal.
constexpr double kMemoryShare = 0.25;

// What to profile: plans of one model, or nothing but the device itself.
struct Subject {
  ModelSpec model;
  TrainingOptions options;
  std::vector<Plan> plans;
  std::int64_t ranks = 1;
};

// A stand-in for the profile that is about to be made: plans are enumerated for the machine alone.
Result<Scenario> machine_scenario(const Arguments& arguments, const std::optional<PlanFile>& file,
                                  const LocalDevices& devices) {
  TPSIM_TRY(const Catalogue catalogue, Catalogue::open());
  Scenario scenario;
  TPSIM_TRY(scenario.model, load_model(arguments, catalogue, file));
  scenario.profile.machine = devices.machine;
  scenario.profile.device = devices.facts;
  scenario.profile.device.memory_bandwidth = BytesPerSecond(1);
  scenario.cluster = machine_cluster(scenario.profile);
  const std::string stack =
      arguments.has(Opt::kStack) ? *arguments[Opt::kStack] : scenario.cluster.stack;
  TPSIM_TRY(scenario.stack, catalogue.load_stack(stack));
  return scenario;
}

Result<Subject> subject_of(const Arguments& arguments, const LocalDevices& devices) {
  TPSIM_TRY(const auto file, read_plan_argument(arguments));
  Subject subject;
  subject.ranks = devices.machine.devices;
  if (!file && !arguments.has(Opt::kModel)) return subject;
  TPSIM_TRY(const Scenario scenario, machine_scenario(arguments, file, devices));
  subject.model = scenario.model;
  subject.options = scenario.stack.training;
  if (file) {
    TPSIM_TRY(const Plan plan, single_plan(arguments, scenario.model, file));
    subject.plans = {plan};
    subject.ranks = gpu_count(plan);
  } else {
    TPSIM_TRY(const SearchSpace space, search_space(arguments, scenario.cluster));
    enumerate_plans(scenario, space, [&](const Plan& plan) { subject.plans.push_back(plan); });
    subject.ranks = space.gpus;
    if (subject.plans.empty()) {
      return Error{ErrorKind::kBadInput, "no plan of this space is legal", "",
                   "tpsim plan with the same options says why"};
    }
  }
  return subject;
}

std::vector<CollectiveNeed> collective_needs(const StepTimes& work, const Subject& subject,
                                             bool all_kinds) {
  constexpr std::int64_t kLargest = 64 << 20;
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
  for (std::int64_t ranks = 2; all_kinds && ranks <= subject.ranks; ranks *= 2) {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
          CollectiveKind::kBroadcast, CollectiveKind::kAllToAll, CollectiveKind::kSend}) {
      largest[{kind, kind == CollectiveKind::kSend ? 2 : ranks}] = kLargest;
    }
  }
  for (const auto& [call, most] : largest) {
    for (const std::int64_t bytes : size_ladder(most)) {
      needs.insert({call.first, call.second, bytes});
    }
  }
  return {needs.begin(), needs.end()};
}

// Every distinct step of the plans, on every rank whose program differs. Where host and device are
// one queue, caches carry results from op to op, so that ops are timed in the steps themselves.
std::vector<Rehearsal> rehearsals_of(const Subject& subject, std::int64_t world, Bytes memory) {
  std::vector<Rehearsal> all;
  for (const RehearsedPlan& step : rehearsed_plans(subject.model, subject.plans, memory)) {
    const std::vector<std::int64_t> ranks = distinct_ranks(step.plan);
    const std::int64_t turns = static_cast<std::int64_t>(ranks.size() + world - 1) / world * world;
    for (std::int64_t i = 0; i < turns; ++i) {
      all.push_back({step.model, step.plan, subject.options,
                     ranks[static_cast<std::size_t>(i) % ranks.size()]});
    }
  }
  return all;
}

ProfileRequest request_of(const Arguments& arguments, const Subject& subject, const StepTimes& work,
                          const LocalDevices& devices, std::int64_t world) {
  ProfileRequest request;
  for (const OpTime& op : work.ops) request.ops.push_back(op.record.key);
  request.collectives = collective_needs(work, subject, arguments.has(Opt::kCollectives));
  if (!devices.facts.asynchronous) {
    request.rehearsals = rehearsals_of(subject, world, kMemoryShare * devices.facts.memory);
  }
  if (arguments.has(Opt::kQuick)) {
    constexpr Seconds kAll(12);  // for rehearsals, for ops one by one, and for collectives
    request.rehearsal_budget = kAll;
    request.op_timer.budget = kAll / static_cast<double>(request.ops.size());
    request.collective_timer.budget =
        kAll / static_cast<double>(std::max<std::size_t>(1, request.collectives.size()));
    request.rehearsal = {.least_steps = 2, .most_steps = 4};
  }
  return request;
}

// A profile describes one node: its collectives do not tell links inside from links between nodes.
Status check_one_node(World& ranks, Device& device) {
  utsname names{};
  ::uname(&names);
  const std::vector<std::string> hosts = gathered(ranks, device, names.nodename);
  for (const std::string& host : hosts) {
    if (host == hosts.front()) continue;
    return Error{ErrorKind::kBadInput,
                 fmt::format("ranks were started on {} and on {}", hosts.front(), host), "profile",
                 "a profile is of one node: start all of them there; links between nodes are the "
                 "cluster file's"};
  }
  return Ok{};
}

// Runs the request on all ranks and puts their samples together, in the process of the first.
Result<Samples> measured(const LocalDevices& devices, const ProfileRequest& request,
                         std::int64_t world, const Terminal& terminal) {
  Samples samples;
  const DeviceRankBody body = [&](World& ranks, Device& device) -> Status {
    const bool first = ranks.rank() == 0;
    TPSIM_TRY_STATUS(check_one_node(ranks, device));
    if (first) {
      ProgressBar progress(terminal, "checking");
      TPSIM_TRY_STATUS(check_ops(device, request.ops, [&](double share) { progress.show(share); }));
    }
    ProgressBar progress(first ? terminal : Terminal{}, "timing");
    const std::unique_ptr<LoadMeter> meter = devices.meter();
    TPSIM_TRY(const Samples mine, profile_rank(ranks, device, *meter, request,
                                               [&](double share) { progress.show(share); }));
    for (const std::string& text : gathered(ranks, device, mine.packed())) {
      if (first) samples.add(Samples::unpacked(text));
    }
    return Ok{};
  };
  TPSIM_TRY_STATUS(run_ranks(devices, static_cast<int>(world), body));
  return samples;
}

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:04}-{:02}-{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
}

Profile profile_of(const Arguments& arguments, const LocalDevices& devices, const StepTimes& work,
                   const Samples& samples) {
  Profile profile;
  profile.name = "this-machine";
  profile.date = today();
  profile.source = fmt::format("{}{} on {}, {}", printable(arguments.command_line),
                               devices.ranks.started > 1 ? " as processes of a launcher" : "",
                               devices.machine.description, profile.date);
  profile.provenance = Provenance::kMeasuredHere;
  profile.machine = devices.machine;
  profile.machine.rank_jitter = samples.rank_jitter();
  profile.device = devices.facts;
  profile.ops = samples.ops();
  profile.collectives = samples.collectives();
  std::vector<OpRecord> records;
  for (const OpTime& op : work.ops) records.push_back(op.record);
  fit_device(records, profile);
  return profile;
}

// The largest group whose collectives were needed and had too few ranks here; 0 without.
std::int64_t group_left_out(const std::vector<CollectiveNeed>& needs, std::int64_t world) {
  std::int64_t most = 0;
  for (const CollectiveNeed& need : needs) most = std::max(most, need.ranks);
  return most > world ? most : 0;
}

std::string summary(const Profile& profile, const StepTimes& work, std::int64_t left_out,
                    const std::string& path) {
  double widest = 0;
  for (const OpSample& sample : profile.ops) widest = std::max(widest, sample.spread);
  std::string text = fmt::format(
      "{}\n{} ops and {} collectives timed; matrix products reach {}, copies {}; widest spread "
      "{:.1f} %\n",
      printable(profile.machine.description), profile.ops.size(), profile.collectives.size(),
      to_string(profile.device.matmul_peak), to_string(profile.device.memory_bandwidth),
      100 * widest);
  if (profile.ops.size() < work.ops.size()) {
    text += fmt::format(
        "{} ops have no sample: other programs kept the cores busy; measure again on a quiet "
        "machine\n",
        work.ops.size() - profile.ops.size());
  }
  if (left_out > 0) {
    text +=
        fmt::format("collectives of up to {} ranks were left out: more than ran here\n", left_out);
  }
  return text + fmt::format("wrote {}\n", printable(path));
}

}  // namespace

Status run_profile(const Arguments& arguments, const Terminal& terminal) {
  if (!arguments.has(Opt::kOutputFolder)) {
    return option_error(Opt::kOutputFolder, "is missing: where to?", "give -o profile.json");
  }
  TPSIM_TRY(const LocalDevices devices, local_devices(arguments[Opt::kDevice].value_or("cpu")));
  TPSIM_TRY(const Subject subject, subject_of(arguments, devices));
  StepTimesSum sum;
  sum.add(needed_work(subject.model, subject.options, subject.plans));
  const DType dtype = subject.plans.empty() ? DType::kFloat32 : subject.plans.front().dtype;
  for (const OpRecord& probe : probe_ops(dtype)) sum.add(probe, Seconds());
  const StepTimes work = sum.times();

  const std::int64_t world = devices.ranks.started > 0
                                 ? devices.ranks.started
                                 : std::min(subject.ranks, devices.machine.devices);
  const ProfileRequest request = request_of(arguments, subject, work, devices, world);
  TPSIM_TRY(const Samples samples, measured(devices, request, world, terminal));
  if (!devices.ranks.speaks) return Ok{};
  const Profile profile = profile_of(arguments, devices, work, samples);
  const std::string& path = *arguments[Opt::kOutputFolder];
  TPSIM_TRY_STATUS(write_file_atomically(path, to_json(profile)));
  return print(summary(profile, work, group_left_out(request.collectives, world), path));
}

}  // namespace tpsim
