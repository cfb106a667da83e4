#include "plans/search/front_search.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <queue>
#include <tuple>

#include "plans/search/parallel_for.h"

namespace tpsim {
namespace {

// Groups that are expanded at a time. More of them keep more threads busy, but each is compared
// with an earlier front.
constexpr std::size_t kBatch = 64;

bool is_left_of(const Candidate& a, const Candidate& b) {
  return std::tuple(a.step, a.peak, a.place) < std::tuple(b.step, b.peak, b.place);
}

// Order of a queue whose top is the leftmost candidate.
struct IsRightOf {
  bool operator()(const Candidate& a, const Candidate& b) const { return is_left_of(b, a); }
};

// Returns whether `a` is at least as good as `b` in step, peak and GPU-seconds.
bool beats(const Candidate& a, const Candidate& b) {
  const double a_gpus = a.step * static_cast<double>(gpu_count(a.plan));
  const double b_gpus = b.step * static_cast<double>(gpu_count(b.plan));
  return a.step <= b.step && a.peak <= b.peak && a_gpus <= b_gpus;
}

std::int64_t gpu_count_of(const BoundedGroup& group) {
  Plan plan;
  plan.degrees = group.key.degrees;
  return gpu_count(plan);
}

void add_counts(const FamilySearch::Found& from, FamilySearch::Found& to) {
  to.over_memory += from.over_memory;
  to.over_host += from.over_host;
  to.more_recompute += from.more_recompute;
  to.too_long += from.too_long;
  to.not_as_good += from.not_as_good;
}

}  // namespace

bool FrontSearch::run(std::vector<BoundedGroup>& groups,
                      const std::function<void(std::size_t)>& progress) {
  std::sort(groups.begin(), groups.end(), [](const BoundedGroup& a, const BoundedGroup& b) {
    return std::tuple(a.step, a.place) < std::tuple(b.step, b.place);
  });
  std::priority_queue<Candidate, std::vector<Candidate>, IsRightOf> open;
  std::size_t group = 0;
  while (group < groups.size() || !open.empty()) {
    const bool opens =
        group < groups.size() && (open.empty() || groups[group].step <= open.top().step);
    if (opens) {
      progress(group);
      for (const Candidate& one : open_batch(groups, group)) open.push(one);
      if (static_cast<std::int64_t>(open.size()) > most_) return false;
    } else {
      const Candidate next = open.top();
      open.pop();
      simulate(next);
    }
  }
  std::sort(front_.begin(), front_.end(), is_left_of);
  return true;
}

// Returns the lowest peak of the front's plans that take at most a given step, on at most the GPUs
// of the group.
FamilySearch::PeakLimit FrontSearch::peak_limit_of(const BoundedGroup& group) const {
  return [this, gpus = gpu_count_of(group)](double step) {
    double least = std::numeric_limits<double>::max();
    for (const Candidate& other : front_) {
      const bool is_faster = other.step <= step && gpu_count(other.plan) <= gpus;
      if (is_faster) least = std::min(least, other.peak);
    }
    return least;
  };
}

// Expands the groups from `next` on, and increases `next`. Returns their plans that fit in memory
// and that no plan of the front beats.
std::vector<Candidate> FrontSearch::open_batch(std::span<const BoundedGroup> groups,
                                               std::size_t& next) {
  std::vector<const BoundedGroup*> batch;
  for (; next < groups.size() && batch.size() < kBatch; ++next) {
    if (groups[next].peak > peak_limit_of(groups[next])(groups[next].step)) {
      left_out_.not_as_good += groups[next].plans;
    } else {
      batch.push_back(&groups[next]);
    }
  }
  std::vector<FamilySearch::Found> found(batch.size());
  const std::size_t threads = std::min(families_.size(), batch.size());
  std::atomic<std::size_t> started = 0;
  parallel_for(std::ssize(batch), static_cast<int>(threads), [&]() -> IndexWork {
    return [&, families = families_[started++]](std::int64_t i) {
      const auto at = static_cast<std::size_t>(i);
      found[at] = families->open_smaller(*batch[at], peak_limit_of(*batch[at]));
    };
  });
  std::vector<Candidate> candidates;
  for (const FamilySearch::Found& part : found) {
    add_counts(part, left_out_);
    feasible_ += std::ssize(part.candidates);
    std::copy_if(part.candidates.begin(), part.candidates.end(), std::back_inserter(candidates),
                 [&](const Candidate& one) { return !is_beaten(one); });
  }
  return candidates;
}

bool FrontSearch::is_beaten(const Candidate& one) const {
  return std::any_of(front_.begin(), front_.end(),
                     [&](const Candidate& other) { return beats(other, one); });
}

// Adds the candidate to the front, unless a plan of the front beats it.
void FrontSearch::simulate(Candidate candidate) {
  if (is_beaten(candidate)) return;
  candidate.step = exact_step_(candidate);
  ++simulated_;
  if (is_beaten(candidate)) return;
  std::erase_if(front_, [&](const Candidate& other) { return beats(candidate, other); });
  front_.push_back(std::move(candidate));
}

}  // namespace tpsim
