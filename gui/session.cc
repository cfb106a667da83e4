#include "gui/session.h"

#include <imgui.h>

#include "gui/actions.h"
#include "gui/frame.h"

namespace tpsim::gui {

Session::Session(Catalogue catalogue, SearchHost& host, AppState state)
    : computer_(std::move(catalogue), host), state_(std::move(state)), perform_(perform) {
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;  // what must be remembered is in AppState
  io.LogFilename = nullptr;
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
}

Session::~Session() { ImGui::DestroyContext(); }

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
  ImGui::NewFrame();
  items_.clear();
  std::vector<Request> requests;
  Ui ui{state_, *views_, colors(), fonts_, scale_, items_, requests};
  draw_frame(ui);
  ImGui::Render();
  for (const Request request : requests) perform_(request, computer_, state_);
}

}  // namespace tpsim::gui
