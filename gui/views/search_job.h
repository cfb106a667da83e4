// The search behind the plan table, in pieces to give up between. Three passes over the space: its
// best plans, its Pareto front, and for the scatter the fastest plans of each layout.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/scenario/scenario.h"
#include "gui/views/app_state.h"
#include "plans/search/search.h"

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

// Short pieces: a pass over the plans of one tp and pp. All of them together take two to three
// times as long as whole passes, of which each is one piece but the last.
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
    std::int64_t tp = 0, pp = 0;  // 0: all
  };
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
  std::vector<Slice> slices_;       // of this pass, still to do; the last one is next
  std::vector<Slice> fitting_;      // in which some plan fits
  std::int64_t fitting_plans_ = 0;  // at most
  std::optional<Error> failure_;    // of a slice
  std::vector<PlannedRun> best_;    // of the slices so far
  Findings findings_;
};

// Indices of those of `plans` that no other of them beats in both step time and peak memory, by
// falling time.
std::vector<std::size_t> front_of(const std::vector<PlannedRun>& plans);

// Gives a job its time. There are two: one works between frames (windowless, web), one in a thread
// of its own (gui/window/background_search.h).
class SearchHost {
 public:
  virtual ~SearchHost() = default;
  // Of the jobs that it takes.
  virtual PieceSize piece_size() const { return PieceSize::kWholePass; }
  // Gives up the job before.
  virtual void begin(SearchJob job) = 0;
  // The latest findings, when they changed since the last call.
  virtual std::optional<Findings> news() = 0;
  virtual bool is_busy() const = 0;
};

// One piece of the job at every call of news(). The frame that began the job and the next are free
// of it, so that a chosen plan is on the screen first.
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
