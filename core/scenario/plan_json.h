// Plan files: {"format": "tpsim-plan/1", ...}, what --save writes and every command reads.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/json/json_value.h"
#include "core/scenario/plan_file.h"

namespace tpsim {

// The plan returned obeys validate(plan, model).
// Paths of cluster, profile and stack are relative to the file's folder, where they lead to a file,
// and else to where the program runs.
Result<PlanFile> read_plan(const std::filesystem::path& path);
// Writes a plan whose paths read_plan() finds from wherever it is called.
Status save_plan(const std::filesystem::path& path, const PlanFile& file);
Result<PlanFile> parse_plan(std::string_view text, const std::string& file);

std::string to_json(const PlanFile& file);

// The keys of a plan alone, in order, for documents that hold plans.
JsonValue plan_to_json(const Plan& plan);

// The JSON schema of its files.
JsonValue plan_schema();

}  // namespace tpsim
