#include "gui/panels/session.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "gui/panels/actions.h"
#include "gui/panels/panels.h"

namespace tpsim::gui {
namespace {

void draw_panels(Ui& ui, Rect screen) {
  const float gap = ui.px(8);
  const Rect all{{screen.min.x + gap, screen.min.y + gap},
                 {screen.max.x - gap, screen.max.y - gap}};
  const float bar = top_bar_height(ui, all.width());
  draw_top_bar(ui, {all.min, {all.max.x, all.min.y + bar}});
  const float headline_top = all.min.y + bar + gap;
  const float body_top =
      headline_top + draw_headline(ui, {all.min.x, headline_top}, all.width()) + gap;

  const float sidebar = ui.px(286);
  draw_knobs(ui, {{all.min.x, body_top}, {all.min.x + sidebar, all.max.y}});
  const float left = all.min.x + sidebar + gap;
  const float width = all.max.x - left, height = all.max.y - body_top;
  // The bars of the middle row need more of a low window.
  const float room = height - 2 * gap;
  const bool is_low = room < ui.px(480);
  const float row = std::floor(room * (is_low ? 0.3F : 0.335F));
  const float middle_row = std::floor(room * (is_low ? 0.4F : 0.335F));
  const float middle = body_top + row + gap;
  const float bottom = middle + middle_row + gap;
  const float split = left + std::floor(width * 0.585F);
  draw_plans(ui, {{left, body_top}, {split, body_top + row}});
  draw_scatter(ui, {{split + gap, body_top}, {all.max.x, body_top + row}});
  const float second = left + std::floor(width * 0.44F);
  draw_memory(ui, {{left, middle}, {second, middle + middle_row}});
  draw_details(ui, {{second + gap, middle}, {all.max.x, middle + middle_row}});
  draw_timeline(ui, {{left, bottom}, all.max});
}

// Shows the message of the last action at the bottom of the window, until the next click. The
// message takes no input, so that the panel below it works.
void draw_notice(Ui& ui, Rect screen) {
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) ui.state.notice.clear();
  if (ui.state.notice.empty()) return;
  ImGui::SetNextWindowPos({screen.center().x, screen.max.y - ui.px(20)}, ImGuiCond_Always,
                          {0.5F, 1});
  const Rgba color = ui.state.notice_is_error ? ui.colors.bad : ui.colors.accent;
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui.ink(color));
  ImGui::PushStyleColor(ImGuiCol_Text, ui.ink(ui.colors.on_accent));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(ui.px(14), ui.px(8)));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, ui.px(6));
  ImGui::Begin("notice", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_AlwaysAutoResize |
                   ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoInputs);
  ImGui::PushTextWrapPos(ui.px(700));
  ImGui::TextUnformatted(ui.state.notice.c_str());
  ImGui::PopTextWrapPos();
  ImGui::End();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(2);
}

void use_keys(Ui& ui) {
  const ImGuiIO& io = ImGui::GetIO();
  constexpr int kF1 = 290;  // GLFW's key number
  if (ImGui::IsKeyPressed(kF1, false)) ui.state.shows_help = !ui.state.shows_help;
  if (!io.KeyCtrl) return;
  const double scale = ui.state.scale > 0 ? ui.state.scale : ui.scale;
  if (ImGui::IsKeyPressed('Z', false) && !io.WantTextInput) undo(ui.state);
  if (ImGui::IsKeyPressed('Y', false) && !io.WantTextInput) redo(ui.state);
  if (ImGui::IsKeyPressed('=', false)) ui.state.scale = std::min(3.0, scale + 0.125);
  if (ImGui::IsKeyPressed('-', false)) ui.state.scale = std::max(0.75, scale - 0.125);
}

// Returns the default scale for a window size. The interface grows half as fast as the window, so
// that a larger window also shows more.
float fitting_scale(float width, float height) {
  const float room = std::min(width / 1280, height / 800);
  const float scale = 1 + 0.5F * (room - 1);
  return std::clamp(std::round(scale * 8) / 8, 0.75F, 2.0F);
}

// Records a change of the selection in the history, and lists the settings that the change
// adjusted.
void record_change(Ui& ui) {
  AppState& state = ui.state;
  const std::optional<Plan> shown = ui.views.a ? std::optional(ui.views.a->plan) : std::nullopt;
  const bool is_predicted = !state.plan || state.plan == shown;
  state.history.record(selection_of(state), shown, is_predicted && !ImGui::IsAnyMouseDown());
  state.moved.clear();
  if (!state.turned || !shown) return;
  const std::optional<Plan>& before = state.history.before(*shown);
  if (before) state.moved = moved_settings(*before, *shown, state.turned);
}

// Draws one frame between ImGui::NewFrame() and ImGui::Render(). May change the state and add
// requests.
void draw_frame(Ui& ui) {
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const Rect screen{{0, 0}, size};
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::Begin("tpsim", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                   ImGuiWindowFlags_NoScrollWithMouse);
  ImGui::PopStyleVar();
  use_keys(ui);
  draw_panels(ui, screen);
  ImGui::End();
  draw_notice(ui, screen);
  ui.state.focused = move_focus(ui.stops);
  record_change(ui);
}

}  // namespace

Session::Session(Catalogue catalogue, SearchHost& host, AppState state)
    : computer_(std::move(catalogue), host), state_(std::move(state)), perform_(perform) {
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // AppState stores all persistent state
  io.LogFilename = nullptr;
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  io.ConfigInputTextCursorBlink = false;  // a blinking cursor would need frames without input
}

Session::~Session() { ImGui::DestroyContext(); }

bool Session::is_animated() const { return needs_frames() || ImGui::IsAnyMouseDown(); }

void Session::adapt_style(float width, float height) {
  const float scale = state_.scale > 0
                          ? static_cast<float>(state_.scale)
                          : density_ * fitting_scale(width / density_, height / density_);
  if (scale != scale_) {
    fonts_ = load_fonts(*ImGui::GetIO().Fonts, scale);
    ++atlas_revision_;
  } else if (styled_theme_ == state_.theme) {
    return;
  }
  scale_ = scale;
  styled_theme_ = state_.theme;
  apply_style(state_.theme, scale);
}

void Session::frame(float width, float height, float seconds) {
  adapt_style(width, height);
  views_ = &computer_.views(state_);
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {width, height};
  io.DeltaTime = seconds;
  io.KeyMap[ImGuiKey_Tab] = -1;  // gui/panels/tab_stops.h
  ImGui::NewFrame();
  items_.clear();
  stops_.clear();
  std::vector<Request> requests;
  Ui ui{state_, *views_, colors(),     fonts_,      scale_,
        items_, stops_,  table_cache_, span_masks_, requests};
  draw_frame(ui);
  ImGui::Render();
  for (const Request request : requests) perform_request(request);
}

void Session::perform_request(Request request) {
  switch (request) {
    case Request::kStopSearch: return computer_.stop_search();
    case Request::kSearch: return computer_.search();
    default: perform_(request, computer_, state_);
  }
}

}  // namespace tpsim::gui
