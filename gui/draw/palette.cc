#include "gui/draw/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tpsim::gui {
namespace {

constexpr Rgba rgb(std::uint32_t code) {
  return {static_cast<std::uint8_t>(code >> 16), static_cast<std::uint8_t>(code >> 8),
          static_cast<std::uint8_t>(code), 255};
}

// Colors of Okabe and Ito.
constexpr Rgba kOrange = rgb(0xE69F00), kSky = rgb(0x56B4E9), kGreen = rgb(0x009E73),
               kYellow = rgb(0xF0E442), kBlue = rgb(0x0072B2), kVermilion = rgb(0xD55E00),
               kPurple = rgb(0xCC79A7);
constexpr Rgba kViolet = rgb(0x8465B8);  // a ninth color, for gradient clipping
constexpr Rgba kTan = rgb(0xB9915A);     // for weight gradients, next to backward's orange

// Order: weights, gradients, optimizer, activations, workspace, communication, context,
// fragmentation.
constexpr std::array<Rgba, kMemoryPartCount> memory_colors(Rgba blue, Rgba green, Rgba grey,
                                                           Rgba pale) {
  return {blue, kSky, green, kOrange, kYellow, kPurple, grey, pale};
}
// Colors in the order of SpanKind. `greys`: host step, stragglers, uncalibrated overhead, other.
constexpr std::array<Rgba, kSpanKindCount> span_colors(Rgba blue, Rgba green,
                                                       const std::array<Rgba, 4>& greys) {
  return {blue,  kOrange, kTan,     kPurple,  kVermilion, kYellow, kViolet,
          green, kSky,    greys[0], greys[1], greys[2],   greys[3]};
}

constexpr Palette light() {
  Palette p;
  p.window = rgb(0xEEF0F3), p.panel = rgb(0xFFFFFF), p.raised = rgb(0xE9ECF0);
  p.line = rgb(0xCBD0D8), p.grid = rgb(0xE8EBEF);
  p.text = rgb(0x16191D), p.dim = rgb(0x59616C), p.faint = rgb(0x616974), p.mark = rgb(0x949CA8);
  p.accent = rgb(0x0068A6), p.other = rgb(0xB04A00), p.on_accent = rgb(0xFFFFFF);
  p.good = rgb(0x007A58), p.warn = rgb(0x8A5C00), p.bad = rgb(0xB3261E);
  p.memory = memory_colors(kBlue, kGreen, rgb(0x6B7380), rgb(0xB9C0CA));
  p.span = span_colors(kBlue, kGreen, {rgb(0x3F4650), rgb(0xA3ABB7), rgb(0xCBD0D8), rgb(0x6B7380)});
  p.term = {kBlue, kOrange, rgb(0xA3ABB7), kGreen};
  return p;
}

constexpr Palette dark() {
  Palette p;
  const Rgba blue = rgb(0x3B94D6), green = rgb(0x1FB88C);
  p.window = rgb(0x101215), p.panel = rgb(0x191C21), p.raised = rgb(0x282D35);
  p.line = rgb(0x3A414C), p.grid = rgb(0x262B33);
  p.text = rgb(0xE9ECF1), p.dim = rgb(0xA3ACB9), p.faint = rgb(0x8F98A5), p.mark = rgb(0x6D7683);
  p.accent = rgb(0x58B1F0), p.other = rgb(0xF2883A), p.on_accent = rgb(0x0B0D10);
  p.good = rgb(0x35CFA1), p.warn = rgb(0xF0B429), p.bad = rgb(0xFF7B72);
  p.memory = memory_colors(blue, green, rgb(0x7D8693), rgb(0x4C5460));
  p.span = span_colors(blue, green, {rgb(0xC4CAD3), rgb(0x7D8693), rgb(0x525A66), rgb(0x9AA3AF)});
  p.term = {blue, kOrange, rgb(0x6D7683), green};
  return p;
}

constexpr Palette kLightPalette = light();
constexpr Palette kDarkPalette = dark();

// Relative luminance (WCAG 2.1).
double luminance(Rgba color) {
  const auto linear = [](std::uint8_t channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b);
}

}  // namespace

const Palette& palette_of(Theme theme) {
  return theme == Theme::kLight ? kLightPalette : kDarkPalette;
}

const char* name_of(TermClass kind) {
  switch (kind) {
    case TermClass::kCompute: return "compute";
    case TermClass::kCommunication: return "communication";
    case TermClass::kWaiting: return "waiting";
    case TermClass::kUpdate: return "update";
  }
  return "?";
}

const char* memory_part_name(int part) {
  if (part == kMemoryCategoryCount) return "context";
  if (part == kMemoryCategoryCount + 1) return "fragmentation";
  return name_of(static_cast<MemoryCategory>(part)).data();  // null-terminated literal
}

Bytes part_of(const StageMemory& stage, int part) {
  if (part == kMemoryCategoryCount) return stage.context;
  if (part == kMemoryCategoryCount + 1) return stage.fragmentation;
  return stage.by_category[static_cast<std::size_t>(part)];
}

Rgba mix(Rgba from, Rgba to, double share) {
  const auto channel = [&](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + (b - a) * std::clamp(share, 0.0, 1.0)));
  };
  return {channel(from.r, to.r), channel(from.g, to.g), channel(from.b, to.b),
          channel(from.a, to.a)};
}

Rgba with_alpha(Rgba color, double alpha) {
  color.a = static_cast<std::uint8_t>(std::lround(color.a * std::clamp(alpha, 0.0, 1.0)));
  return color;
}

double contrast(Rgba a, Rgba b) {
  const auto [dark, light] = std::minmax({luminance(a), luminance(b)});
  return (light + 0.05) / (dark + 0.05);
}

Rgba readable_on(Rgba background) {
  const Rgba black = rgb(0x000000), white = rgb(0xFFFFFF);
  return contrast(black, background) >= contrast(white, background) ? black : white;
}

std::string hex(Rgba color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.r, color.g, color.b);
}

}  // namespace tpsim::gui
