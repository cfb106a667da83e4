// JSON text to JsonValue and back.
//
// The parser refuses what no honest file holds: more than 64 levels, 64 MiB or four million values,
// text that is not UTF-8, a key twice in one object, a number that no double or 64-bit integer
// holds. The error names file and line. The only user of nlohmann_json.
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

// `file` is only a name for error messages.
Result<JsonValue> parse_json(std::string_view text, const std::string& file);
Result<JsonValue> read_json_file(const std::filesystem::path& path);

// Indented text that ends with a newline and parses back to the same values, numbers exactly. An
// array of plain values stays on one line, and so does a short object of them. Text that is not
// UTF-8 gets replacement characters; an infinite number is a bug.
std::string to_text(const JsonValue& value);
// The same on one line, without a newline at its end.
std::string to_line(const JsonValue& value);

// The text of an object with an array that grows, in pieces to print as they become known. Together
// they are what to_text() makes of the whole.
class GrowingJson {
 public:
  // The members before the array: one at least.
  std::string begin(const JsonValue::Object& members, std::string_view array);
  std::string item(const JsonValue::Object& value);
  // The members after it.
  std::string end(const JsonValue::Object& members);

 private:
  bool has_items_ = false;
};

}  // namespace tpsim
