#include "core/plan_json.h"

#include "core/json_document.h"
#include "core/json_fields.h"
#include "core/model_fields.h"

namespace tpsim {
namespace {

constexpr IntRange kDegree{1, 1 << 20};

constexpr auto kPlanFields = [](auto& io, auto& plan) {
  io.integer("tp", plan.degrees.tp, kDegree);
  io.integer("pp", plan.degrees.pp, kDegree);
  io.integer("dp", plan.degrees.dp, kDegree);
  io.integer("cp", plan.degrees.cp, kDegree, kOptional);
  io.integer("virtual_stages", plan.virtual_stages, kDegree, kOptional);
  io.integer("zero", plan.zero, {0, 3});
  io.integer("micro_batch", plan.micro_batch, kDegree);
  io.integer("global_batch", plan.global_batch, kDegree);
  io.flag("sequence_parallel", plan.sequence_parallel);
  io.choice("recompute", plan.recompute,
            {Recompute::kNone, Recompute::kSelective, Recompute::kFull, Recompute::kBlocks});
  io.integer("recompute_blocks", plan.recompute_blocks, {0, 1 << 20}, kOptional);
  io.choice("attention", plan.attention, {AttentionKind::kUnfused, AttentionKind::kFlash});
  io.choice("schedule", plan.schedule,
            {ScheduleKind::kGpipe, ScheduleKind::kOneFOneB, ScheduleKind::kInterleaved});
  io.integers("stage_layers", plan.stage_layers, {0, 1 << 20});
  io.choice("dtype", plan.dtype, {DType::kFloat32, DType::kBFloat16, DType::kFloat16});
  io.choice("gradient_dtype", plan.gradient_dtype,
            {DType::kFloat32, DType::kBFloat16, DType::kFloat16});
  io.choice("rank_order", plan.rank_order, {RankOrder::kTpDpPp, RankOrder::kTpPpDp}, kOptional);
  io.choice("offload", plan.offload, {Offload::kNone, Offload::kOptimizer}, kOptional);
};

constexpr auto kFileFields = [](auto& io, auto& file) {
  io.format("tpsim-plan/1");
  io.object("model", [&](auto& inner) { model_fields(inner, file.model); });
  io.text("cluster", file.cluster);
  io.text("profile", file.profile);
  io.text("stack", file.stack);
  io.object("plan", [&](auto& inner) { kPlanFields(inner, file.plan); });
};

Result<PlanFile> plan_from_json(const JsonValue& root, const std::string& file) {
  TPSIM_TRY(const PlanFile plan, spec_from_json<PlanFile>(root, file, kFileFields));
  TPSIM_TRY_STATUS(at_file(validate(plan.model), file));
  TPSIM_TRY_STATUS(at_file(validate(plan.plan, plan.model), file));
  return plan;
}

}  // namespace

Result<PlanFile> read_plan(const std::filesystem::path& path) {
  TPSIM_TRY(const JsonValue root, read_json_file(path));
  return plan_from_json(root, path.string());
}

Result<PlanFile> parse_plan(std::string_view text, const std::string& file) {
  TPSIM_TRY(const JsonValue root, parse_json(text, file));
  return plan_from_json(root, file);
}

std::string to_json(const PlanFile& file) { return to_text(json_from_spec(file, kFileFields)); }

JsonValue plan_to_json(const Plan& plan) { return json_from_spec(plan, kPlanFields); }

}  // namespace tpsim
