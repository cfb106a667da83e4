#include "gui/draw/rasteriser.h"

#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tpsim::gui {
namespace {

struct Atlas {
  const unsigned char* alpha = nullptr;
  int width = 0, height = 0;

  // Bilinear interpolation between texel centers.
  float sample(float u, float v) const {
    const float x = u * static_cast<float>(width) - 0.5F, y = v * static_cast<float>(height) - 0.5F;
    const float left = std::floor(x), top = std::floor(y);
    const float fx = x - left, fy = y - top;
    const auto texel = [&](float column, float row) {
      const int i = std::clamp(static_cast<int>(column), 0, width - 1);
      const int j = std::clamp(static_cast<int>(row), 0, height - 1);
      return static_cast<float>(alpha[j * width + i]) / 255.0F;
    };
    const float upper = texel(left, top) * (1 - fx) + texel(left + 1, top) * fx;
    const float lower = texel(left, top + 1) * (1 - fx) + texel(left + 1, top + 1) * fx;
    return upper * (1 - fy) + lower * fy;
  }
};

struct Clip {
  int left, top, right, bottom;
};

// Values interpolated over a triangle: u, v, red, green, blue, alpha.
using Varying = std::array<float, 6>;

Varying varying_of(const ImDrawVert& vertex) {
  const auto channel = [&](int shift) { return static_cast<float>((vertex.col >> shift) & 0xFF); };
  return {vertex.uv.x,
          vertex.uv.y,
          channel(IM_COL32_R_SHIFT),
          channel(IM_COL32_G_SHIFT),
          channel(IM_COL32_B_SHIFT),
          channel(IM_COL32_A_SHIFT)};
}

void blend(Rgba& pixel, float red, float green, float blue, float alpha) {
  const auto over = [&](std::uint8_t below, float above) {
    return static_cast<std::uint8_t>(
        std::lround(static_cast<float>(below) + (above - static_cast<float>(below)) * alpha));
  };
  pixel = {over(pixel.r, red), over(pixel.g, green), over(pixel.b, blue), 255};
}

class Triangle {
 public:
  Triangle(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c) : corners_{a, b, c} {
    if (twice_area() < 0) std::swap(corners_[1], corners_[2]);
    area_ = twice_area();
    is_flat_ = a.uv.x == b.uv.x && a.uv.x == c.uv.x && a.uv.y == b.uv.y && a.uv.y == c.uv.y;
  }

  void draw(const Atlas& atlas, const Clip& clip, Picture& picture) const {
    if (!(area_ > 0)) return;
    const auto [left, right] =
        std::minmax({corners_[0].pos.x, corners_[1].pos.x, corners_[2].pos.x});
    const auto [top, bottom] =
        std::minmax({corners_[0].pos.y, corners_[1].pos.y, corners_[2].pos.y});
    const int first_row = std::max(clip.top, static_cast<int>(std::floor(top)));
    const int last_row = std::min(clip.bottom, static_cast<int>(std::ceil(bottom)));
    const int first = std::max(clip.left, static_cast<int>(std::floor(left)));
    const int last = std::min(clip.right, static_cast<int>(std::ceil(right)));
    const std::array<Varying, 3> ends = {varying_of(corners_[0]), varying_of(corners_[1]),
                                         varying_of(corners_[2])};
    const float flat = is_flat_ ? atlas.sample(ends[0][0], ends[0][1]) : 0;
    for (int y = first_row; y < last_row; ++y) {
      for (int x = first; x < last; ++x) {
        std::array<float, 3> weight{};
        if (!covers({static_cast<float>(x) + 0.5F, static_cast<float>(y) + 0.5F}, weight)) continue;
        Varying v{};
        for (std::size_t i = 0; i < v.size(); ++i) {
          v[i] = weight[0] * ends[0][i] + weight[1] * ends[1][i] + weight[2] * ends[2][i];
        }
        const float alpha = (is_flat_ ? flat : atlas.sample(v[0], v[1])) * v[5] / 255.0F;
        if (alpha > 0) blend(picture.at(x, y), v[2], v[3], v[4], alpha);
      }
    }
  }

 private:
  static float edge(ImVec2 a, ImVec2 b, ImVec2 p) {
    return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
  }
  float twice_area() const { return edge(corners_[0].pos, corners_[1].pos, corners_[2].pos); }

  // A pixel on an edge belongs to the triangle only if it is a top or left edge. Adjacent triangles
  // therefore never draw the same pixel.
  static bool owns_edge(ImVec2 a, ImVec2 b) { return (a.y == b.y && b.x > a.x) || b.y < a.y; }

  bool covers(ImVec2 p, std::array<float, 3>& weight) const {
    for (std::size_t i = 0; i < 3; ++i) {
      const ImVec2 a = corners_[(i + 1) % 3].pos, b = corners_[(i + 2) % 3].pos;
      const float e = edge(a, b, p);
      if (e < 0 || (e == 0 && !owns_edge(a, b))) return false;
      weight[i] = e / area_;
    }
    return true;
  }

  std::array<ImDrawVert, 3> corners_;
  float area_ = 0;
  bool is_flat_ = false;
};

}  // namespace

void rasterise(const ImDrawData& data, ImFontAtlas& atlas, Picture& picture) {
  unsigned char* alpha = nullptr;
  Atlas texture;
  atlas.GetTexDataAsAlpha8(&alpha, &texture.width, &texture.height);
  texture.alpha = alpha;
  for (int l = 0; l < data.CmdListsCount; ++l) {
    const ImDrawList& list = *data.CmdLists[l];
    for (const ImDrawCmd& command : list.CmdBuffer) {
      if (command.UserCallback != nullptr) continue;
      const Clip clip{std::max(0, static_cast<int>(command.ClipRect.x)),
                      std::max(0, static_cast<int>(command.ClipRect.y)),
                      std::min(picture.width, static_cast<int>(std::ceil(command.ClipRect.z))),
                      std::min(picture.height, static_cast<int>(std::ceil(command.ClipRect.w)))};
      const ImDrawIdx* index = list.IdxBuffer.Data + command.IdxOffset;
      const ImDrawVert* vertices = list.VtxBuffer.Data + command.VtxOffset;
      for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
        Triangle(vertices[index[i]], vertices[index[i + 1]], vertices[index[i + 2]])
            .draw(texture, clip, picture);
      }
    }
  }
}

}  // namespace tpsim::gui
