// Colours of the program and of its pictures, light and dark. No ImGui here: the SVG plots use them
// too.
//
// Data colours are Okabe and Ito's eight, which people with the common kinds of colour blindness
// tell apart ("Color Universal Design", 2008); the dark theme lightens the two darkest. Colour
// never stands alone: what it says is also a position, a label or a pattern.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/plan/report.h"
#include "core/program/timeline.h"

namespace tpsim::gui {

struct Rgba {
  std::uint8_t r = 0, g = 0, b = 0, a = 255;
  friend bool operator==(const Rgba&, const Rgba&) = default;
};

enum class Theme : std::uint8_t { kLight, kDark };

// What a term of the step is about; every term belongs to one.
enum class TermClass : std::uint8_t { kCompute, kCommunication, kWaiting, kUpdate };
inline constexpr int kTermClassCount = 4;
TermClass class_of(StepTerm term);
const char* name_of(TermClass);

inline constexpr int kMemoryPartCount = kMemoryCategoryCount + 2;  // and context, fragmentation
inline constexpr int kSpanKindCount = static_cast<int>(SpanKind::kOther) + 1;
const char* memory_part_name(int part);
Bytes part_of(const StageMemory& stage, int part);

struct Palette {
  Rgba window;  // behind everything
  Rgba panel;   // a card
  Rgba raised;  // buttons, tracks of sliders, rows under the pointer
  Rgba line;    // borders and axes
  Rgba grid;
  Rgba text, dim, faint;
  Rgba accent;     // plan A, and what is chosen
  Rgba other;      // plan B
  Rgba on_accent;  // text on either
  Rgba good, warn, bad;
  std::array<Rgba, kMemoryPartCount> memory;
  std::array<Rgba, kSpanKindCount> span;
  std::array<Rgba, kTermClassCount> term;
};

const Palette& palette_of(Theme theme);

Rgba mix(Rgba from, Rgba to, double share);
Rgba with_alpha(Rgba color, double alpha);
// Black or white, whichever reads better on `background`.
Rgba readable_on(Rgba background);
std::string hex(Rgba color);  // "#0072b2", alpha left out

}  // namespace tpsim::gui
