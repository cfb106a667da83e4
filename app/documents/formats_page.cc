#include "app/documents/formats_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

namespace tpsim::app {
namespace {

constexpr std::array kFormats = {
    FileFormat{"cluster", "Clusters",
               "the machines: nodes, GPUs, software, and the links inside and between nodes. Begin "
               "with `tpsim show cluster dgx-h100 > mine.json`, then `--cluster mine.json`.",
               cluster_schema},
    FileFormat{"model", "Models",
               "the model to train. A Hugging Face `config.json` works too. Begin with `tpsim show "
               "model llama-3-8b > mine.json`, then `--model mine.json`.",
               model_schema},
    FileFormat{"stack", "Software stacks",
               "the training software: its options, its host times, and the settings that its "
               "launcher accepts. "
               "Begin with `tpsim show stack megatron-core > mine.json`, then `--stack mine.json`.",
               stack_schema},
    FileFormat{"profile", "Profiles",
               "a GPU: kernel times measured by `tpsim profile`, or published figures. "
               "Begin with `tpsim show profile h100-sxm > mine.json`, then `--profile mine.json`.",
               profile_schema},
    FileFormat{
        "plan", "Plans",
        "one layout of one model on one cluster. `--save` writes it, and other commands read it. "
        "`cluster`, `profile` and `stack` are names of the catalogue, or paths relative to the "
        "folder of the plan file.",
        plan_schema},
    FileFormat{
        "assumptions", "Assumptions of campaigns",
        "the inputs of a campaign in addition to the step time: power, prices, failures and "
        "storage, each with its source. Begin with `tpsim show assumptions dgx-h100 > mine.json`, "
        "then `tpsim campaign --assumptions mine.json`.",
        assumptions_schema},
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
  std::string text =
      "# Files\n\n"
      "This page lists the keys of all files that tpsim reads and writes. `tpsim show formats` "
      "prints it, and\n"
      "`tpsim show schema KIND` prints a JSON schema for editors. All files are JSON. An unknown "
      "key, a missing\n"
      "key, a number out of range and a quantity without unit are errors that name file, line and "
      "key.\n"
      "Units: B, KiB, MiB, GiB; s, ms, us, h; GB/s, Gb/s; TFLOP/s. "
      "Tables of\n"
      "measured runs are described in [runs.md](runs.md), reports in [reports.md](reports.md).\n";
  for (const FileFormat& format : kFormats) {
    text += fmt::format(
        "\n## {}\n\nA file of the kind `{}` describes {}\n\n| key | value | required | meaning "
        "|\n|---|---|---|---|\n",
        format.title, format.kind, format.purpose);
    const JsonValue schema = format.schema();
    add_rows(schema, "", text);
  }
  text +=
      "\n## Launch files\n\nThe table shows which settings and software options of a plan the "
      "files "
      "of each launcher can\nexpress ([export.md](export.md)): all values (written), the listed "
      "values, or none. Export refuses other\nvalues and names them, unless `--allow-loss` is "
      "given "
      "or the prediction stays the same. Export leaves out\nsettings that have no effect with the "
      "launcher, such as fused rotary kernels of a model without rotary\nembeddings.\n\n" +
      held_settings_text() +
      "\nIf export refuses a part, the launcher has no option for it. The error and this table "
      "state what the launcher\ndoes:\n\n" +
      fixed_behaviour_text();
  return text;
}

}  // namespace tpsim::app
