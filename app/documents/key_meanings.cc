#include "app/documents/key_meanings.h"

#include <fmt/format.h>

#include <array>

#include "campaigns/assumptions.h"
#include "core/base/text.h"
#include "core/plan/plan_settings.h"
#include "core/software/stack_parts.h"

namespace tpsim::app {
namespace {

constexpr std::array kCommonMeanings = {
    KeyMeaning{"assumptions.format cluster.format model.format plan.format profile.format "
               "stack.format",
               "kind of file, and version of its keys"},
    KeyMeaning{"assumptions.name cluster.name model.name profile.name stack.name",
               "name in reports"},
    KeyMeaning{"cluster.source stack.source", "source of the numbers"},
};

// Objects that the same code reads and writes. Each key of `object` has the meaning of that key of
// `described`, unless a table has a row for it. The first row that fits a path applies.
struct SharedKeys {
  std::string_view object, described;
};
constexpr std::array kSharedKeys = {
    SharedKeys{"plan.model", "model"},
    SharedKeys{"model.blocks.others.attention", "model.attention"},
    SharedKeys{"model.blocks.others.experts", "model.experts"},
    SharedKeys{"model.blocks.others.ffn_hidden", "model.ffn_hidden"},
    SharedKeys{"model.blocks.others", "model.extras"},
    SharedKeys{"model.extras.parts.layer_ops", "model.extras.planned"},
    SharedKeys{"model.extras.parts.ops", "model.extras.planned"},
    SharedKeys{"stack.calibrated", "cluster.calibrated"},
    SharedKeys{"profile.sustained", "profile.ops"},
    SharedKeys{"profile.link", "cluster.intra_node"},
};

std::string meaning_of_assumption(std::string_view path) {
  for (const AssumptionRow& row : assumption_rows()) {
    const std::string key = std::string("assumptions.") + row.key;
    if (path == key) return row.meaning;
    if (path == key + ".source") return "source of the value";
    if (path != key + ".value") continue;
    return fmt::format("{} {}, from {} to {}", row.whole ? "whole number" : "number",
                       *row.unit == '\0' ? "without unit" : "with its unit",
                       assumption_text(row, row.least), assumption_text(row, row.most));
  }
  return "";
}

std::string_view meaning_in_core(std::string_view parent, std::string_view key) {
  const bool lists_choices = parent == "stack.choices";
  if (lists_choices || parent == "plan.plan") {
    for (const SettingRow& row : setting_rows()) {
      if (row.key == key) return row.help;
    }
  }
  if (lists_choices || parent == "stack.parts" || parent == "plan.parts") {
    for (const PartRow& row : part_rows()) {
      if (row.key == key) return row.help;
    }
  }
  return "";
}

}  // namespace

std::vector<KeyMeaning> key_meanings() {
  std::vector<KeyMeaning> rows(kCommonMeanings.begin(), kCommonMeanings.end());
  for (const auto& table : {cluster_key_meanings(), model_key_meanings(), stack_key_meanings(),
                            profile_key_meanings(), plan_key_meanings()}) {
    rows.insert(rows.end(), table.begin(), table.end());
  }
  return rows;
}

std::string shared_path(std::string_view path) {
  for (const SharedKeys& shared : kSharedKeys) {
    if (!path.starts_with(shared.object)) continue;
    const std::string_view rest = path.substr(shared.object.size());
    if (rest.empty() || rest.front() == '.') return std::string(shared.described).append(rest);
  }
  return "";
}

std::string key_meaning(std::string_view path) {
  for (const KeyMeaning& row : key_meanings()) {
    if (matches_any(path, row.paths)) return std::string(row.meaning);
  }
  if (std::string meaning = meaning_of_assumption(path); !meaning.empty()) return meaning;
  const std::size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return "";
  const std::string_view of_core = meaning_in_core(path.substr(0, dot), path.substr(dot + 1));
  if (!of_core.empty()) return std::string(of_core);
  const std::string shared = shared_path(path);
  return shared.empty() ? "" : key_meaning(shared);
}

}  // namespace tpsim::app
