// Pictures of the CPU renderer: equal on every run, close to the stored ones, readable.
#include <filesystem>

#include "gui/draw/rasteriser.h"
#include "tests/gui/gui_fixture.h"

namespace tpsim::gui {
namespace {

Picture picture_of(AppState state, int width, int height) {
  GuiFixture gui(std::move(state), width, height);
  REQUIRE(gui.run("wait") == "");
  return gui.host().picture();
}

}  // namespace

TEST_CASE("two runs draw the same pixels") {
  CHECK(difference(picture_of(small_state(), 800, 600), picture_of(small_state(), 800, 600), 0) ==
        0);
}

TEST_CASE("the picture is close to the stored one, apart from fonts") {
  const std::filesystem::path stored =
      std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/gui/draw/pictures/small.png";
  const Picture now = picture_of(small_state(), 1280, 800);
  const auto before = read_png(stored);
  REQUIRE(before.ok());
  // Predictions change with their constants. A missing panel changes far more than this.
  CHECK(difference(now, *before, 48) < 0.08);
}

TEST_CASE("dark and light differ nearly everywhere, sizes from small to large are drawn whole") {
  AppState dark = small_state();
  dark.theme = Theme::kDark;
  CHECK(difference(picture_of(small_state(), 1280, 800), picture_of(dark, 1280, 800), 32) > 0.9);
  for (const auto& [width, height] : {std::pair(640, 480), std::pair(2560, 1440)}) {
    const Picture picture = picture_of(small_state(), width, height);
    CHECK(picture.width == width);
  }
}

TEST_CASE("the embedded typeface has every letter of the panels, and few others") {
  GuiFixture gui;
  REQUIRE(gui.run("wait 1") == "");
  for (const ImFont* font : ImGui::GetIO().Fonts->Fonts) {
    for (ImWchar letter = 0x20; letter < 0x100; ++letter) {
      if (letter >= 0x7F && letter <= 0x9F) continue;  // control characters
      INFO(letter);
      CHECK(font->FindGlyphNoFallback(letter) != nullptr);
    }
    for (const ImWchar letter : u"–—‘’“”•…←↑→↓−≈≤≥▲▼") {
      INFO(letter);
      CHECK((letter == 0 || font->FindGlyphNoFallback(letter) != nullptr));
    }
  }
}

TEST_CASE("adjacent triangles cover every pixel once") {
  // Two half-transparent halves of a square: a pixel drawn twice would be darker.
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;
  unsigned char* alpha = nullptr;
  int width = 0, height = 0;
  ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&alpha, &width, &height);
  ImGui::GetIO().DisplaySize = {16, 16};
  ImGui::NewFrame();
  ImGui::GetForegroundDrawList()->AddRectFilled({3, 4}, {11, 12}, IM_COL32(0, 0, 0, 128));
  ImGui::Render();
  Picture picture(16, 16, {255, 255, 255, 255});
  rasterise(*ImGui::GetDrawData(), *ImGui::GetIO().Fonts, picture);
  ImGui::DestroyContext();
  int drawn = 0;
  for (const Rgba& pixel : picture.pixels) {
    if (pixel.r == 255) continue;
    CHECK(pixel.r == Approx(127).margin(1));
    ++drawn;
  }
  CHECK(drawn == 64);
}

}  // namespace tpsim::gui
