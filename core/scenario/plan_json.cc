#include "core/scenario/plan_json.h"

#include "core/base/files.h"
#include "core/json/field_schema.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"
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
  io.object({"model", "complete contents of a model file"},
            [&](auto& inner) { model_fields(inner, file.model); });
  io.text({"cluster", "catalogue name or path"}, file.cluster);
  io.text({"profile", "catalogue name or path"}, file.profile);
  io.text({"stack", "catalogue name or path"}, file.stack);
  io.object_if(!file.parts.empty(), {"parts", "software options that replace those of the stack"},
               [&](auto& inner) { part_value_fields(inner, file.parts); });
  io.object_if(
      file.node_gbps > 0, {"network", "network between nodes, if it replaces that of the cluster"},
      [&](auto& inner) {
        inner.number(
            {"node_gbps", "bandwidth per node in Gb/s, all NICs together, in one direction"},
            file.node_gbps, {1, 1e6});
      });
  const bool assumes = file.stack_assumed || file.network_assumed || !file.settings_assumed.empty();
  io.object_if(
      assumes,
      {"assumed", "inputs that were assumed when the plan was made; they widen the intervals"},
      [&](auto& inner) {
        inner.flag({"stack", "the stack was not stated, and this one is assumed [false]"},
                   file.stack_assumed, kOptional);
        inner.flag({"network", "the network of the model's default cluster was assumed [false]"},
                   file.network_assumed, kOptional);
        inner.texts({"settings",
                     "unknown settings of the launch file, which are assumed to have no effect"},
                    file.settings_assumed);
      });
  io.object_if(
      !file.contents.empty(),
      {"contents",
       "hashes of the named entries when the plan was saved; tpsim warns if an entry has changed "
       "since"},
      [&](auto& inner) {
        inner.text({"cluster", "hash of the cluster file; empty: none was used"},
                   file.contents.cluster, kOptional);
        inner.text({"profile", "hash of the profile file"}, file.contents.profile, kOptional);
        inner.text({"stack", "hash of the stack file"}, file.contents.stack, kOptional);
      });
  io.object({"plan", "settings of the plan"}, [&](auto& inner) { kPlanFields(inner, file.plan); });
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
