// The program without a window: state, views and frames. A host sets the input in ImGui's IO, calls
// frame(), and draws ImGui::GetDrawData().
#pragma once

#include <functional>

#include "core/scenario/catalogue.h"
#include "gui/panels/shown_table.h"
#include "gui/panels/span_masks.h"
#include "gui/panels/ui.h"
#include "gui/views/app_state.h"
#include "gui/views/search_job.h"
#include "gui/views/views.h"

namespace tpsim::gui {

// Executes requests. The default is perform() of gui/panels/actions.h.
using Perform = std::function<void(Request, const ViewComputer&, AppState&)>;

class Session {
 public:
  Session(Catalogue catalogue, SearchHost& host, AppState state);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Computes one frame for a window of this size in pixels, `seconds` after the previous frame.
  void frame(float width, float height, float seconds);

  // Sets the number of pixels per point of the screen, by which the interface is scaled.
  void set_density(float density) { density_ = density; }
  void set_perform(Perform perform) { perform_ = std::move(perform); }

  AppState& state() { return state_; }
  const Views& views() const { return *views_; }
  const Items& items() const { return items_; }
  const TabStops& stops() const { return stops_; }
  const TableCache& table_cache() const { return table_cache_; }
  const SpanMasks& span_masks() const { return span_masks_; }
  const Palette& colors() const { return palette_of(state_.theme); }
  // Changes when the font atlas is rebuilt, so that the host must upload its texture again.
  int atlas_revision() const { return atlas_revision_; }
  bool needs_frames() const {
    return views_ == nullptr || views_->is_searching || views_->is_pricing;
  }
  // Whether the host must draw frames without input: while results are computed, and during a drag.
  // Text fields do not need frames, since their cursor does not blink.
  bool is_animated() const;

 private:
  void adapt_style(float width, float height);
  void perform_request(Request request);

  ViewComputer computer_;
  AppState state_;
  Perform perform_;
  const Views* views_ = nullptr;
  Items items_;
  TabStops stops_;
  TableCache table_cache_;
  SpanMasks span_masks_;
  Fonts fonts_;
  float scale_ = 0, density_ = 1;
  Theme styled_theme_ = Theme::kLight;
  int atlas_revision_ = 0;
};

}  // namespace tpsim::gui
