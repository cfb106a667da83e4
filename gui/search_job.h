// The search behind the plan table, in pieces short enough to do between two frames or to give up
// between: first the best plans of the whole space, then its Pareto front, then, for the scatter,
// the fastest of each tensor-parallel degree.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/scenario.h"
#include "gui/app_state.h"
#include "plans/search.h"

namespace tpsim::gui {

struct Findings {
  Choice choice;  // of which these are the plans
  std::optional<Error> error;
  std::int64_t considered = 0;
  std::map<std::string, std::int64_t> pruned;
  std::vector<PlannedRun> plans;           // fastest first
  std::vector<std::size_t> pareto_front;   // indices into plans, by falling step time
  std::optional<PlannedRun> nearest_miss;  // when nothing fits
  bool has_best = false;                   // the best plans are known
  bool is_complete = false;                // and all others
};

class SearchJob {
 public:
  SearchJob(Choice choice, std::shared_ptr<const Scenario> scenario);

  bool done() const { return findings_.is_complete; }
  void step();
  const Findings& findings() const { return findings_; }

 private:
  void find_best();
  void find_front();
  void find_fastest(std::int64_t tp);
  void add(SearchResult found);

  std::shared_ptr<const Scenario> scenario_;
  SearchSpace space_;
  bool has_front_ = false;
  std::vector<std::int64_t> slices_;  // tensor-parallel degrees still to do
  Findings findings_;
};

// Indices of those of `plans` that no other of them beats in both step time and peak memory, by
// falling time.
std::vector<std::size_t> front_of(const std::vector<PlannedRun>& plans);

// Gives a job its time. There are two: one works until it is done before it answers (windowless,
// web), one in a thread of its own (gui/background_search.h).
class SearchHost {
 public:
  virtual ~SearchHost() = default;
  // Gives up the job before.
  virtual void begin(SearchJob job) = 0;
  // The latest findings, when they changed since the last call.
  virtual std::optional<Findings> news() = 0;
  virtual bool is_busy() const = 0;
};

// One piece of the job at every call of news(): what a browser has time for in a frame.
class FrameSearchHost : public SearchHost {
 public:
  void begin(SearchJob job) override { job_.emplace(std::move(job)); }
  std::optional<Findings> news() override;
  bool is_busy() const override { return job_.has_value(); }

 private:
  std::optional<SearchJob> job_;
};

}  // namespace tpsim::gui
