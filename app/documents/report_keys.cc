#include "app/documents/report_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "core/base/check.h"
#include "core/base/text.h"

namespace tpsim {
extern const std::span<const unsigned char> kReportsPage;
}

namespace tpsim::app {
namespace {

struct ReportKey {
  std::vector<std::string_view> names;  // empty: any name
  std::string_view type, meaning;
  bool is_optional = false;
};

// A section of the page. Its keys are those of its bases and its own.
struct ReportObject {
  std::string_view name;
  std::string meaning = {};
  std::vector<std::string_view> bases = {};
  std::vector<ReportKey> keys = {};
};

struct ReportsPage {
  std::vector<ReportFormat> formats;
  std::vector<ReportObject> objects;
};

// Returns the texts between two marks, such as those of all links: "](#" and ")".
std::vector<std::string_view> between(std::string_view text, std::string_view open,
                                      std::string_view close) {
  std::vector<std::string_view> found;
  for (std::size_t at = text.find(open); at != std::string_view::npos; at = text.find(open, at)) {
    const std::size_t end = text.find(close, at += open.size());
    if (end == std::string_view::npos) break;
    found.push_back(text.substr(at, end - at));
    at = end + close.size();
  }
  return found;
}

std::vector<std::string_view> linked(std::string_view text) { return between(text, "](#", ")"); }
std::vector<std::string_view> quoted(std::string_view text) { return between(text, "`", "`"); }

// Returns the three cells of a table's row. Nothing for other lines and for a table's head.
std::optional<std::array<std::string_view, 3>> cells_of(std::string_view line) {
  constexpr std::string_view kBar = " | ", kFirst = "| ", kLast = " |";
  if (!line.starts_with(kFirst) || line.starts_with("| key |") || line.starts_with("| command |")) {
    return std::nullopt;
  }
  line = line.substr(kFirst.size(), line.size() - kFirst.size() - kLast.size());
  const std::size_t second = line.find(kBar), third = line.find(kBar, second + kBar.size());
  return std::array{line.substr(0, second),
                    line.substr(second + kBar.size(), third - second - kBar.size()),
                    line.substr(third + kBar.size())};
}

ReportFormat format_of(const std::array<std::string_view, 3>& cells) {
  constexpr std::string_view kStart = "tpsim ", kEnd = " --json";
  std::string_view command = quoted(cells[0]).front();
  command = command.substr(kStart.size(), command.size() - kStart.size() - kEnd.size());
  return {command, between(cells[1], "[", "]").front(), linked(cells[1]).front(),
          quoted(cells[2]).front()};
}

ReportKey key_of(const std::array<std::string_view, 3>& cells) {
  constexpr std::string_view kOptional = ", optional";
  ReportKey key{quoted(cells[0]), cells[1], cells[2], cells[1].ends_with(kOptional)};
  if (key.is_optional) key.type.remove_suffix(kOptional.size());
  return key;
}

const ReportsPage& parsed_page() {
  static const ReportsPage kPage = [] {
    constexpr std::string_view kSection = "## ", kBases = "All keys of ";
    ReportsPage page;
    std::string_view text = reports_page();
    while (!text.empty()) {
      const std::string_view line = cut_off(text, "\n");
      const auto cells = cells_of(line);
      if (line.starts_with(kSection)) {
        page.objects.push_back({.name = line.substr(kSection.size())});
      } else if (line.starts_with(kBases)) {
        page.objects.back().bases = linked(line);
      } else if (cells && page.objects.empty()) {
        page.formats.push_back(format_of(*cells));
      } else if (cells) {
        page.objects.back().keys.push_back(key_of(*cells));
      } else if (!page.objects.empty() && !line.empty() && !line.starts_with('|')) {
        std::string& meaning = page.objects.back().meaning;
        meaning += fmt::format("{}{}", meaning.empty() ? "" : " ", line);
      }
    }
    return page;
  }();
  return kPage;
}

const ReportObject& object_named(std::string_view name) {
  for (const ReportObject& one : parsed_page().objects) {
    if (one.name == name) return one;
  }
  throw BugError(fmt::format("docs/reports.md has no section {}", name));
}

// The keys of an object, those of its bases first.
std::vector<ReportKey> keys_of(const ReportObject& object) {
  std::vector<ReportKey> keys;
  for (const std::string_view base : object.bases) {
    const std::vector<ReportKey> inherited = keys_of(object_named(base));
    keys.insert(keys.end(), inherited.begin(), inherited.end());
  }
  keys.insert(keys.end(), object.keys.begin(), object.keys.end());
  return keys;
}

// Returns the type in JSON Schema of "text", "whole number", "number or null" and the like.
std::string_view json_type(std::string_view type) {
  for (const auto& [start, json] : {std::pair{"text", "string"}, std::pair{"number", "number"},
                                    std::pair{"whole", "integer"}, std::pair{"bool", "boolean"}}) {
    if (type.starts_with(start)) return json;
  }
  throw BugError(fmt::format("docs/reports.md has the unknown type {}", type));
}

JsonValue schema_of_type(std::string_view type) {
  constexpr std::string_view kListOf = "list of ";
  if (type.starts_with(kListOf)) {
    JsonValue schema = json_object({{"type", "array"}});
    return schema.set("items", schema_of_type(type.substr(kListOf.size())));
  }
  if (!linked(type).empty()) {
    return json_object({{"$ref", fmt::format("#/$defs/{}", linked(type).front())}});
  }
  if (!type.ends_with(" or null")) return json_object({{"type", json_type(type)}});
  JsonValue types = JsonValue(JsonValue::Array());
  types.push(json_type(type));
  types.push("null");
  return json_object({{"type", std::move(types)}});
}

JsonValue schema_of(const ReportObject& object) {
  JsonValue schema = json_object({{"type", "object"}});
  if (!object.meaning.empty()) schema.set("description", object.meaning);
  JsonValue properties = json_object(), required = JsonValue(JsonValue::Array());
  for (const ReportKey& key : keys_of(object)) {
    JsonValue value = schema_of_type(key.type);
    value.set("description", key.meaning);
    for (const std::string_view name : key.names) {
      properties.set(std::string(name), value);
      if (!key.is_optional) required.push(name);
    }
    if (key.names.empty()) schema.set("additionalProperties", std::move(value));
  }
  if (!properties.as<JsonValue::Object>()->empty()) schema.set("properties", std::move(properties));
  if (!required.as<JsonValue::Array>()->empty()) schema.set("required", std::move(required));
  return schema;
}

// Adds the objects that an object contains, at every depth, in the order in which they appear.
void add_contained(const ReportObject& object, std::vector<const ReportObject*>& found) {
  for (const ReportKey& key : keys_of(object)) {
    for (const std::string_view name : linked(key.type)) {
      const ReportObject& inner = object_named(name);
      if (std::find(found.begin(), found.end(), &inner) != found.end()) continue;
      found.push_back(&inner);
      add_contained(inner, found);
    }
  }
}

}  // namespace

const std::vector<ReportFormat>& report_formats() { return parsed_page().formats; }

JsonValue report_schema(const ReportFormat& format) {
  const ReportObject& object = object_named(format.object);
  JsonValue schema = json_object({{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                  {"title", fmt::format("tpsim {} --json", format.command)}});
  JsonValue own = schema_of(object);
  for (JsonMember& member : *own.as<JsonValue::Object>()) {
    if (member.key == "properties") {
      for (JsonMember& key : *member.value.as<JsonValue::Object>()) {
        if (key.key == "version") key.value.set("const", format.version);
      }
    }
    schema.set(member.key, std::move(member.value));
  }
  std::vector<const ReportObject*> contained;
  add_contained(object, contained);
  JsonValue definitions = json_object();
  for (const ReportObject* one : contained)
    definitions.set(std::string(one->name), schema_of(*one));
  return schema.set("$defs", std::move(definitions));
}

std::string_view reports_page() { return as_text(kReportsPage); }

}  // namespace tpsim::app
