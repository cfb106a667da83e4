// Plan files: {"format": "tpsim-plan/1", ...}, written by --save and read by every command.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/scenario/plan_file.h"

namespace tpsim {

// Reads a plan and checks it with validate(plan, model). Paths of cluster, profile and stack are
// relative to the file's folder if that leads to a file, else to the working directory.
Result<PlanFile> read_plan(const std::filesystem::path& path);
// Writes a plan with paths that read_plan() resolves from any working directory.
Status save_plan(const std::filesystem::path& path, const PlanFile& file);
Result<PlanFile> parse_plan(std::string_view text, const std::string& file);
Result<PlanFile> plan_from_json(const JsonValue& root, const std::string& file);

std::string to_json(const PlanFile& file);
JsonValue plan_file_to_json(const PlanFile& file);

// Returns only the keys of the plan, in order, for documents that contain plans.
JsonValue plan_to_json(const Plan& plan);

// The JSON schema of plan files.
JsonValue plan_schema();

}  // namespace tpsim
