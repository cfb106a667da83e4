#include "devices/memory_check.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <map>

#include "core/base/leading_number.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/plan/rank_layout.h"
#include "devices/reserved_memory.h"
#include "ranks/gathered.h"

namespace tpsim::app {
namespace {

// A change of the plan to suggest, and its options. The change keeps the number of ranks and the
// global batch.
struct Change {
  const char* options;
  bool recomputes, is_narrow, shards;
};
constexpr Change kChanges[] = {
    {"--recompute full", true, false, false},
    {"--micro-batch 1", false, true, false},
    {"--recompute full --micro-batch 1", true, true, false},
    {"--zero 3", false, false, true},
    {"--zero 3 --recompute full --micro-batch 1", true, true, true},
};

Plan changed(Plan plan, const Change& change) {
  if (change.recomputes) {
    plan.recompute = Recompute::kFull;
    plan.recompute_blocks = 0;
  }
  if (change.is_narrow) plan.micro_batch = 1;
  if (change.shards) plan.zero = 3;
  return plan;
}

Error does_not_fit(const std::string& who, Bytes needed, const FreeMemory& free,
                   std::string remedy) {
  return Error{ErrorKind::kDoesNotFit,
               fmt::format("{} at the peak of a step; {} are free ({})", who + to_string(needed),
                           to_string(free.bytes), free.limit),
               "", std::move(remedy)};
}

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

// Memory of one device: a GPU with one rank, or a host with all its CPU ranks.
struct Place {
  std::int64_t ranks = 0;
  Bytes needed;
  FreeMemory free{Bytes(1e300), ""};
};

}  // namespace

Result<MemoryCheck> MemoryCheck::of(const NamedScenario& named, const LocalDevices& devices) {
  TPSIM_TRY(NamedScenario executed, executed_here(named));
  return MemoryCheck(std::move(executed.scenario), devices);
}

Bytes MemoryCheck::peak(const Plan& plan, std::int64_t rank, bool has_neighbours) const {
  const Plan shorter = with_few_micro_batches(plan);
  const StackSpec& stack = scenario_.stack;
  if (!devices_.facts.asynchronous) {
    return host_memory_of(scenario_.model, shorter, stack.training, rank);
  }
  // The free memory excludes the CUDA context, which already exists.
  return driver_memory_of(scenario_.model, shorter, stack, rank, has_neighbours) -
         stack.memory.context;
}

// Sums the peak memory of all ranks. The first rank of a stage represents all its ranks, since
// other ranks differ only if a shard is uneven.
Bytes MemoryCheck::peak_of_all(const Plan& plan) const {
  Bytes all;
  const std::int64_t stages = plan.degrees.pp;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const std::int64_t rank = global_rank(plan, {.pp = stage});
    all += static_cast<double>(gpu_count(plan) / stages) * peak(plan, rank, true);
  }
  return all;
}

template <class Needed>
std::string MemoryCheck::remedy(const Plan& plan, Bytes free, Needed needed) const {
  std::string least;
  Bytes least_needed(1e300);
  for (const Change& change : kChanges) {
    const Plan other = changed(plan, change);
    if (other == plan || !validate(other, scenario_.model).ok()) continue;
    if (change.shards && !has_replicas(plan)) continue;
    const Bytes bytes = needed(other);
    if (bytes <= free) {
      return fmt::format("with {} the plan fits: it needs {}", change.options, to_string(bytes));
    }
    if (bytes < least_needed) {
      least_needed = bytes;
      least = change.options;
    }
  }
  constexpr const char* kLarger = "increase --tp or --pp, or use a machine with more memory";
  if (least.empty()) return kLarger;
  return fmt::format("even with {} the plan needs {}: {}", least, to_string(least_needed), kLarger);
}

Status MemoryCheck::rank_alone(Device& device, const Plan& plan, std::int64_t rank) const {
  const auto needed = [&](const Plan& any) { return peak(any, rank, false); };
  const Bytes bytes = needed(plan);
  const FreeMemory free = devices_.free_memory(&device);
  if (bytes <= free.bytes) return Ok{};
  return does_not_fit(fmt::format("rank {} of {} needs ", rank, short_name(plan)), bytes, free,
                      remedy(plan, free.bytes, needed));
}

Status MemoryCheck::threads(const Plan& plan) const {
  if (devices_.ranks.started > 0) return Ok{};
  const Bytes needed = peak_of_all(plan);
  const FreeMemory free = devices_.free_memory(nullptr);
  if (needed <= free.bytes) return Ok{};
  const std::int64_t ranks = gpu_count(plan);
  std::string hint = remedy(plan, free.bytes, [&](const Plan& any) { return peak_of_all(any); });
  if (ranks > 1) hint += "; --rank R runs one rank alone";
  return does_not_fit(fmt::format("{} of {} need{} ", counted_text(ranks, "rank"), short_name(plan),
                                  ranks == 1 ? "s" : ""),
                      needed, free, hint);
}

Status MemoryCheck::launched(World& world, Device& device, const Plan& plan) const {
  if (devices_.ranks.started == 0) return Ok{};
  const bool is_gpu = devices_.facts.asynchronous;
  const FreeMemory own = devices_.free_memory(&device);
  const std::string line = fmt::format(
      "{:.0f} {:.0f} {}\n{}", peak(plan, world.rank(), world.size() > 1).value(), own.bytes.value(),
      is_gpu ? fmt::format("GPU of rank {}", world.rank()) : host_name(), own.limit);
  std::map<std::string, Place> places;
  for (const std::string& text : gathered(world, device, line)) {
    std::string_view rest = text;
    const double needed = parse_number<double>(cut_off(rest, " ")).value_or(0);
    const double free = parse_number<double>(cut_off(rest, " ")).value_or(0);
    Place& place = places[std::string(cut_off(rest, "\n"))];
    place.ranks += 1;
    place.needed += Bytes(needed);
    if (Bytes(free) < place.free.bytes) place.free = {Bytes(free), std::string(rest)};
  }
  for (const auto& [name, place] : places) {
    if (place.needed <= place.free.bytes) continue;
    // For suggestions, all ranks on this device are assumed to need as much memory as this rank.
    const auto needed = [&, ranks = static_cast<double>(place.ranks)](const Plan& any) {
      return ranks * peak(any, world.rank(), world.size() > 1);
    };
    return does_not_fit(fmt::format("{} of {} on {} need{} ", counted_text(place.ranks, "rank"),
                                    short_name(plan), name, place.ranks == 1 ? "s" : ""),
                        place.needed, place.free, remedy(plan, place.free.bytes, needed));
  }
  return Ok{};
}

}  // namespace tpsim::app
