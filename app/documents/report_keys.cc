#include "app/documents/report_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/base/text.h"

namespace tpsim::app {
namespace {

constexpr std::array kReportFormats = {
    ReportFormat{"plan-report", "tpsim-plan-report/1", "plan", "plan_report"},
    ReportFormat{"scaling-report", "tpsim-scaling-report/1", "plan --gpus 64,128",
                 "scaling_report"},
    ReportFormat{"simulate-report", "tpsim-simulate-report/1", "simulate", "simulate_report"},
    ReportFormat{"explain-report", "tpsim-explain-report/1", "explain", "explain_report"},
    ReportFormat{"why-not-report", "tpsim-why-not-report/1", "explain --why-not pp=4",
                 "why_not_report"},
    ReportFormat{"what-if-report", "tpsim-what-if-report/1", "explain --what-if", "what_if_report"},
    ReportFormat{"memory-report", "tpsim-memory-report/1", "explain --memory", "memory_report"},
    ReportFormat{"program-difference-report", "tpsim-program-difference-report/1",
                 "explain --program --diff", "program_difference_report"},
    ReportFormat{"program-report", "tpsim-program-report/1", "explain --program", "program_report"},
    ReportFormat{"compare-report", "tpsim-compare-report/1", "compare", "compare_report"},
    ReportFormat{"campaign-report", "tpsim-campaign-report/1", "campaign", "campaign_report"},
    ReportFormat{"export-report", "tpsim-export-report/1", "export", "export_report"},
    ReportFormat{"run-report", "tpsim-run-report/1", "run", "run_report"},
    ReportFormat{"rank-report", "tpsim-rank-report/1", "run plan.json --rank 0", "rank_report"},
    ReportFormat{"validate-report", "tpsim-validate-report/1", "validate --runs FILE",
                 "validate_report"},
    ReportFormat{"measured-report", "tpsim-measured-report/1", "validate plan.json",
                 "measured_report"},
    ReportFormat{"log-report", "tpsim-log-report/1", "check-log", "log_report"},
    ReportFormat{"calibrate-report", "tpsim-calibrate-report/1", "calibrate", "calibrate_report"},
    ReportFormat{"list-report", "tpsim-list/1", "list KIND", "list_report"},
    ReportFormat{"error-report", "tpsim-error-report/1", "COMMAND, if it ends without a report",
                 "error_report"},
};

struct ReportObject {
  std::string_view name, base;
  std::vector<ReportKey> keys;
};

// The keys of simulate's report are those of its heading and of its plan.
const ReportObject kSimulate{"simulate_report", "run", {}};

// Returns all objects but simulate's report, in the order of the page.
const std::vector<ReportObject>& report_objects() {
  static const std::vector<ReportObject> kObjects = [] {
    std::vector<ReportObject> objects;
    for (const auto rows : {answer_keys(), evidence_keys(), campaign_keys(), prediction_keys()}) {
      for (const ReportKey& row : rows) {
        if (row.type == "object") {
          objects.push_back({row.names, row.meaning, {}});
        } else {
          objects.back().keys.push_back(row);
        }
      }
    }
    return objects;
  }();
  return kObjects;
}

const ReportObject& object_named(std::string_view name) {
  for (const ReportObject& one : report_objects()) {
    if (one.name == name) return one;
  }
  if (name == kSimulate.name) return kSimulate;
  throw BugError(fmt::format("no report has an object {}", name));
}

// The keys of an object, those of its base first.
std::vector<ReportKey> keys_of(const ReportObject& object) {
  std::vector<ReportKey> keys;
  if (&object == &kSimulate) keys = keys_of(object_named("heading"));
  if (!object.base.empty()) {
    const std::vector<ReportKey> inherited = keys_of(object_named(object.base));
    keys.insert(keys.end(), inherited.begin(), inherited.end());
  }
  keys.insert(keys.end(), object.keys.begin(), object.keys.end());
  return keys;
}

// A type of ReportKey in its parts.
struct Type {
  bool is_list = false, is_nullable = false;
  std::string_view name;
  std::string_view json = {};  // of JSON Schema; empty: an object of a report
};

Type type_of(std::string_view text) {
  constexpr std::string_view kListOf = "list of ";
  Type type;
  type.is_list = text.starts_with(kListOf);
  if (type.is_list) text.remove_prefix(kListOf.size());
  type.is_nullable = text.ends_with('?');
  if (type.is_nullable) text.remove_suffix(1);
  type.name = text;
  for (const auto& [name, json] : {std::pair{"text", "string"}, std::pair{"number", "number"},
                                   std::pair{"whole", "integer"}, std::pair{"bool", "boolean"}}) {
    if (text == name) type.json = json;
  }
  return type;
}

JsonValue schema_of(const Type& type) {
  JsonValue schema = json_object();
  if (type.json.empty()) {
    schema.set("$ref", fmt::format("#/$defs/{}", type.name));
  } else if (type.is_nullable) {
    JsonValue types = JsonValue(JsonValue::Array());
    types.push(type.json);
    types.push("null");
    schema.set("type", std::move(types));
  } else {
    schema.set("type", type.json);
  }
  if (!type.is_list) return schema;
  return json_object({{"type", "array"}, {"items", std::move(schema)}});
}

JsonValue schema_of(const ReportObject& object) {
  JsonValue schema = json_object({{"type", "object"}});
  JsonValue properties = json_object();
  for (const ReportKey& key : keys_of(object)) {
    JsonValue value = schema_of(type_of(key.type));
    value.set("description", key.meaning);
    if (key.names == "*") {
      schema.set("additionalProperties", std::move(value));
      continue;
    }
    for (const std::string& name : words_in(std::string(key.names))) properties.set(name, value);
  }
  if (!properties.as<JsonValue::Object>()->empty()) schema.set("properties", std::move(properties));
  return schema;
}

// Adds the objects that an object contains, at every depth, in the order in which they appear.
void add_contained(const ReportObject& object, std::vector<const ReportObject*>& found) {
  for (const ReportKey& key : keys_of(object)) {
    const Type type = type_of(key.type);
    if (!type.json.empty()) continue;
    const ReportObject& inner = object_named(type.name);
    if (std::find(found.begin(), found.end(), &inner) != found.end()) continue;
    found.push_back(&inner);
    add_contained(inner, found);
  }
}

std::string type_text(std::string_view text) {
  const Type type = type_of(text);
  const std::string name = type.json.empty()
                               ? fmt::format("[{0}](#{0})", type.name)
                               : std::string(type.name == "whole" ? "whole number" : type.name);
  return fmt::format("{}{}{}", type.is_list ? "list of " : "", name,
                     type.is_nullable ? " or null" : "");
}

// Adds the table of an object without the keys of its base.
void add_table(const ReportObject& object, std::string& text) {
  if (!object.base.empty()) text += fmt::format("All keys of [{0}](#{0}), and:\n\n", object.base);
  text += "| key | value | meaning |\n|---|---|---|\n";
  for (const ReportKey& key : object.keys) {
    const std::string names =
        key.names == "*"
            ? "any name"
            : joined_text(words_in(std::string(key.names)), ", ",
                          [](const std::string& name) { return fmt::format("`{}`", name); });
    text += fmt::format("| {} | {} | {} |\n", names, type_text(key.type), key.meaning);
  }
}

}  // namespace

std::span<const ReportFormat> report_formats() { return kReportFormats; }

JsonValue report_schema(const ReportFormat& format) {
  const ReportObject& object = object_named(format.object);
  JsonValue schema = json_object({{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                  {"title", fmt::format("tpsim {} --json", format.command)}});
  JsonValue own = schema_of(object);
  for (JsonMember& member : *own.as<JsonValue::Object>()) {
    if (member.key == "properties") {
      member.value.set("version", json_object({{"const", format.version}}));
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

std::string reports_page() {
  std::string text =
      "# Keys of reports\n\n"
      "This page lists the keys of all reports of `--json`. `tpsim show reports` prints it, and "
      "`tpsim show schema\nKIND` prints a JSON schema. [json.md](json.md) has the rules that all "
      "reports follow. A key is absent where it\ndoes not apply. Times are in seconds.\n\n"
      "| command | kind of `show schema` | `version` |\n|---|---|---|\n";
  for (const ReportFormat& format : kReportFormats) {
    text += fmt::format("| `tpsim {} --json` | [{}](#{}) | `{}` |\n", format.command, format.kind,
                        format.object, format.version);
  }
  text += "\n## simulate_report\n\nAll keys of [heading](#heading) and of [run](#run).\n";
  for (const ReportObject& object : report_objects()) {
    text += fmt::format("\n## {}\n\n", object.name);
    add_table(object, text);
  }
  return text;
}

}  // namespace tpsim::app
