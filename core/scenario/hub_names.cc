#include "core/scenario/hub_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/json/json_fields.h"
#include "core/model/model_support.h"

namespace tpsim {
namespace {

std::string without_separators(std::string_view name) {
  std::string kept(name);
  std::erase_if(kept, [](char c) { return c == '-' || c == '_' || c == '.' || c == ' '; });
  return kept;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes a date of four, six or eight digits at the end: "-0528", "-2507", "-250120", "-20250120".
std::optional<std::string> without_date(const std::string& name) {
  std::size_t digits = 0;
  while (digits < name.size() && is_digit(name[name.size() - 1 - digits])) ++digits;
  const bool is_date = digits == 4 || digits == 6 || digits == 8;
  if (!is_date || digits >= name.size() || name[name.size() - 1 - digits] != '-') {
    return std::nullopt;
  }
  return name.substr(0, name.size() - digits - 1);
}

// Removes a version: "-v1", "-v0.1", "-v2.5".
std::optional<std::string> without_version(const std::string& name) {
  const std::size_t at = name.rfind("-v");
  if (at == std::string::npos || at + 2 >= name.size() || at == 0) return std::nullopt;
  const bool is_version = std::all_of(name.begin() + static_cast<std::ptrdiff_t>(at) + 2,
                                      name.end(), [](char c) { return is_digit(c) || c == '.'; });
  return is_version ? std::optional(name.substr(0, at)) : std::nullopt;
}

// Returns the names that remain after one rule removes a part of `name`, the most reliable rule
// first.
std::vector<std::string> shorter_names(const HubNames& rules, const std::string& name) {
  std::vector<std::string> names;
  for (const std::string& ending : rules.endings) {
    if (name.size() > ending.size() && name.ends_with(ending)) {
      names.push_back(name.substr(0, name.size() - ending.size()));
    }
  }
  if (const auto plain = without_date(name)) names.push_back(*plain);
  for (const std::string& beginning : rules.beginnings) {
    if (name.size() > beginning.size() && name.starts_with(beginning)) {
      names.push_back(name.substr(beginning.size()));
    }
  }
  for (const std::string& word : rules.words) {
    const std::size_t at = name.find("-" + word + "-");
    if (at == std::string::npos) continue;
    names.push_back(name.substr(0, at) + name.substr(at + 1 + word.size()));
  }
  if (const auto plain = without_version(name)) names.push_back(*plain);
  return names;
}

std::optional<std::string> known_name(const HubNames& rules, const std::string& name,
                                      const std::vector<std::string>& entries) {
  if (std::binary_search(entries.begin(), entries.end(), name)) return name;
  const auto alike = std::find_if(entries.begin(), entries.end(), [&](const std::string& entry) {
    return is_same_name(name, entry);
  });
  if (alike != entries.end()) return *alike;
  const auto shape =
      std::find_if(rules.shapes.begin(), rules.shapes.end(),
                   [&](const HubShape& one) { return is_same_name(name, one.name); });
  const bool has_shape = shape != rules.shapes.end() &&
                         std::binary_search(entries.begin(), entries.end(), shape->shape);
  return has_shape ? std::optional(shape->shape) : std::nullopt;
}

}  // namespace

Result<HubNames> hub_names_from_json(const JsonValue& root, const std::string& file) {
  return spec_from_json<HubNames>(root, file, [](auto& io, auto& names) {
    std::string source;
    io.format("tpsim-hub-names/1");
    io.text("source", source);
    io.texts("endings", names.endings);
    io.texts("words", names.words);
    io.texts("beginnings", names.beginnings);
    io.objects("shapes", names.shapes, [](auto& inner, auto& shape) {
      inner.text("name", shape.name);
      inner.text("shape", shape.shape);
    });
    io.objects("families", names.families, [](auto& inner, auto& one) {
      inner.text("name", one.name);
      inner.text("family", one.family);
    });
  });
}

std::string nearest_model(const HubNames& rules, const std::string& stem,
                          const std::vector<std::string>& entries) {
  constexpr std::size_t kLeastLetters = 3;
  const std::string wanted = without_separators(stem);
  std::string nearest, family;
  std::size_t longest = 0;
  for (const std::string& entry : entries) {
    const std::string known = without_separators(entry);
    const auto ends = std::mismatch(known.begin(), known.end(), wanted.begin(), wanted.end());
    const auto common = static_cast<std::size_t>(ends.first - known.begin());
    if (common < kLeastLetters || common <= longest) continue;
    longest = common;
    nearest = entry;
  }
  const std::size_t of_entry = longest;
  const auto compare = [&](std::string_view name, std::string_view type) {
    const std::string known = without_separators(name);
    if (known.size() < longest || !wanted.starts_with(known)) return;
    longest = known.size();
    const std::string_view reason = why_unplanned(type);
    family = reason.empty() ? fmt::format("models of the family {}", type)
                            : fmt::format("the family {}, not supported: it has {}", type, reason);
  };
  for (const std::string_view type : huggingface_types()) {
    compare(type.substr(0, type.find("_text")), type);
  }
  for (const HubFamily& one : rules.families) compare(one.name, one.family);
  if (family.empty()) return nearest;
  return nearest.empty() || of_entry < longest ? family : nearest + " and " + family;
}

std::string hub_stem(std::string_view name) {
  return in_lower_case(std::string(name.substr(name.find_last_of('/') + 1)));
}

bool is_same_name(std::string_view stem, std::string_view entry) {
  return without_separators(stem) == without_separators(entry);
}

std::optional<std::string> entry_with_shape(const HubNames& rules, const std::string& stem,
                                            const std::vector<std::string>& entries) {
  // Applies the rules to their own results too, because a name may have several removable parts.
  constexpr std::size_t kMostTried = 64;
  std::vector<std::string> tried = {stem};
  for (std::size_t i = 0; i < tried.size(); ++i) {
    if (const auto known = known_name(rules, tried[i], entries)) return known;
    for (std::string& shorter : shorter_names(rules, std::string(tried[i]))) {
      const bool is_new = std::find(tried.begin(), tried.end(), shorter) == tried.end();
      if (is_new && tried.size() < kMostTried) tried.push_back(std::move(shorter));
    }
  }
  for (const std::string& name : tried) {
    std::optional<std::string> longer;
    std::int64_t count = 0;
    for (const std::string& entry : entries) {
      if (!entry.starts_with(name + "-")) continue;
      longer = entry;
      ++count;
    }
    if (count == 1) return longer;
  }
  return std::nullopt;
}

}  // namespace tpsim
