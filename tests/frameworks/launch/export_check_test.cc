// The check of exports: the reported losses equal a comparison after import, and settings with an
// option in launch files are unchanged.
#include "frameworks/launch/export_check.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <set>
#include <span>

#include "frameworks/launch/held_settings.h"
#include "sim/step/simulate.h"
#include "tests/frameworks/launch/export_bases.h"

namespace tpsim {
namespace {

using test::catalogue;
using test::Exported;
using test::exported_of;
using Base = test::ExportBase;
const std::span<const Base> kBases = test::export_bases();

Result<CheckedExport> checked(const Base& base, const Exported& made) {
  return checked_export(base.target, made.file, made.scenario, made.own);
}

std::set<std::string> keys_of(const ExportLoss& loss) {
  std::set<std::string> keys;
  for (const LostSetting& one : loss.lost) keys.insert(one.key);
  return keys;
}

// The expected losses, computed by comparison.
std::set<std::string> keys_that_differ(const Exported& made, const ImportedPlan& back) {
  std::set<std::string> keys;
  for (const SettingRow& row : setting_rows()) {
    const bool counts = row.counts_for != nullptr;
    if (!counts && text_of(made.file.plan, row.setting) != text_of(back.plan, row.setting)) {
      keys.insert(std::string(row.key));
    }
  }
  for (const PartRow& row : part_rows()) {
    const auto value = [&](const PartValues& parts) {
      const auto found = parts.find(row.part);
      return found == parts.end() ? row.get(made.own) : found->second;
    };
    if (value(made.file.parts) != value(back.parts)) keys.insert(std::string(row.key));
  }
  const ModelSpec &a = made.file.model, &b = back.model;
  if (a.seq != b.seq) keys.insert("model.seq");
  if (a.attention_dropout != b.attention_dropout) keys.insert("model.attention_dropout");
  if (a.hidden_dropout != b.hidden_dropout) keys.insert("model.hidden_dropout");
  return keys;
}

// Removes settings and parts that have no effect in plans of the launcher.
std::set<std::string> with_effect(const Exported& made, LaunchStack launcher,
                                  std::set<std::string> keys) {
  for (const SettingRow& row : setting_rows()) {
    const bool idles = !row.is_list() &&
                       held(launcher, setting_of(made.file.plan, row.setting)) == Held::kNoEffect;
    if (idles) keys.erase(std::string(row.key));
  }
  for (const PartRow& row : part_rows()) {
    const std::int64_t value = row.get(made.scenario.stack);
    if (held(launcher, row.part, value) == Held::kNoEffect) keys.erase(std::string(row.key));
  }
  return keys;
}

// A change of settings, parts or sequence length in the sample.
struct Change {
  std::string settings;
  PartValues parts;
  std::int64_t seq = 0;
};

std::vector<Change> changes_of(const StackSpec& own) {
  std::vector<Change> all;
  for (const PartRow& row : part_rows()) {
    for (const FieldWord& word : row.words) {
      if (word.value != row.get(own)) all.push_back({"", {{row.part, word.value}}});
    }
  }
  for (const char* settings :
       {"zero=0", "zero=1", "zero=2", "recompute=none", "recompute=selective", "recompute=full",
        "recompute=blocks:2", "precision=fp8", "precision=fp8-block", "gradient_dtype=bf16",
        "dtype=fp16", "dtype=fp32", "offload=optimizer", "rank_order=tp-pp-dp", "attention=unfused",
        "virtual_stages=2", "micro_batch=2", "sequence_parallel=off"}) {
    all.push_back({settings, {}});
  }
  all.push_back({"", {}, 4096});
  return all;
}

}  // namespace

TEST_CASE("an export reports exactly the settings that its files lose, and their effect") {
  constexpr int kOneOf = 3;  // one case in three is tried
  std::mt19937 random(20261125);
  int whole = 0, lossy = 0, refused = 0;
  for (const Base& base : kBases) {
    for (const Change& change : changes_of(catalogue().load_stack(base.stack).value())) {
      if (random() % kOneOf != 0) continue;
      Exported made = exported_of(base, change.settings, change.parts);
      if (change.seq > 0) made.scenario.model.seq = made.file.model.seq = change.seq;
      CAPTURE(base.model, name_of(base.target), change.settings, to_string(change.parts));
      const std::int64_t node = host_size(made.scenario.cluster);
      const auto files = export_plan(base.target, made.file, node, made.own);
      const auto found = checked(base, made);
      if (!files.ok()) {
        CHECK_FALSE(found.ok());
        ++refused;
        continue;
      }
      if (!found.ok()) {  // exports are unchecked only if the plan cannot be predicted
        CHECK_FALSE(simulate(made.scenario, made.file.plan).ok());
        continue;
      }
      const auto back =
          import_plan(base.target, *files, catalogue().load_model(base.model).value());
      REQUIRE(back.ok() == found->loss.refusal.empty());
      if (!back.ok()) {
        CHECK(check_loss(base.target, found->loss).error().kind == ErrorKind::kDoesNotFit);
        continue;
      }
      std::set<std::string> lost = keys_of(found->loss);
      if (change.parts.contains(StackPart::kFinetune)) lost.erase("base_dtype");  // set by qlora
      CHECK(lost == with_effect(made, base.target, keys_that_differ(made, *back)));
      Scenario other = made.scenario;
      other.model = back->model;
      other.stack = without_limits(with_parts(made.own, back->parts));
      const auto again = simulate(other, back->plan);
      REQUIRE(again.ok());
      CHECK(found->loss.step_back.value() == Approx(again->step.value()).epsilon(1e-12));
      CHECK(found->loss.memory_back.value() == Approx(again->peak.value()).epsilon(1e-12));
      const double most =
          std::max(std::abs(found->loss.step_change()), std::abs(found->loss.memory_change()));
      const bool loses_settings = std::any_of(
          found->loss.lost.begin(), found->loss.lost.end(),
          [](const LostSetting& one) { return one.key.find("model.") == std::string::npos; });
      const double tolerated = loses_settings ? kToleratedRounding : kToleratedLoss;
      CHECK(check_loss(base.target, found->loss).ok() == (most <= tolerated));
      CHECK((loss_text(found->loss).empty()) == found->loss.lost.empty());
      ++(found->loss.lost.empty() ? whole : lossy);
    }
  }
  CHECK(whole > 20);
  CHECK(lossy > 20);
  CHECK(refused > 5);
}

namespace {

PartValues parts_of(std::initializer_list<std::pair<StackPart, const char*>> words) {
  PartValues parts;
  for (const auto& [part, word] : words) parts[part] = parse_value(row_of(part), word).value();
  return parts;
}

const Base& base_of(const char* model, LaunchStack target) {
  for (const Base& base : kBases) {
    if (std::string_view(base.model) == model && base.target == target) return base;
  }
  throw BugError("no such base");
}

void check_whole(const Base& base, const Exported& made) {
  CAPTURE(base.model, name_of(base.target), to_string(made.file.parts));
  const auto found = checked(base, made);
  INFO((found.ok() ? loss_text(found->loss) + found->loss.refusal : to_string(found.error())));
  REQUIRE(found.ok());
  CHECK(found->loss.refusal.empty());
  CHECK(found->loss.lost.empty());
}

}  // namespace

TEST_CASE("parts with an option in launch files come back") {
  struct Kept {
    const char* model;
    LaunchStack target;
    std::vector<std::pair<StackPart, const char*>> parts;
  };
  using enum StackPart;
  constexpr auto kMegatron = LaunchStack::kMegatronLm, kNemo = LaunchStack::kNemo;
  constexpr auto kTitan = LaunchStack::kTorchTitan;
  const Kept kKept[] = {
      {"llama-3-8b", kMegatron, {{kCudaGraphs, "full"}}},
      {"llama-3-8b", kMegatron, {{kCudaGraphs, "full_iteration"}}},
      {"llama-3-8b", kMegatron, {{kCudaGraphs, "attn,mlp"}}},
      {"llama-3-8b", kMegatron, {{kAttentionKernel, "cudnn"}}},
      {"llama-3-8b", kMegatron, {{kOptimizerDtype, "bf16"}}},
      {"llama-3-8b", kMegatron, {{kOptimizerKind, "muon"}}},
      {"llama-3-8b", kMegatron, {{kOptimizerKind, "muon"}, {kMuonTpMode, "distributed"}}},
      {"llama-3-8b", kMegatron, {{kRotaryKernel, "torch"}, {kActivationKernel, "torch"}}},
      {"llama-3-8b", kMegatron, {{kResidualKernel, "torch"}}},
      {"llama-3-8b", kMegatron, {{kGradientAccumulation, "separate"}}},
      {"llama-3-8b", kMegatron, {{kTpOverlap, "userbuffers"}}},
      {"llama-3-8b", kMegatron, {{kBlockingLaunches, "on"}}},
      {"llama-3-8b", kMegatron, {{kOverlapGradientReduction, "on"}}},
      {"llama-3-8b", kNemo, {{kOptimizerKind, "muon"}, {kMuonTpMode, "blockwise"}}},
      {"llama-3-8b", kNemo, {{kCudaGraphs, "full"}}},
      {"llama-3-8b", kNemo, {{kCudaGraphs, "attn"}}},
      {"llama-3-8b", kNemo, {{kAttentionKernel, "cudnn"}}},
      {"llama-3-8b", kNemo, {{kRotaryKernel, "torch"}, {kActivationKernel, "torch"}}},
      {"llama-3-8b", kNemo, {{kBlockingLaunches, "on"}}},
      {"qwen3-30b-a3b", kMegatron, {{kCudaGraphs, "attn,moe_router,moe_preprocess"}}},
      {"qwen3-30b-a3b", kMegatron, {{kEpOverlap, "on"}, {kDispatcher, "hybridep"}}},
      {"qwen3-30b-a3b", kNemo, {{kCudaGraphs, "attn,moe_router"}}},
      {"llama-3-8b", kTitan, {{kCompile, "on"}}},
      {"llama-3-8b", kTitan, {{kLossHead, "chunked"}}},
      {"llama-3-8b", kTitan, {{kShardGroup, "node"}}},
      {"llama-3-8b", kTitan, {{kShardGroup, "4"}}},
      {"llama-3-8b", kTitan, {{kBlockingLaunches, "on"}}},
      {"llama-3-8b", LaunchStack::kAccelerate, {{kShardGroup, "node"}}},
      {"llama-3-8b", LaunchStack::kAccelerate, {{kBlockingLaunches, "on"}}},
      {"llama-3-8b", LaunchStack::kAccelerate, {{kCompile, "on"}, {kOptimizerKernel, "fused"}}},
      {"llama-3.1-8b", LaunchStack::kNanotron, {{kBlockingLaunches, "on"}}},
      {"gpt-7.5b", LaunchStack::kMegatronDeepSpeed, {{kResidualKernel, "torch"}}},
      {"gpt-7.5b", LaunchStack::kMegatronDeepSpeed, {{kAttentionKernel, "torch"}}},
      {"gpt-7.5b", LaunchStack::kMegatronDeepSpeed, {{kBlockingLaunches, "on"}}},
  };
  for (const Kept& kept : kKept) {
    PartValues parts;
    for (const auto& [part, word] : kept.parts) {
      parts[part] = parse_value(row_of(part), word).value();
    }
    const Base& base = base_of(kept.model, kept.target);
    check_whole(base, exported_of(base, "", parts));
  }
}

TEST_CASE("changed sequence length and dropout, and stages with MTP layers, come back") {
  for (const Base& base : kBases) {
    Exported made = exported_of(base, "", {});
    check_whole(base, made);
    made.file.model.seq = made.scenario.model.seq = made.file.model.seq / 2;
    check_whole(base, made);
  }
  const Base& nemo = base_of("llama-3-8b", LaunchStack::kNemo);
  Exported drops = exported_of(nemo, "attention=unfused", {});
  drops.file.model.attention_dropout = drops.scenario.model.attention_dropout = 0.1;
  check_whole(nemo, drops);
  const Base& mixture = base_of("deepseek-v3", LaunchStack::kMegatronLm);
  Exported uneven = exported_of(mixture, "", {});
  REQUIRE(uneven.file.model.ends.prediction_layers == 1);
  uneven.file.plan.stage_layers = {7, 8, 8, 8, 8, 8, 8, 6};
  check_whole(mixture, uneven);
  const auto files = export_plan(mixture.target, uneven.file, 8, uneven.own);
  REQUIRE(files.ok());
  CHECK(files->front().text.find("t*6mL'") != std::string::npos);
}

TEST_CASE("experts use grouped GEMMs, and their overlap sets CUDA_DEVICE_MAX_CONNECTIONS") {
  const Base& base = base_of("qwen3-30b-a3b", LaunchStack::kMegatronLm);
  const auto text_of_export = [&](const PartValues& parts) {
    const Exported made = exported_of(base, "", parts);
    return export_plan(base.target, made.file, 8, made.own).value().front().text;
  };
  const std::string plain = text_of_export({});
  CHECK(plain.find("\n  --moe-grouped-gemm\n") != std::string::npos);
  CHECK(plain.find("CUDA_DEVICE_MAX_CONNECTIONS=1\n") != std::string::npos);
  const std::string overlapped = text_of_export(parts_of({{StackPart::kEpOverlap, "on"}}));
  CHECK(overlapped.find("CUDA_DEVICE_MAX_CONNECTIONS=32\n") != std::string::npos);
}

TEST_CASE("a job is checked like the files in it") {
  const Base& base = base_of("llama-3-8b", LaunchStack::kMegatronLm);
  const PartValues unsaid = parts_of({{StackPart::kNormKernel, "torch"}});
  for (const LaunchStack job :
       {LaunchStack::kMegatronLm, LaunchStack::kSlurm, LaunchStack::kKubernetes}) {
    const Exported made = exported_of(base, "", unsaid);
    const auto found = checked_export(job, made.file, made.scenario, made.own);
    REQUIRE(found.ok());
    REQUIRE(found->loss.lost.size() == 1);
    CHECK(found->loss.lost[0].key == "norm_kernel");
    CHECK(found->loss.lost[0].from == "torch");
    CHECK(found->loss.lost[0].to == "fused");
    CHECK(found->loss.step_change() < -kToleratedLoss);
    const Status loss = check_loss(job, found->loss);
    REQUIRE_FALSE(loss.ok());
    CHECK(loss.error().hint == "--allow-loss writes the files anyway");
  }
}

TEST_CASE("moments of two dtypes are refused") {
  Exported made = exported_of(base_of("llama-3-8b", LaunchStack::kMegatronLm), "",
                              parts_of({{StackPart::kOptimizerDtype, "bf16"}}));
  auto files = export_plan(LaunchStack::kMegatronLm, made.file, 8, made.own).value();
  std::string& text = files.front().text;
  const std::size_t second = text.find("--exp-avg-sq-dtype bf16");
  REQUIRE(second != std::string::npos);
  text.replace(second, std::string("--exp-avg-sq-dtype bf16").size(), "--exp-avg-sq-dtype fp32");
  const auto back = import_plan(LaunchStack::kMegatronLm, files, made.file.model);
  REQUIRE_FALSE(back.ok());
  CHECK_THAT(back.error().message, Catch::Contains("--exp-avg-sq-dtype"));
}

}  // namespace tpsim
