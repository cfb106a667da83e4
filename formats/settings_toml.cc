// Parses TOML with toml++.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "core/base/text.h"
#include "formats/settings_text.h"

namespace tpsim {
namespace {

constexpr std::size_t kMostSettings = 8000;
// Maximum number of dots in a file. toml++ does not limit the nesting of tables in dotted keys, and
// destroys them recursively, which could overflow the stack.
constexpr std::ptrdiff_t kMostDots = 4000;

// Returns the byte offset of a column. Columns count UTF-8 characters and start at 1.
std::size_t offset_of(std::string_view line, std::size_t column) {
  std::size_t at = 0;
  for (; column > 1 && at < line.size(); --column) {
    do ++at;
    while (at < line.size() && (line[at] & 0xC0) == 0x80);
  }
  return at;
}

class TomlFlattener {
 public:
  explicit TomlFlattener(std::string_view text) {
    while (!text.empty()) lines_.push_back(cut_off(text, "\n"));
  }

  void flatten(const toml::node& node, const std::string& key) {
    const std::string prefix = key.empty() ? "" : key + ".";
    if (const toml::table* table = node.as_table()) {
      for (const auto& [name, value] : *table) flatten(value, prefix + std::string(name.str()));
    } else if (const toml::array* array = node.as_array()) {
      for (std::size_t i = 0; i < array->size(); ++i) {
        flatten((*array)[i], fmt::format("{}{}", prefix, i));
      }
    } else {
      out.push_back({key, value_of(node), static_cast<int>(node.source().begin.line)});
    }
  }

  std::vector<FlatSetting> out;

 private:
  // Returns the value as text. Numbers and dates are copied from the file.
  std::string value_of(const toml::node& node) const {
    if (const auto* text = node.as_string()) return text->get();
    const toml::source_region& place = node.source();
    const std::string_view line = lines_.at(place.begin.line - 1);
    const std::size_t start = offset_of(line, place.begin.column);
    return std::string(line.substr(start, offset_of(line, place.end.column) - start));
  }

  std::vector<std::string_view> lines_;
};

}  // namespace

Result<std::vector<FlatSetting>> flat_toml(std::string_view text, const std::string& file) {
  const Error too_many{ErrorKind::kBadInput, "the file has too many settings", file, ""};
  if (std::count(text.begin(), text.end(), '.') > kMostDots) return too_many;
  try {
    const toml::table table = toml::parse(text, file);
    TomlFlattener flattener(text);
    flattener.flatten(table, "");
    if (flattener.out.size() > kMostSettings) return too_many;
    // toml++ sorts tables by name. Restore the order of the file.
    std::stable_sort(flattener.out.begin(), flattener.out.end(),
                     [](const FlatSetting& a, const FlatSetting& b) { return a.line < b.line; });
    return std::move(flattener.out);
  } catch (const toml::parse_error& error) {
    return bad_input(fmt::format("cannot be read as TOML: {}", error.description()),
                     fmt::format("{}:{}", file, error.source().begin.line));
  }
}

}  // namespace tpsim
