#include "gui/views/search_job.h"

#include <algorithm>
#include <iterator>

#include "gui/views/choice.h"
#include "plans/search/allowed_values.h"
#include "plans/search/enumerate.h"
#include "plans/search/search_work.h"

namespace tpsim::gui {
namespace {

constexpr int kBestPlans = 24;  // plans kept for the table
// Number of plans that the scatter plot shows per pair of tp and pp, and per tp.
constexpr int kPlansOfSlice = 100;
constexpr int kPlansOfDegree = 400;

bool is_faster(const PlannedRun& a, const PlannedRun& b) {
  return a.predicted.step < b.predicted.step;
}

}  // namespace

SearchJob::SearchJob(Choice choice, std::shared_ptr<const Scenario> scenario, PieceSize size)
    : scenario_(std::move(scenario)), size_(size) {
  findings_.choice = std::move(choice);
  const Choice& asked = findings_.choice;
  if (asked.around) space_ = space_around(*asked.around);
  restrict_space(asked.limits);
  space_.gpus = asked.gpus;
  space_.global_batch = global_batch_of(asked, scenario_->model);
  begin(Pass::kBest);
}

// Sets the limits. Settings that they leave free keep the values of the plan that the search starts
// from.
void SearchJob::restrict_space(SearchLimits limits) {
  for (const SettingRow& row : setting_rows()) {
    if (limits.asked[row.setting].empty()) limits.asked[row.setting] = space_.asked[row.setting];
  }
  static_cast<SearchLimits&>(space_) = std::move(limits);
}

bool SearchJob::is_searched(Setting setting, std::int64_t degree) const {
  return is_allowed(*scenario_, space_, {setting, degree});
}

void SearchJob::begin(Pass pass) {
  pass_ = pass;
  if (size_ == PieceSize::kShort && pass != Pass::kBest) {
    slices_ = fitting_;
  } else if (size_ == PieceSize::kShort) {
    for (const std::int64_t tp : divisors(space_.gpus)) {
      if (!is_searched(Setting::kTp, tp)) continue;
      for (const std::int64_t pp : divisors(space_.gpus / tp)) {
        if (is_searched(Setting::kPp, pp)) slices_.push_back({tp, pp});
      }
    }
  } else if (pass == Pass::kFastest) {
    for (const std::int64_t tp : divisors(space_.gpus)) {
      const bool divides = scenario_->model.attention.heads % tp == 0;
      if (divides && is_searched(Setting::kTp, tp)) slices_.push_back({tp, 0});
    }
  }
  if (slices_.empty()) slices_.push_back({});
}

SearchSpace SearchJob::part(const Slice& slice) const {
  SearchSpace part = space_;
  if (slice.tp > 0) part.asked[Setting::kTp] = {slice.tp};
  if (slice.pp > 0) part.asked[Setting::kPp] = {slice.pp};
  if (pass_ == Pass::kFront || pass_ == Pass::kFastest) {
    part.asked[Setting::kOffload] = {setting_of(findings_.plans.front().plan, Setting::kOffload)
                                         .value};  // as in the best plan of the whole space
  }
  return part;
}

void SearchJob::step() {
  const Status possible = check_space(*scenario_, space_, kBestPlans);
  if (!possible.ok()) {
    findings_.error = possible.error();
    findings_.has_best = findings_.is_complete = true;
    return;
  }
  const Slice slice = slices_.back();
  slices_.pop_back();
  if (pass_ == Pass::kFront || pass_ == Pass::kFastest) {
    const int most = slice.pp > 0 ? kPlansOfSlice : kPlansOfDegree;
    Result<SearchResult> found = pass_ == Pass::kFront ? pareto_front(*scenario_, part(slice), {})
                                                       : search(*scenario_, part(slice), most, {});
    if (found.ok()) add(std::move(found).value());
  } else {
    find_best(slice);
  }
  if (slices_.empty()) finish(pass_);
}

void SearchJob::find_best(const Slice& slice) {
  Result<SearchResult> found = search(*scenario_, part(slice), kBestPlans, {});
  if (!found.ok()) {
    failure_ = found.error();
    return;
  }
  findings_.considered += found->considered;
  for (const auto& [reason, count] : found->pruned) findings_.pruned[reason] += count;
  const std::int64_t fitting = found->feasible + found->not_as_good;  // upper bound
  fitting_plans_ += fitting;
  if (!found->plans.empty()) fitting_.push_back(slice);
  const std::optional<PlannedRun>& miss = found->nearest_miss;
  std::optional<PlannedRun>& nearest = findings_.nearest_miss;
  if (miss && (!nearest || miss->predicted.peak < nearest->predicted.peak)) nearest = miss;
  std::move(found->plans.begin(), found->plans.end(), std::back_inserter(best_));
}

void SearchJob::finish(Pass pass) {
  switch (pass) {
    case Pass::kBest: return finish_best();
    case Pass::kFront: return begin(Pass::kFastest);
    case Pass::kFastest: findings_.is_complete = true;
  }
}

void SearchJob::finish_best() {
  findings_.has_best = true;
  std::stable_sort(best_.begin(), best_.end(), is_faster);
  if (best_.size() > kBestPlans) best_.resize(kBestPlans);
  findings_.plans = std::move(best_);
  findings_.pareto_front = front_of(findings_.plans);
  if (!findings_.plans.empty()) {
    findings_.nearest_miss.reset();
  } else if (!findings_.nearest_miss) {
    findings_.error = failure_;
  }
  findings_.is_complete = findings_.plans.empty() ||
                          fitting_plans_ <= static_cast<std::int64_t>(findings_.plans.size());
  if (!findings_.is_complete) begin(Pass::kFront);
}

// Adds the plans that are not known yet.
void SearchJob::add(SearchResult found) {
  const std::size_t known = findings_.plans.size();
  for (PlannedRun& run : found.plans) {
    const auto end = findings_.plans.begin() + static_cast<std::ptrdiff_t>(known);
    const auto range = std::equal_range(findings_.plans.begin(), end, run, is_faster);
    const bool is_known = std::any_of(
        range.first, range.second, [&](const PlannedRun& other) { return other.plan == run.plan; });
    if (!is_known) findings_.plans.push_back(std::move(run));
  }
  std::stable_sort(findings_.plans.begin(), findings_.plans.end(), is_faster);
  findings_.pareto_front = front_of(findings_.plans);
}

std::vector<std::size_t> front_of(const std::vector<PlannedRun>& plans) {
  std::vector<std::size_t> order(plans.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(plans[a].predicted.peak, plans[a].predicted.step) <
           std::pair(plans[b].predicted.peak, plans[b].predicted.step);
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (front.empty() || plans[i].predicted.step < plans[front.back()].predicted.step) {
      front.push_back(i);
    }
  }
  return front;
}

std::optional<Findings> FrameSearchHost::news() {
  if (!job_ || frames_to_wait_-- > 0) return std::nullopt;
  frames_to_wait_ = 0;
  job_->step();
  Findings findings = job_->findings();
  if (job_->done()) job_.reset();
  return findings;
}

}  // namespace tpsim::gui
