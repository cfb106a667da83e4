#include "gui/panels/span_masks.h"

namespace tpsim::gui {

const SpanMask& SpanMasks::mask(std::size_t slot, const std::shared_ptr<const PlanView>& view,
                                const TimelineState& state) {
  Slot& kept = slots_[slot];
  const bool is_current = kept.view == view && kept.search == state.search &&
                          kept.shows_critical_path == state.shows_critical_path;
  if (is_current) return kept.mask;
  ++computed_;
  kept = {view, state.search, state.shows_critical_path, {}};
  if (!state.search.empty()) {
    kept.mask = matching_spans(view->timeline, state.search);
  } else if (state.shows_critical_path) {
    kept.mask.assign(view->timeline.spans.size(), false);
    for (const std::uint32_t span : view->critical_path) kept.mask[span] = true;
  }
  return kept.mask;
}

}  // namespace tpsim::gui
