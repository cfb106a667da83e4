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
// array of scalars and a short object of scalars stay on one line. Invalid UTF-8 is replaced; an
// infinite number is a bug.
std::string to_text(const JsonValue& value);
// Returns the same JSON on one line, without a newline at the end.
std::string to_line(const JsonValue& value);

// Writes an object piece by piece while results arrive: begin(), item() for each element of an
// array, end(). The concatenated pieces equal to_text() of the complete object.
class GrowingJson {
 public:
  // `members`: the members before the array, at least one. `array`: key of the array.
  std::string begin(const JsonValue::Object& members, std::string_view array);
  std::string item(const JsonValue::Object& value);
  // `members`: the members after the array.
  std::string end(const JsonValue::Object& members);

 private:
  bool has_items_ = false;
};

}  // namespace tpsim
