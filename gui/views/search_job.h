// The search behind the plan table, divided into pieces. Three passes over the space: the best
// plans, the Pareto front, and the fastest plans of each layout for the scatter plot.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/scenario/scenario.h"
#include "gui/views/app_state.h"
#include "plans/search/search.h"

namespace tpsim::gui {

struct Findings {
  Choice choice;  // inputs of these plans
  std::optional<Error> error;
  std::int64_t considered = 0;
  std::map<std::string, std::int64_t> pruned;
  std::vector<PlannedRun> plans;           // fastest first
  std::vector<std::size_t> pareto_front;   // indices into plans, by decreasing step time
  std::optional<PlannedRun> nearest_miss;  // if no plan fits
  bool has_best = false;                   // the best plans are final
  bool is_complete = false;                // all plans are final
};

// kShort: a piece is one tp and pp of a pass. All pieces together take two to three times as long
// as whole passes. kWholePass: a piece is a pass, except for the last pass.
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
  std::vector<Slice> slices_;       // remaining slices of this pass; the last one is next
  std::vector<Slice> fitting_;      // with some plan that fits
  std::int64_t fitting_plans_ = 0;  // upper bound
  std::optional<Error> failure_;    // error of a slice
  std::vector<PlannedRun> best_;    // of the completed slices
  Findings findings_;
};

// Returns indices of the Pareto front of step time and peak memory, by decreasing time.
std::vector<std::size_t> front_of(const std::vector<PlannedRun>& plans);

// Runs search jobs. FrameSearchHost works between frames (windowless, web), BackgroundSearch in a
// separate thread (gui/window/background_search.h).
class SearchHost {
 public:
  virtual ~SearchHost() = default;
  // Size of the pieces of its jobs.
  virtual PieceSize piece_size() const { return PieceSize::kWholePass; }
  // Replaces the current job.
  virtual void begin(SearchJob job) = 0;
  // Returns the latest findings if they changed since the last call.
  virtual std::optional<Findings> news() = 0;
  virtual bool is_busy() const = 0;
};

// Processes one piece of the job per call of news(). Skips the frame that started the job and the
// next one, so that a selected plan is displayed first.
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
