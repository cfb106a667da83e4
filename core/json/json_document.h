// JSON text to JsonValue and back.
//
// The parser rejects depths above 64 levels, more than 64 MiB or four million values, and text that
// is not UTF-8. It also rejects duplicate keys in an object, and numbers beyond a double or a
// 64-bit integer. Errors name file and line. The only user of nlohmann_json.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/json_value.h"

namespace tpsim {

inline constexpr std::size_t kMostJsonBytes = std::size_t{64} << 20;
inline constexpr int kMostJsonDepth = 64;
inline constexpr std::size_t kMostJsonValues = 4'000'000;

// `file` is only used in error messages.
Result<JsonValue> parse_json(std::string_view text, const std::string& file);
Result<JsonValue> read_json_file(const std::filesystem::path& path);

// Returns indented text that ends with a newline and parses back to exactly the same values. An
// array of plain values and a short object of plain values stay on one line. Invalid UTF-8 is
// replaced; an infinite number is a bug.
std::string to_text(const JsonValue& value);
// The same on one line, without a newline at the end.
std::string to_line(const JsonValue& value);

// Writes an object whose last array grows, piece by piece, for output while results arrive. The
// pieces together equal to_text() of the whole.
class GrowingJson {
 public:
  // The members before the array; at least one.
  std::string begin(const JsonValue::Object& members, std::string_view array);
  std::string item(const JsonValue::Object& value);
  // The members after the array.
  std::string end(const JsonValue::Object& members);

 private:
  bool has_items_ = false;
};

}  // namespace tpsim
