#include "gui/views/search_job.h"

#include <algorithm>
#include <iterator>

#include "gui/views/choice.h"

namespace tpsim::gui {
namespace {

constexpr int kBestPlans = 24;  // plans kept for the table
constexpr int kPlansOfDegree = 400;
// Estimated shares of the search time, for the progress. The best plans and the front come before
// the plans of each degree.
constexpr double kShareOfBest = 0.7, kShareWithFront = 0.8;

bool is_faster(const PlannedRun& a, const PlannedRun& b) {
  return a.predicted.step < b.predicted.step;
}

PlannedRun figures_only(PlannedRun run) {
  run.predicted.memory = {};
  run.predicted.breakdown = {};
  return run;
}

// Returns a progress function for a piece that takes the search from share `begin` to `end`.
StagedSearch::Progress part_of_progress(const std::function<void(double)>& progress, double begin,
                                        double end) {
  if (!progress) return {};
  return [=](double share) { progress(begin + share * (end - begin)); };
}

}  // namespace

void Findings::add(SearchNews news) {
  if (!has_best) {
    error = std::move(news.error);
    considered = news.considered;
    pruned = std::move(news.pruned);
    nearest_miss = std::move(news.nearest_miss);
    has_best = true;
  }
  const std::size_t known = plans.size();
  for (PlannedRun& run : news.plans) {
    const auto end = plans.begin() + static_cast<std::ptrdiff_t>(known);
    const auto range = std::equal_range(plans.begin(), end, run, is_faster);
    const bool is_known = std::any_of(
        range.first, range.second, [&](const PlannedRun& other) { return other.plan == run.plan; });
    if (!is_known) plans.push_back(std::move(run));
  }
  std::stable_sort(plans.begin(), plans.end(), is_faster);
  pareto_front = front_of(plans);
  is_complete = news.is_last;
  ++revision;
}

SearchJob::SearchJob(Choice choice, std::shared_ptr<const Scenario> scenario)
    : choice_(std::move(choice)),
      scenario_(std::move(scenario)),
      space_(space_of(choice_, scenario_->model)) {}

SearchNews SearchJob::step(const std::function<void(double)>& progress) {
  SearchNews news;
  switch (stage_) {
    case Stage::kBest:
      news = find_best(part_of_progress(progress, 0, kShareOfBest));
      stage_ = Stage::kFront;
      break;
    case Stage::kFront: {
      Result<SearchResult> found =
          search_->front(part_of_progress(progress, kShareOfBest, kShareWithFront));
      if (found.ok()) news = news_of(std::move(found).value());
      degrees_ = search_->tp_degrees();
      all_degrees_ = degrees_.size();
      stage_ = Stage::kDegrees;
      break;
    }
    case Stage::kDegrees: {
      const auto done = [&] {
        const auto left = static_cast<double>(degrees_.size());
        return 1 - (1 - kShareWithFront) * left / static_cast<double>(all_degrees_);
      };
      const double begin = done();
      const std::int64_t tp = degrees_.back();
      degrees_.pop_back();
      Result<SearchResult> found =
          search_->best_of_tp(tp, kPlansOfDegree, part_of_progress(progress, begin, done()));
      if (found.ok()) news = news_of(std::move(found).value());
    }
  }
  is_done_ = is_done_ || (stage_ == Stage::kDegrees && degrees_.empty());
  news.is_last = is_done_;
  if (is_done_) search_.reset();
  return news;
}

SearchNews SearchJob::news_of(SearchResult found) const {
  SearchNews news;
  news.considered = found.considered;
  news.pruned = std::move(found.pruned);
  std::transform(found.plans.begin(), found.plans.end(), std::back_inserter(news.plans),
                 [](PlannedRun& run) { return figures_only(std::move(run)); });
  if (found.nearest_miss) news.nearest_miss = figures_only(*std::move(found.nearest_miss));
  return news;
}

SearchNews SearchJob::find_best(const StagedSearch::Progress& progress) {
  search_.emplace(*scenario_, space_, kBestPlans);
  SearchNews news;
  Result<SearchResult> found = search_->best(progress);
  if (!found.ok()) {
    news.error = found.error();
    is_done_ = true;
    return news;
  }
  const std::int64_t most_fitting = found->feasible + found->not_as_good;
  news = news_of(std::move(found).value());
  is_done_ = most_fitting <= static_cast<std::int64_t>(news.plans.size());
  return news;
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

std::optional<SearchNews> FrameSearchHost::news() {
  if (!job_ || frames_to_wait_-- > 0) return std::nullopt;
  frames_to_wait_ = 0;
  SearchNews news = job_->step([this](double share) { progress_ = share; });
  if (job_->done()) job_.reset();
  return news;
}

}  // namespace tpsim::gui
