// Fills files_page.txt, the text of docs/files.md: a line "@keys KIND" stands for the table of a
// format's keys.
#include "app/documents/formats_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "campaigns/assumptions.h"
#include "core/base/numbers.h"
#include "core/base/text.h"
#include "core/machine/cluster_json.h"
#include "core/machine/profile_json.h"
#include "core/model/model_json.h"
#include "core/scenario/plan_json.h"
#include "core/software/stack_json.h"
#include "frameworks/launch/held_settings.h"

namespace tpsim {
extern const std::span<const unsigned char> kFilesPage;  // files_page.txt
}

namespace tpsim::app {
namespace {

constexpr FileFormat kFormats[] = {
    {"cluster", cluster_schema}, {"model", model_schema}, {"stack", stack_schema},
    {"profile", profile_schema}, {"plan", plan_schema},   {"assumptions", assumptions_schema},
};

std::string bound_text(const JsonValue& bound) {
  if (const auto* whole = bound.as<std::int64_t>()) return count_text(*whole);
  return fmt::format("{}", *bound.as<double>());
}

// Returns the valid values of a schema as text: "text with a unit, as \"450 GB/s\"", "whole number,
// 1 to 1,024" or "fused or torch".
std::string value_text(const JsonValue& schema) {
  if (const JsonValue* items = schema.find("items")) return "list of: " + value_text(*items);
  if (const JsonValue* constant = schema.find("const")) {
    return fmt::format("\"{}\"", *constant->as<std::string>());
  }
  if (const JsonValue* words = schema.find("enum")) {
    return joined_text(*words->as<JsonValue::Array>(), ", ", [](const JsonValue& word) {
      return fmt::format("`{}`", *word.as<std::string>());
    });
  }
  if (const JsonValue* examples = schema.find("examples")) {
    return fmt::format("text with its unit, as \"{}\"",
                       *examples->as<JsonValue::Array>()->front().as<std::string>());
  }
  const JsonValue* type = schema.find("type");
  const std::string kind = type == nullptr ? "any" : *type->as<std::string>();
  if (kind == "string") return "text";
  if (kind == "boolean") return "true or false";
  if (kind == "object") return "object";
  if (kind == "array") return "list";
  std::string name = kind == "integer" ? "whole number" : "number";
  const JsonValue* least = schema.find("minimum");
  const JsonValue* most = schema.find("maximum");
  if (least == nullptr || most == nullptr) return name;
  return fmt::format("{}, {} to {}", name, bound_text(*least), bound_text(*most));
}

bool is_required(const JsonValue& object, std::string_view key) {
  const JsonValue* required = object.find("required");
  const auto& keys = *required->as<JsonValue::Array>();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const JsonValue& one) { return *one.as<std::string>() == key; });
}

void add_rows(const JsonValue& object, const std::string& prefix, std::string& text) {
  for (const JsonMember& member : *object.find("properties")->as<JsonValue::Object>()) {
    const std::string key = prefix + member.key;
    const JsonValue* inner = &member.value;
    if (const JsonValue* items = inner->find("items")) inner = items;
    const bool has_keys = inner->find("properties") != nullptr;
    text += fmt::format("| `{}` | {} | {} | {} |\n", key, value_text(member.value),
                        is_required(object, member.key) ? "yes" : "",
                        *member.value.find("description")->as<std::string>());
    if (has_keys) {
      const bool in_list = inner != &member.value;
      add_rows(*inner, key + (in_list ? "[]." : "."), text);
    }
  }
}

}  // namespace

std::span<const FileFormat> file_formats() { return kFormats; }

JsonValue json_schema(const FileFormat& format) {
  JsonValue schema = json_object({{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                                  {"title", fmt::format("tpsim {}", format.kind)}});
  JsonValue fields = format.schema();
  for (JsonMember& member : *fields.as<JsonValue::Object>()) {
    schema.set(member.key, std::move(member.value));
  }
  return schema;
}

std::string formats_page() {
  constexpr std::string_view kKeys = "@keys ";
  std::string text;
  std::string_view rest = as_text(kFilesPage);
  while (!rest.empty()) {
    const std::string_view line = cut_off(rest, "\n");
    if (line.starts_with(kKeys)) {
      text += "| key | value | required | meaning |\n|---|---|---|---|\n";
      for (const FileFormat& format : kFormats) {
        if (format.kind == line.substr(kKeys.size())) add_rows(format.schema(), "", text);
      }
    } else if (line == "@held_settings") {
      text += held_settings_text();
    } else if (line == "@fixed_behaviour") {
      text += fixed_behaviour_text();
    } else {
      text += fmt::format("{}\n", line);
    }
  }
  return text;
}

}  // namespace tpsim::app
