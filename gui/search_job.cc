#include "gui/search_job.h"

#include <algorithm>

#include "plans/enumerate.h"

namespace tpsim::gui {
namespace {

constexpr int kBestPlans = 24;      // what the table needs at once
constexpr int kPlansOfSlice = 400;  // what a scatter can show

bool is_faster(const PlannedRun& a, const PlannedRun& b) {
  return a.predicted.step < b.predicted.step;
}

}  // namespace

SearchJob::SearchJob(Choice choice, std::shared_ptr<const Scenario> scenario)
    : scenario_(std::move(scenario)) {
  findings_.choice = std::move(choice);
  space_.gpus = findings_.choice.gpus;
  space_.global_batch = findings_.choice.global_batch;
  space_.asked[Setting::kDtype] = {static_cast<std::int64_t>(findings_.choice.dtype)};
  space_.asked[Setting::kGradientDtype] = {
      static_cast<std::int64_t>(findings_.choice.gradient_dtype)};
}

void SearchJob::step() {
  if (!findings_.has_best) return find_best();
  if (!has_front_) {
    find_front();
  } else if (!slices_.empty()) {
    find_fastest(slices_.back());
    slices_.pop_back();
  }
  findings_.is_complete = has_front_ && slices_.empty();
}

void SearchJob::find_best() {
  Result<SearchResult> found = search(*scenario_, space_, kBestPlans, {});
  findings_.has_best = true;
  if (!found.ok()) {
    findings_.error = found.error();
    findings_.is_complete = true;
    return;
  }
  findings_.considered = found->considered;
  const std::int64_t fitting = found->feasible + found->not_as_good;  // at most
  findings_.pruned = found->pruned;
  findings_.nearest_miss = found->nearest_miss;
  findings_.plans = std::move(found->plans);
  findings_.pareto_front = front_of(findings_.plans);
  has_front_ = true;
  if (fitting > static_cast<std::int64_t>(findings_.plans.size())) {
    has_front_ = false;
    slices_ = divisors(space_.gpus);
    const ModelSpec& model = scenario_->model;
    std::erase_if(slices_, [&](std::int64_t tp) { return model.attention.heads % tp != 0; });
  }
  findings_.is_complete = has_front_ && slices_.empty();
}

// All of it, however slow its smallest plans are.
void SearchJob::find_front() {
  has_front_ = true;
  Result<SearchResult> found = pareto_front(*scenario_, space_, {});
  if (found.ok()) add(std::move(found).value());
}

void SearchJob::find_fastest(std::int64_t tp) {
  SearchSpace part = space_;
  part.asked[Setting::kTp] = {tp};
  part.asked[Setting::kOffload] = {setting_of(findings_.plans.front().plan, Setting::kOffload)
                                       .value};  // as the best of the whole space
  Result<SearchResult> found = search(*scenario_, part, kPlansOfSlice, {});
  if (found.ok()) add(std::move(found).value());
}

// What is known already is not added twice.
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
  if (!job_) return std::nullopt;
  job_->step();
  Findings findings = job_->findings();
  if (job_->done()) job_.reset();
  return findings;
}

}  // namespace tpsim::gui
