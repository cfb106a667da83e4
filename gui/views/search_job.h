// The search of the window in pieces: the best plans for the table, the Pareto front, and the
// fastest plans of each tensor parallel degree for the scatter plot.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/scenario/scenario.h"
#include "gui/views/app_state.h"
#include "plans/search/staged_search.h"

namespace tpsim::gui {

// Result of one piece of a search. The predictions of plans lack memory by stage and the terms of
// the step, which no table or plot of many plans shows.
struct SearchNews {
  std::optional<Error> error;
  std::int64_t considered = 0;
  std::map<std::string, std::int64_t> pruned;
  std::vector<PlannedRun> plans;
  std::optional<PlannedRun> nearest_miss;  // if no plan fits: the one with least memory
  bool is_last = false;
};

// The results of a search so far.
struct Findings {
  Choice choice;  // inputs that these plans belong to
  std::optional<Error> error;
  std::int64_t considered = 0;
  std::map<std::string, std::int64_t> pruned;
  std::vector<PlannedRun> plans;           // fastest first
  std::vector<std::size_t> pareto_front;   // indices into plans, by decreasing step time
  std::optional<PlannedRun> nearest_miss;  // if no plan fits: the one with least memory
  bool has_best = false;                   // the best plans will not change
  bool is_complete = false;                // no plan will change
  std::int64_t revision = 0;               // changes with the plans

  void add(SearchNews news);
};

// Thrown by a host's progress function to stop a piece of a search.
class SearchStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "the search was stopped"; }
};

class SearchJob {
 public:
  SearchJob(Choice choice, std::shared_ptr<const Scenario> scenario);

  const Choice& choice() const { return choice_; }
  bool done() const { return is_done_; }
  // Runs the next piece. `progress` receives the completed share of the whole search; an exception
  // from it ends the job.
  SearchNews step(const std::function<void(double)>& progress = {});

 private:
  enum class Stage : std::uint8_t { kBest, kFront, kDegrees };
  SearchNews news_of(SearchResult found) const;
  SearchNews find_best(const StagedSearch::Progress& progress);

  Choice choice_;
  std::shared_ptr<const Scenario> scenario_;
  SearchSpace space_;
  std::optional<StagedSearch> search_;  // from the first piece to the last
  Stage stage_ = Stage::kBest;
  std::vector<std::int64_t> degrees_;  // remaining tensor parallel degrees, taken from the back
  std::size_t all_degrees_ = 0;
  bool is_done_ = false;
};

// Returns indices of the plans on the Pareto front of step time and peak memory, slowest first.
std::vector<std::size_t> front_of(const std::vector<PlannedRun>& plans);

// Interface to run search jobs. FrameSearchHost runs them between frames (without window).
// BackgroundSearch runs them in a separate thread (gui/window/background_search.h), and
// WorkerSearch in a worker of the browser (page/worker_search.h).
class SearchHost {
 public:
  virtual ~SearchHost() = default;
  // Replaces the current job.
  virtual void begin(SearchJob job) = 0;
  // Returns the results of the next piece of the current job, in order.
  virtual std::optional<SearchNews> news() = 0;
  // Whether news() will return more results.
  virtual bool is_busy() const = 0;
  virtual double progress() const = 0;  // completed share of the job
  // Ends the job. Pieces that have not ended yet return no results.
  virtual void stop() = 0;
};

// Runs one piece of the job per call of news(). The first two calls after begin() run nothing, so
// that a newly selected plan is displayed before the search blocks the thread.
class FrameSearchHost : public SearchHost {
 public:
  void begin(SearchJob job) override {
    job_.emplace(std::move(job));
    frames_to_wait_ = 2;
    progress_ = 0;
  }
  std::optional<SearchNews> news() override;
  bool is_busy() const override { return job_.has_value(); }
  double progress() const override { return progress_; }
  void stop() override { job_.reset(); }

 private:
  std::optional<SearchJob> job_;
  int frames_to_wait_ = 0;
  double progress_ = 0;
};

}  // namespace tpsim::gui
