// The spans that the timeline highlights, kept between frames, because a step has up to 300,000
// spans and matching the search text against all of them takes longer than drawing.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "gui/views/timeline_search.h"
#include "gui/views/views.h"

namespace tpsim::gui {

class SpanMasks {
 public:
  // Returns the spans of plan A (slot 0) or B (slot 1) that match the search, or without a search
  // those of the critical path. Computed again only if the plan, the search or the choice changed.
  const SpanMask& mask(std::size_t slot, const std::shared_ptr<const PlanView>& view,
                       const TimelineState& state);
  int computed() const { return computed_; }  // how often a mask was computed

 private:
  struct Slot {
    std::shared_ptr<const PlanView> view;
    std::string search;
    bool shows_critical_path = false;
    SpanMask mask;
  };
  std::array<Slot, 2> slots_;
  int computed_ = 0;
};

}  // namespace tpsim::gui
