// The search of the window, divided into pieces. The search makes three passes over the space: the
// best plans for the table, the Pareto front, and the fastest plans of each layout for the scatter
// plot.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/scenario/scenario.h"
#include "gui/views/app_state.h"
#include "plans/search/search.h"

namespace tpsim::gui {

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
};

// Size of a piece of the search. kWholePass: a whole pass; the last pass has one piece per tp.
// kShort: one pair of tp and pp of a pass, with which the whole search takes two to three times as
// long.
enum class PieceSize : std::uint8_t { kWholePass, kShort };

class SearchJob {
 public:
  SearchJob(Choice choice, std::shared_ptr<const Scenario> scenario,
            PieceSize size = PieceSize::kWholePass);

  bool done() const { return findings_.is_complete; }
  void step();
  const Findings& findings() const { return findings_; }

 private:
  enum class Pass : std::uint8_t { kBest, kFront, kFastest };
  struct Slice {
    std::int64_t tp = 0, pp = 0;  // 0: all degrees
  };
  void restrict_space(SearchLimits limits);
  bool is_searched(Setting setting, std::int64_t degree) const;
  SearchSpace part(const Slice& slice) const;
  void find_best(const Slice& slice);
  void finish(Pass pass);
  void finish_best();
  void begin(Pass pass);
  void add(SearchResult found);

  std::shared_ptr<const Scenario> scenario_;
  PieceSize size_;
  SearchSpace space_;
  Pass pass_ = Pass::kBest;
  std::vector<Slice> slices_;       // remaining slices of this pass, processed from the back
  std::vector<Slice> fitting_;      // slices with a plan that fits
  std::int64_t fitting_plans_ = 0;  // upper bound of the number of plans that fit
  std::optional<Error> failure_;    // latest error of a slice
  std::vector<PlannedRun> best_;    // best plans of the slices completed so far
  Findings findings_;
};

// Returns indices of the plans on the Pareto front of step time and peak memory, slowest first.
std::vector<std::size_t> front_of(const std::vector<PlannedRun>& plans);

// Interface to run search jobs. FrameSearchHost runs them between frames (without window, and in
// the browser). BackgroundSearch runs them in a separate thread (gui/window/background_search.h).
class SearchHost {
 public:
  virtual ~SearchHost() = default;
  // Size of the pieces of the host's jobs.
  virtual PieceSize piece_size() const { return PieceSize::kWholePass; }
  // Replaces the current job.
  virtual void begin(SearchJob job) = 0;
  // Returns the latest findings if they have changed since the last call.
  virtual std::optional<Findings> news() = 0;
  virtual bool is_busy() const = 0;
};

// Runs one piece of the job per call of news(). The first two calls after begin() run nothing, so
// that a newly selected plan is displayed before the search blocks the thread.
class FrameSearchHost : public SearchHost {
 public:
  explicit FrameSearchHost(PieceSize size = PieceSize::kWholePass) : size_(size) {}
  PieceSize piece_size() const override { return size_; }
  void begin(SearchJob job) override {
    job_.emplace(std::move(job));
    frames_to_wait_ = 2;
  }
  std::optional<Findings> news() override;
  bool is_busy() const override { return job_.has_value(); }

 private:
  PieceSize size_;
  std::optional<SearchJob> job_;
  int frames_to_wait_ = 0;
};

}  // namespace tpsim::gui
