#include "gui/draw/comparison_picture.h"

#include <algorithm>

#include "core/base/numbers.h"

namespace tpsim::gui {
namespace {

constexpr double kPictureWidth = 760, kBarsLeft = 170, kBarsRight = 640, kFirstBar = 84;
constexpr double kBarHeight = 26, kBarPitch = 46, kFoot = 30;

Seconds spent_on(const Prediction& predicted, TermClass kind) {
  Seconds sum;
  for (const StepTerm term : kStepTerms) {
    if (class_of(term) == kind) sum += time_of(predicted, term);
  }
  return sum;
}

void draw_legend(const Palette& colors, Drawing& out) {
  double x = kBarsLeft;
  for (int kind = 0; kind < kTermClassCount; ++kind) {
    const auto slot = static_cast<std::size_t>(kind);
    out.rect(x, 46, 12, 12, colors.term[slot]);
    out.text(x + 17, 57, {12, colors.dim}, name_of(static_cast<TermClass>(kind)));
    x += 125;
  }
}

// Returns the end of a name that is too long for the margin.
std::string short_end(const std::string& name) {
  constexpr double kLetter = 7.5;  // average width
  const auto most = static_cast<std::size_t>((kBarsLeft - 10) / kLetter);
  return name.size() <= most ? name : "…" + name.substr(name.size() - most + 1);
}

}  // namespace

Drawing comparison_picture(const std::vector<ComparedPlan>& plans) {
  const Palette& colors = palette_of(Theme::kLight);
  const double height = kFirstBar + kBarPitch * static_cast<double>(plans.size()) + kFoot;
  Drawing out(kPictureWidth, height, colors.panel);
  out.text(kBarsLeft, 30, {16, colors.text, Anchor::kStart, true}, "Step time by class of work");
  draw_legend(colors, out);
  Seconds longest;
  for (const ComparedPlan& plan : plans) longest = std::max(longest, plan.predicted.step_high);
  const auto x_at = [&](Seconds time) {
    return kBarsLeft + time / longest * (kBarsRight - kBarsLeft);
  };
  double y = kFirstBar;
  for (const ComparedPlan& plan : plans) {
    const Prediction& p = plan.predicted;
    out.text(kBarsLeft - 10, y + 18, {13, colors.text, Anchor::kEnd}, short_end(plan.name));
    Seconds before;
    for (int kind = 0; kind < kTermClassCount; ++kind) {
      const Seconds time = spent_on(p, static_cast<TermClass>(kind));
      out.rect(x_at(before), y, x_at(before + time) - x_at(before), kBarHeight,
               colors.term[static_cast<std::size_t>(kind)]);
      before += time;
    }
    const double whisker = y + kBarHeight + 6;
    out.line(x_at(p.step_low), whisker, x_at(p.step_high), whisker, colors.dim, 1.5);
    for (const Seconds end : {p.step_low, p.step_high}) {
      out.line(x_at(end), whisker - 3, x_at(end), whisker + 3, colors.dim, 1.5);
    }
    out.text(kBarsRight + 10, y + 18, {13, colors.text, Anchor::kStart, true}, time_text(p.step));
    y += kBarPitch;
  }
  out.text(kBarsLeft, y + 14, {12, colors.dim},
           "line below each bar: 90 % interval of the step time");
  return out;
}

}  // namespace tpsim::gui
