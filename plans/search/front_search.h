// Finds the Pareto front of step time, peak memory and GPU-seconds from bounds of groups of plans.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "plans/search/family_search.h"

namespace tpsim {

class FrontSearch {
 public:
  using ExactStep = std::function<double(const Candidate&)>;  // in seconds

  // `families`: one object per thread; the result does not depend on their number. `most`: maximum
  // number of plans kept at a time.
  FrontSearch(std::span<const std::shared_ptr<FamilySearch>> families, std::int64_t most,
              ExactStep exact_step)
      : families_(families), most_(most), exact_step_(std::move(exact_step)) {}

  // Processes groups and plans in ascending order of the lower bounds of their steps. A group is
  // skipped if a plan of the front is better than the group's bounds. Otherwise the group is
  // expanded into the plans that need no more memory than every faster plan of the front. Threads
  // expand a batch of groups at a time. Sorts `groups`. `progress` receives the index of a group.
  // Returns false if more than `most` plans would be kept.
  bool run(std::vector<BoundedGroup>& groups, const std::function<void(std::size_t)>& progress);

  // The front with exact steps, fastest first. Of plans with equal values it has the first.
  const std::vector<Candidate>& front() const { return front_; }
  std::int64_t feasible() const { return feasible_; }
  std::int64_t simulated() const { return simulated_; }
  FamilySearch::Found& left_out() { return left_out_; }  // counts of plans that were not kept

 private:
  FamilySearch::PeakLimit peak_limit_of(const BoundedGroup& group) const;
  std::vector<Candidate> open_batch(std::span<const BoundedGroup> groups, std::size_t& next);
  bool is_beaten(const Candidate& one) const;
  void simulate(Candidate candidate);

  std::span<const std::shared_ptr<FamilySearch>> families_;
  std::int64_t most_;
  ExactStep exact_step_;
  std::vector<Candidate> front_;
  FamilySearch::Found left_out_;
  std::int64_t feasible_ = 0, simulated_ = 0;
};

}  // namespace tpsim
