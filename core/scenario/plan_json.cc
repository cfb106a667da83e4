#include "core/scenario/plan_json.h"

#include "core/base/files.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"
#include "core/json/key_meanings.h"
#include "core/model/model_fields.h"
#include "core/plan/plan_settings.h"
#include "core/software/field_json.h"

namespace tpsim {
namespace {

constexpr auto kPlanFields = [](auto& io, auto& plan) {
  for (const SettingRow& row : setting_rows()) {
    if (row.is_list()) {
      io.integers({row.key, row.help}, plan.stage_layers, {row.least, row.most});
      continue;
    }
    std::int64_t value = row.get(plan);
    value_field(io, row, value, row.in_every_file ? kRequired : kOptional);
    if constexpr (!std::is_const_v<std::remove_reference_t<decltype(plan)>>) row.set(plan, value);
  }
};

constexpr auto kFileFields = [](auto& io, auto& file) {
  io.format("tpsim-plan/1");
  io.object(key_at("plan/model"), [&](auto& inner) { model_fields(inner, file.model); });
  io.text(key_at("plan/cluster"), file.cluster);
  io.text(key_at("plan/profile"), file.profile);
  io.text(key_at("plan/stack"), file.stack);
  io.object_if(!file.parts.empty(), key_at("plan/parts"),
               [&](auto& inner) { part_value_fields(inner, file.parts); });
  io.texts(key_at("plan/nodes"), file.nodes);
  io.object_if(file.node_gbps > 0, key_at("plan/network"), [&](auto& inner) {
    inner.number(key_at("plan/node_gbps"), file.node_gbps, {1, 1e6});
  });
  const bool assumes = file.stack_assumed || file.network_assumed || !file.settings_assumed.empty();
  io.object_if(assumes, key_at("plan/assumed"), [&](auto& inner) {
    inner.flag(key_at("plan/assumed.stack"), file.stack_assumed, kOptional);
    inner.flag(key_at("plan/assumed.network"), file.network_assumed, kOptional);
    inner.texts(key_at("plan/settings"), file.settings_assumed);
  });
  io.object_if(!file.contents.empty(), key_at("plan/contents"), [&](auto& inner) {
    inner.text(key_at("plan/contents.cluster"), file.contents.cluster, kOptional);
    inner.text(key_at("plan/contents.profile"), file.contents.profile, kOptional);
    inner.text(key_at("plan/contents.stack"), file.contents.stack, kOptional);
  });
  io.object(key_at("plan/plan"), [&](auto& inner) { kPlanFields(inner, file.plan); });
};

namespace fs = std::filesystem;

// Distinguishes paths from names by the catalogue's rule: a path contains '/' or ends in ".json".
bool is_relative_path(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".json");
  return is_path && !fs::path(name).is_absolute();
}

}  // namespace

Result<PlanFile> read_plan(const std::filesystem::path& path) {
  TPSIM_TRY(const std::string text, read_file(path, kMostJsonBytes));
  TPSIM_TRY(PlanFile plan, parse_plan(text, path.string()));
  for (std::string* name : {&plan.cluster, &plan.profile, &plan.stack}) {
    if (!is_relative_path(*name)) continue;
    std::error_code ignored;
    const fs::path beside = path.parent_path() / *name;
    // If neither file exists, the error names the path relative to the plan.
    if (fs::exists(beside, ignored) || !fs::exists(*name, ignored)) {
      *name = beside.lexically_normal().string();
    }
  }
  return plan;
}

Status save_plan(const std::filesystem::path& path, const PlanFile& file) {
  PlanFile moved = file;
  for (std::string* name : {&moved.cluster, &moved.profile, &moved.stack}) {
    if (!is_relative_path(*name)) continue;
    std::error_code code;
    const fs::path folder = fs::absolute(path, code).parent_path();
    const fs::path near = fs::absolute(*name, code).lexically_proximate(folder);
    // Adds "./" to a file name without a folder, which would be read as a catalogue name.
    if (!code) *name = near.has_parent_path() ? near.string() : "./" + near.string();
  }
  return write_file_atomically(path, to_json(moved));
}

Result<PlanFile> parse_plan(std::string_view text, const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(text, file));
  return plan_from_json(root, file);
}

Result<PlanFile> plan_from_json(const JsonValue& root, const std::string& file) {
  TPSIM_TRY(const PlanFile plan, spec_from_json<PlanFile>(root, file, kFileFields));
  TPSIM_TRY_STATUS(at_file(validate(plan.model), file));
  TPSIM_TRY_STATUS(at_file(validate(plan.plan, plan.model), file));
  return plan;
}

JsonValue plan_file_to_json(const PlanFile& file) { return json_from_spec(file, kFileFields); }

std::string to_json(const PlanFile& file) { return to_text(plan_file_to_json(file)); }

JsonValue plan_to_json(const Plan& plan) { return json_from_spec(plan, kPlanFields); }

JsonValue plan_schema() { return schema_from_fields<PlanFile>(kFileFields); }

}  // namespace tpsim
