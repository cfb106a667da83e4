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

// Okabe and Ito.
constexpr Rgba kOrange = rgb(0xE69F00), kSky = rgb(0x56B4E9), kGreen = rgb(0x009E73),
               kYellow = rgb(0xF0E442), kBlue = rgb(0x0072B2), kVermilion = rgb(0xD55E00),
               kPurple = rgb(0xCC79A7);

// weights, gradients, optimizer, activations, workspace, communication, context, fragmentation
constexpr std::array<Rgba, kMemoryPartCount> memory_colors(Rgba blue, Rgba green, Rgba grey,
                                                           Rgba pale) {
  return {blue, kSky, green, kOrange, kYellow, kPurple, grey, pale};
}
// forward, backward, transfer, gradient reduction, optimizer, parameter gather, other
constexpr std::array<Rgba, kSpanKindCount> span_colors(Rgba blue, Rgba green, Rgba grey) {
  return {blue, kOrange, kPurple, kVermilion, green, kSky, grey};
}

constexpr Palette light() {
  Palette p;
  p.window = rgb(0xEEF0F3), p.panel = rgb(0xFFFFFF), p.raised = rgb(0xE9ECF0);
  p.line = rgb(0xCBD0D8), p.grid = rgb(0xE8EBEF);
  p.text = rgb(0x16191D), p.dim = rgb(0x59616C), p.faint = rgb(0x949CA8);
  p.accent = rgb(0x0068A6), p.other = rgb(0xC25400), p.on_accent = rgb(0xFFFFFF);
  p.good = rgb(0x007A58), p.warn = rgb(0x9A6700), p.bad = rgb(0xB3261E);
  p.memory = memory_colors(kBlue, kGreen, rgb(0x6B7380), rgb(0xB9C0CA));
  p.span = span_colors(kBlue, kGreen, rgb(0x949CA8));
  p.term = {kBlue, kOrange, rgb(0xA3ABB7), kGreen};
  return p;
}

constexpr Palette dark() {
  Palette p;
  const Rgba blue = rgb(0x3B94D6), green = rgb(0x1FB88C);
  p.window = rgb(0x101215), p.panel = rgb(0x191C21), p.raised = rgb(0x282D35);
  p.line = rgb(0x3A414C), p.grid = rgb(0x262B33);
  p.text = rgb(0xE9ECF1), p.dim = rgb(0xA3ACB9), p.faint = rgb(0x6D7683);
  p.accent = rgb(0x58B1F0), p.other = rgb(0xF2883A), p.on_accent = rgb(0x0B0D10);
  p.good = rgb(0x35CFA1), p.warn = rgb(0xF0B429), p.bad = rgb(0xFF7B72);
  p.memory = memory_colors(blue, green, rgb(0x7D8693), rgb(0x4C5460));
  p.span = span_colors(blue, green, rgb(0x6D7683));
  p.term = {blue, kOrange, rgb(0x6D7683), green};
  return p;
}

constexpr Palette kLightPalette = light();
constexpr Palette kDarkPalette = dark();

double luminance(Rgba color) {
  const auto linear = [](std::uint8_t channel) { return std::pow(channel / 255.0, 2.2); };
  return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b);
}

}  // namespace

const Palette& palette_of(Theme theme) {
  return theme == Theme::kLight ? kLightPalette : kDarkPalette;
}

TermClass class_of(StepTerm term) {
  switch (term) {
    case StepTerm::kMatmul:
    case StepTerm::kAttention:
    case StepTerm::kRecurrence:
    case StepTerm::kElementwise:
    case StepTerm::kGroupedProducts:
    case StepTerm::kPermute: return TermClass::kCompute;
    case StepTerm::kTensorCommunication:
    case StepTerm::kZeroCommunication:
    case StepTerm::kContextCommunication:
    case StepTerm::kExpertCommunication:
    case StepTerm::kTransfer:
    case StepTerm::kGradientReduction:
    case StepTerm::kTiedEmbedding:
    case StepTerm::kWeightGather: return TermClass::kCommunication;
    case StepTerm::kHostWait:
    case StepTerm::kImbalance:
    case StepTerm::kBubble:
    case StepTerm::kHostStep:
    case StepTerm::kStragglers:
    case StepTerm::kUncalibratedOverhead: return TermClass::kWaiting;
    case StepTerm::kClipping:
    case StepTerm::kOptimizer: return TermClass::kUpdate;
  }
  return TermClass::kCompute;
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

Rgba readable_on(Rgba background) {
  return luminance(background) > 0.3 ? rgb(0x0B0D10) : rgb(0xFFFFFF);
}

std::string hex(Rgba color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.r, color.g, color.b);
}

}  // namespace tpsim::gui
