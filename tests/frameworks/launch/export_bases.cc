#include "tests/frameworks/launch/export_bases.h"

#include <map>
#include <string_view>

#include "core/base/text.h"
#include "core/plan/plan_settings.h"

namespace tpsim::test {
namespace {

const ExportBase kBases[] = {
    {"llama-3-8b", "megatron-core", LaunchStack::kMegatronLm,
     "tp=2,pp=2,dp=4,sequence_parallel=on,recompute=selective,global_batch=32"},
    {"llama-3-8b", "nemo", LaunchStack::kNemo, "tp=2,dp=4,sequence_parallel=on,global_batch=32"},
    {"llama-3-8b", "nemo", LaunchStack::kNemo,
     "dp=8,dtype=fp16,gradient_dtype=fp16,global_batch=32"},
    {"llama-3-8b", "nemo", LaunchStack::kNemo,
     "dp=8,precision=fp8-current,fp8_param_gather=on,global_batch=32"},
    {"llama-3-8b", "torchtitan", LaunchStack::kTorchTitan,
     "dp=16,zero=3,recompute=full,global_batch=32"},
    {"llama-3-8b", "pytorch-fsdp", LaunchStack::kAccelerate,
     "dp=16,zero=3,recompute=full,global_batch=32"},
    {"llama-3-8b", "deepspeed-zero3", LaunchStack::kDeepSpeed,
     "tp=2,dp=8,zero=3,recompute=full,global_batch=32"},
    {"llama-3.1-8b", "nanotron", LaunchStack::kNanotron,
     "tp=2,dp=4,recompute=full,global_batch=32"},
    {"gpt-7.5b", "megatron-deepspeed", LaunchStack::kMegatronDeepSpeed,
     "tp=2,pp=2,dp=4,attention=unfused,recompute=full,global_batch=32"},
    {"qwen3-30b-a3b", "megatron-core", LaunchStack::kMegatronLm,
     "tp=2,pp=2,virtual_stages=2,dp=4,ep=8,etp=1,sequence_parallel=on,global_batch=32"},
    {"qwen3-30b-a3b", "nemo", LaunchStack::kNemo,
     "tp=2,dp=4,ep=8,etp=1,sequence_parallel=on,global_batch=32"},
    {"qwen3-30b-a3b", "torchtitan", LaunchStack::kTorchTitan,
     "tp=2,dp=8,ep=8,etp=1,zero=3,sequence_parallel=on,recompute=full,global_batch=32"},
    {"deepseek-v3", "megatron-core", LaunchStack::kMegatronLm, "pp=8,dp=32,ep=32,global_batch=256"},
    {"deepseek-v3", "nemo", LaunchStack::kNemo, "pp=8,dp=32,ep=32,global_batch=256"},
};

// Parses settings such as "tp=2,recompute=blocks:2".
void set_all(std::string_view text, Plan& plan) {
  while (!text.empty()) {
    std::string_view value = cut_off(text, ",");
    const std::string_view key = cut_off(value, "=");
    const std::string_view word = cut_off(value, ":");
    for (const SettingRow& row : setting_rows()) {
      const bool counts = row.counts_for != nullptr && key == "recompute" && !value.empty();
      if (row.key == key) row.set(plan, parse_value(row, word).value());
      if (counts) row.set(plan, parse_value(row, value).value());
    }
  }
}

}  // namespace

const Catalogue& catalogue() {
  static const Catalogue all = *Catalogue::open();
  return all;
}

std::span<const ExportBase> export_bases() { return kBases; }

namespace {

// Caches the bases, since reading files of the catalogue takes milliseconds.
const Exported& read_once(const ExportBase& base) {
  static std::map<const ExportBase*, Exported> all;
  Exported& made = all[&base];
  if (!made.file.stack.empty()) return made;
  made.file.stack = base.stack;
  made.own = catalogue().load_stack(base.stack).value();
  Scenario& scenario = made.scenario;
  scenario.cluster = catalogue().load_cluster("dgx-h100").value();
  scenario.profile = catalogue().load_profile(scenario.cluster.profile).value();
  scenario.model = catalogue().load_model(base.model).value();
  return made;
}

}  // namespace

Exported exported_of(const ExportBase& base, const std::string& settings, const PartValues& parts) {
  Exported made = read_once(base);
  Scenario& scenario = made.scenario;
  scenario.stack = with_parts(made.own, parts);
  PlanFile& file = made.file;
  Plan& plan = file.plan;
  plan.attention = AttentionKind::kFlash;
  plan.recompute = Recompute::kNone;
  for (const std::string& text : {std::string(base.settings), settings}) {
    set_all(text, plan);
  }
  plan.schedule = plan.virtual_stages > 1 ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB;
  plan.stage_layers = default_stage_layers(scenario.model.layers, chunk_count(plan));
  file.model = scenario.model;
  file.cluster = "dgx-h100";
  file.profile = scenario.cluster.profile;
  file.stack = base.stack;
  file.parts = parts;
  return made;
}

}  // namespace tpsim::test
