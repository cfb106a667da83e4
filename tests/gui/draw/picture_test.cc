// Pictures of the CPU renderer: equal on every run, close to the stored ones, readable.
#include <png.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "gui/draw/comparison_picture.h"
#include "gui/draw/rasteriser.h"
#include "gui/draw/scaling_picture.h"
#include "gui/views/choice.h"
#include "gui/views/plan_picture.h"
#include "plans/search/search.h"
#include "tests/gui/gui_fixture.h"

namespace tpsim::gui {
namespace {

Picture picture_of(AppState state, int width, int height) {
  GuiFixture gui(std::move(state), width, height);
  REQUIRE(gui.run("wait") == "");
  return gui.host().picture();
}

// Returns the boxes of a drawing's texts in the program's typeface, without ascenders' margins.
std::vector<Rect> text_boxes(const Drawing& drawing) {
  const ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  std::vector<Rect> boxes;
  for (const DrawnShape& shape : drawing.shapes()) {
    if (shape.kind != ShapeKind::kText) continue;
    const ImFont* const font = atlas.Fonts[shape.is_bold ? 2 : 0];
    const auto size = static_cast<float>(shape.numbers[2]);
    constexpr float kHeightOfSize = 3408.0F / 2816.0F;  // ascender to descender of Inter
    const float width = font->CalcTextSizeA(size * kHeightOfSize, FLT_MAX, 0, shape.words.data(),
                                            shape.words.data() + shape.words.size())
                            .x;
    const float left =
        static_cast<float>(shape.numbers[0]) - width * static_cast<float>(shape.anchor) / 2;
    const auto baseline = static_cast<float>(shape.numbers[1]);
    boxes.push_back({{left, baseline - 0.73F * size}, {left + width, baseline}});
  }
  return boxes;
}

Result<Picture> read_png(const std::filesystem::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) {
    return bad_input(std::string("is not a readable PNG file: ") + image.message, path.string());
  }
  image.format = PNG_FORMAT_RGBA;
  Picture picture(static_cast<int>(image.width), static_cast<int>(image.height), {});
  static_assert(sizeof(Rgba) == 4);
  if (png_image_finish_read(&image, nullptr, picture.pixels.data(), 0, nullptr) == 0) {
    png_image_free(&image);
    return bad_input(std::string("is not a readable PNG file: ") + image.message, path.string());
  }
  return picture;
}

// Returns the fraction of pixels that differ by more than `tolerance` (0 to 255) in some channel; 1
// if the sizes differ.
double difference(const Picture& a, const Picture& b, int tolerance) {
  if (a.width != b.width || a.height != b.height) return 1;
  std::size_t different = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) {
    const Rgba& x = a.pixels[i];
    const Rgba& y = b.pixels[i];
    const int most = std::max({std::abs(x.r - y.r), std::abs(x.g - y.g), std::abs(x.b - y.b)});
    if (most > tolerance) ++different;
  }
  return static_cast<double>(different) /
         static_cast<double>(std::max<std::size_t>(1, a.pixels.size()));
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
  if (std::getenv("TPSIM_REGENERATE_GOLDEN") != nullptr) REQUIRE(write_png(stored, now).ok());
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

TEST_CASE("no text of a plot leaves the picture or covers another") {
  SearchSpace space;
  space.gpus = 64;
  space.global_batch = 256;
  Choice choice;
  choice.model = "mixtral-8x7b";
  choice.cluster = "dgx-h100";
  const auto loaded = load_choice(Catalogue(std::string(TPSIM_SOURCE_DIR) + "/data"), choice);
  REQUIRE(loaded.ok());
  const auto found = search(loaded->scenario, space, 20, {});
  REQUIRE(found.ok());
  const auto plans = plan_picture(loaded->scenario, found->plans, 1'234'567'890);
  REQUIRE(plans.ok());
  std::vector<ComparedPlan> compared;
  for (const char* name : {"a.json", "a/long/path/to/the/plans/of/our/next/run.json"}) {
    compared.push_back({name, found->plans.front().predicted});
  }
  const std::vector<ScalingPoint> points = {{64, 1e9}, {128, 1.9e9}, {1024, 1.1e10}};
  GuiFixture gui;  // has the typeface
  REQUIRE(gui.run("wait 1") == "");
  for (const Drawing& drawing : {*plans, comparison_picture(compared),
                                 scaling_picture("mixtral-8x7b", "dgx-h100", points)}) {
    const std::vector<Rect> boxes = text_boxes(drawing);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      INFO(drawing.shapes()[0].numbers[2] << " wide, text " << i);
      CHECK(boxes[i].min.x >= 0);
      CHECK(boxes[i].max.x <= static_cast<float>(drawing.width()));
      CHECK(boxes[i].max.y <= static_cast<float>(drawing.height()));
      for (std::size_t k = 0; k < i; ++k) {
        const bool is_over =
            std::min(boxes[i].max.x, boxes[k].max.x) >
                std::max(boxes[i].min.x, boxes[k].min.x) + 1 &&
            std::min(boxes[i].max.y, boxes[k].max.y) > std::max(boxes[i].min.y, boxes[k].min.y) + 1;
        CHECK_FALSE(is_over);
      }
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
