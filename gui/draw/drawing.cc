#include "gui/draw/drawing.h"

#include <array>
#include <optional>

namespace tpsim::gui {
namespace {

constexpr std::string_view kFormat = "tpsim-drawing/1";
// Number of values per shape, by ShapeKind; for kRects, per rectangle.
constexpr std::array<std::size_t, 6> kNumbers = {4, 5, 5, 3, 3, 3};

bool is_whole(const DrawnShape& shape) {
  const std::size_t expected = kNumbers[static_cast<std::size_t>(shape.kind)];
  if (shape.kind == ShapeKind::kRects) return shape.numbers.size() % expected == 0;
  return shape.numbers.size() == expected;
}

JsonValue json_of(const DrawnShape& shape) {
  const Rgba c = shape.color;
  JsonValue::Array numbers(shape.numbers.begin(), shape.numbers.end());
  return json_object({{"kind", static_cast<int>(shape.kind)},
                      {"color", JsonValue::Array{c.r, c.g, c.b, c.a}},
                      {"numbers", std::move(numbers)},
                      {"words", shape.words},
                      {"anchor", static_cast<int>(shape.anchor)},
                      {"bold", shape.is_bold}});
}

std::optional<double> number_in(const JsonValue* value) {
  if (value == nullptr) return std::nullopt;
  if (const double* real = value->as<double>()) return *real;
  if (const std::int64_t* whole = value->as<std::int64_t>()) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<std::vector<double>> numbers_in(const JsonValue* value) {
  const auto* array = value == nullptr ? nullptr : value->as<JsonValue::Array>();
  if (array == nullptr) return std::nullopt;
  std::vector<double> numbers;
  for (const JsonValue& element : *array) {
    const auto number = number_in(&element);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

std::optional<DrawnShape> shape_from(const JsonValue& value) {
  const auto kind = number_in(value.find("kind")), anchor = number_in(value.find("anchor"));
  const auto color = numbers_in(value.find("color"));
  auto numbers = numbers_in(value.find("numbers"));
  const JsonValue* words = value.find("words");
  const JsonValue* bold = value.find("bold");
  if (!kind || *kind < 0 || *kind > 5 || !anchor || *anchor < 0 || *anchor > 2 || !color ||
      color->size() != 4 || !numbers || words == nullptr || words->as<std::string>() == nullptr ||
      bold == nullptr || bold->as<bool>() == nullptr) {
    return std::nullopt;
  }
  const auto channel = [&](std::size_t i) { return static_cast<std::uint8_t>((*color)[i]); };
  DrawnShape shape{static_cast<ShapeKind>(*kind), {channel(0), channel(1), channel(2), channel(3)},
                   std::move(*numbers),           *words->as<std::string>(),
                   static_cast<Anchor>(*anchor),  *bold->as<bool>()};
  if (!is_whole(shape)) return std::nullopt;
  return shape;
}

}  // namespace

Drawing::Drawing(double width, double height, Rgba background) : width_(width), height_(height) {
  rect(0, 0, width, height, background);
}

void Drawing::rect(double x, double y, double width, double height, Rgba color) {
  rects({x, y, width, height}, color);
}

void Drawing::rects(std::vector<double> numbers, Rgba color) {
  shapes_.push_back({ShapeKind::kRects, color, std::move(numbers)});
}

void Drawing::line(double x1, double y1, double x2, double y2, Rgba color, double thickness) {
  shapes_.push_back({ShapeKind::kLine, color, {x1, y1, x2, y2, thickness}});
}

void Drawing::dashes(double x1, double y1, double x2, double y2, Rgba color, double thickness) {
  shapes_.push_back({ShapeKind::kDashes, color, {x1, y1, x2, y2, thickness}});
}

void Drawing::circle(double x, double y, double radius, Rgba color) {
  shapes_.push_back({ShapeKind::kCircle, color, {x, y, radius}});
}

void Drawing::ring(double x, double y, double radius, Rgba color) {
  shapes_.push_back({ShapeKind::kRing, color, {x, y, radius}});
}

void Drawing::text(double x, double y, const TextStyle& style, std::string_view words) {
  shapes_.push_back({ShapeKind::kText,
                     style.color,
                     {x, y, style.size},
                     std::string(words),
                     style.anchor,
                     style.is_bold});
}

JsonValue json_of(const Drawing& drawing) {
  return json_object(
      {{"format", kFormat},
       {"width", drawing.width()},
       {"height", drawing.height()},
       {"shapes", json_array(drawing.shapes(), [](const DrawnShape& s) { return json_of(s); })}});
}

Result<Drawing> drawing_from(const JsonValue& root, const std::string& file) {
  const Error foreign{ErrorKind::kBadInput, "is not a drawing of tpsim", file, ""};
  const auto width = number_in(root.find("width")), height = number_in(root.find("height"));
  const JsonValue* shapes = root.find("shapes");
  constexpr double kMost = 8192;
  if (!width || !height || !(*width >= 1 && *width <= kMost && *height >= 1 && *height <= kMost) ||
      shapes == nullptr || shapes->as<JsonValue::Array>() == nullptr) {
    return foreign;
  }
  Drawing drawing;
  drawing.width_ = *width;
  drawing.height_ = *height;
  for (const JsonValue& value : *shapes->as<JsonValue::Array>()) {
    auto shape = shape_from(value);
    if (!shape) return foreign;
    drawing.shapes_.push_back(std::move(*shape));
  }
  return drawing;
}

}  // namespace tpsim::gui
