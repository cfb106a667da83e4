// Colors of the program and of its pictures, light and dark. This header does not depend on ImGui,
// because SVG plots use the colors too.
//
// Data colors are those of Okabe and Ito ("Color Universal Design", 2008), which people with common
// kinds of color blindness can distinguish. The dark theme lightens the two darkest. No information
// is shown by color alone: there is also a position, a label or a pattern.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/plan/report.h"
#include "core/plan/term_class.h"
#include "core/program/timeline.h"

namespace tpsim::gui {

struct Rgba {
  std::uint8_t r = 0, g = 0, b = 0, a = 255;
  friend bool operator==(const Rgba&, const Rgba&) = default;
};

enum class Theme : std::uint8_t { kLight, kDark };

const char* name_of(TermClass);

inline constexpr int kMemoryPartCount = kMemoryCategoryCount + 2;  // plus context and fragmentation
inline constexpr int kSpanKindCount = static_cast<int>(SpanKind::kOther) + 1;
const char* memory_part_name(int part);
Bytes part_of(const StageMemory& stage, int part);

struct Palette {
  Rgba window;  // background of the window
  Rgba panel;   // a card
  Rgba raised;  // buttons, slider tracks, hovered rows
  Rgba line;    // borders and axes
  Rgba grid;
  Rgba text, dim, faint;  // text colors with a contrast of at least 4.5 on each background above
  Rgba mark;              // points and lines without emphasis, never text
  Rgba accent;            // plan A, and selected items
  Rgba other;             // plan B
  Rgba on_accent;         // text on `accent` or `other`
  Rgba good, warn, bad;
  std::array<Rgba, kMemoryPartCount> memory;
  std::array<Rgba, kSpanKindCount> span;
  std::array<Rgba, kTermClassCount> term;
};

const Palette& palette_of(Theme theme);

// Opacity of disabled controls.
inline constexpr double kDisabledAlpha = 0.75;

Rgba mix(Rgba from, Rgba to, double share);
Rgba with_alpha(Rgba color, double alpha);
// Returns the contrast ratio of two opaque colors, from 1 to 21 (WCAG 2.1).
double contrast(Rgba a, Rgba b);
// Returns black or white, whichever has more contrast on `background`.
Rgba readable_on(Rgba background);
std::string hex(Rgba color);  // "#0072b2", without alpha

}  // namespace tpsim::gui
