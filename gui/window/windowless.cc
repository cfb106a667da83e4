#include "gui/window/windowless.h"

#include <imgui.h>

#include "gui/draw/rasteriser.h"
#include "gui/panels/keys.h"

namespace tpsim::gui {

WindowlessHost::WindowlessHost(Catalogue catalogue, AppState state, int width, int height)
    : session_(std::move(catalogue), search_, std::move(state)), width_(width), height_(height) {
  map_keys();
  ImGui::GetIO().MousePos = {-1, -1};
  // ImGui's indices have 16 bits. With vertex offsets a draw list may have more vertices, as a full
  // timeline needs.
  ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
}

void WindowlessHost::frame() {
  session_.frame(static_cast<float>(width_), static_cast<float>(height_), 1.0F / 60);
}

void WindowlessHost::resize(int width, int height) {
  width_ = width;
  height_ = height;
}

Picture WindowlessHost::picture() {
  Picture picture(width_, height_, session_.colors().window);
  rasterise(*ImGui::GetDrawData(), *ImGui::GetIO().Fonts, picture);
  return picture;
}

}  // namespace tpsim::gui
