// Experts in launch files: their layout, capacity and dispatcher.
#include <catch2/catch.hpp>
#include <filesystem>

#include "core/model/model_json.h"
#include "core/software/stack_parts.h"
#include "frameworks/launch/launch_files.h"
#include "tests/frameworks/launch/launch_plans.h"
#include "tests/frameworks/launch/stack_rules.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {

using test::file_of;
using test::holds_line;
using test::without;

TEST_CASE("experts are exported to Megatron with their capacity, other stacks refuse them") {
  for (const std::int64_t per_token : {1, 2}) {
    ModelSpec model = test::small_mixture();
    model.experts.per_token = per_token;
    Plan plan = test::plan_of(model, {.tp = 2, .pp = 2, .dp = 4, .ep = 2}, 4);
    plan.sequence_parallel = true;
    plan.zero = 1;
    for (const LaunchStack stack : {LaunchStack::kMegatronLm, LaunchStack::kNemo}) {
      const auto files = export_plan(stack, file_of(model, plan), 4);
      REQUIRE(files.ok());
      CHECK(test::objection(stack, *files) == "");
      CHECK(import_plan(stack, *files, model).value().plan == plan);
    }
    const auto megatron = export_plan(LaunchStack::kMegatronLm, file_of(model, plan), 4);
    for (const char* line : {"--num-experts 4", "--moe-expert-capacity-factor 1.25",
                             "--moe-pad-expert-input-to-capacity", "--expert-model-parallel-size 2",
                             "--expert-tensor-parallel-size 2"}) {
      INFO(line);
      CHECK(holds_line(megatron->front().text, line));
    }
    auto dropless = *megatron;
    dropless.front().text =
        without(dropless.front().text, "  --moe-expert-capacity-factor 1.25\n", "");
    CHECK_FALSE(import_plan(LaunchStack::kMegatronLm, dropless, model).ok());
    CHECK_FALSE(import_plan(LaunchStack::kMegatronLm, *megatron, test::small_llama()).ok());
    const auto refused = [&](LaunchStack stack, auto change) {
      Plan other = plan;
      change(other);
      const auto files = export_plan(stack, file_of(model, other), 4);
      REQUIRE_FALSE(files.ok());
      return files.error().message;
    };
    const auto nothing = [](Plan&) {};
    CHECK_THAT(refused(LaunchStack::kTorchTitan, nothing), Catch::Contains("experts"));
    CHECK_THAT(refused(LaunchStack::kMegatronDeepSpeed, nothing), Catch::Contains("experts"));
    CHECK_THAT(
        refused(LaunchStack::kMegatronLm, [](Plan& p) { p.rank_order = RankOrder::kTpPpDp; }),
        Catch::Contains("tp-pp-dp"));
  }
}

TEST_CASE("expert layouts are exported to Megatron and come back, with their dispatcher") {
  ModelSpec model = test::small_mixture();
  model.experts.dropless = true;
  model.experts.capacity_factor = 1;
  Plan plan = test::plan_of(model, {.tp = 2, .dp = 4, .ep = 4, .etp = 1}, 4);
  plan.sequence_parallel = true;
  plan.zero = 1;
  plan.recompute = Recompute::kNone;  // Megatron refuses full recompute beside overlapped experts
  for (const Dispatcher dispatcher : all_of<Dispatcher>()) {
    PlanFile file = file_of(model, plan);
    file.parts[StackPart::kDispatcher] = static_cast<std::int64_t>(dispatcher);
    file.parts[StackPart::kPermute] = static_cast<std::int64_t>(PermuteKernel::kUnfused);
    file.parts[StackPart::kExpertLoad] = kBalancedLoad;
    const bool overlaps = dispatcher != Dispatcher::kAllGather;  // which Megatron refuses with it
    if (overlaps) file.parts[StackPart::kEpOverlap] = 1;
    for (const LaunchStack stack : {LaunchStack::kMegatronLm, LaunchStack::kNemo}) {
      const auto files = export_plan(stack, file, 4);
      REQUIRE(files.ok());
      CHECK(test::objection(stack, *files) == "");
      CHECK(import_plan(stack, *files, model).value().plan == plan);
    }
    const auto megatron = export_plan(LaunchStack::kMegatronLm, file, 4);
    CHECK(holds_line(megatron->front().text, "--expert-tensor-parallel-size 1"));
    ImportInputs inputs;
    inputs.model = model;
    const auto read = import_plan(LaunchStack::kMegatronLm, *megatron, inputs);
    REQUIRE(read.ok());
    for (const auto& [part, value] : file.parts) {
      CAPTURE(row_of(part).key);
      CHECK(read->parts.at(part) == value);
    }
  }
  // Earlier versions had another dispatcher, whose unfused permute moves hidden slices.
  PlanFile seq = file_of(model, plan);
  seq.parts[StackPart::kDispatcher] = static_cast<std::int64_t>(Dispatcher::kAllToAll);
  seq.parts[StackPart::kPermute] = static_cast<std::int64_t>(PermuteKernel::kUnfused);
  auto sliced = export_plan(LaunchStack::kMegatronLm, seq, 4);
  REQUIRE(sliced.ok());
  std::string& text = sliced->front().text;
  text.insert(text.find("alltoall") + 8, "_seq");
  ImportInputs of_model;
  of_model.model = model;
  const auto back = import_plan(LaunchStack::kMegatronLm, *sliced, of_model);
  REQUIRE(back.ok());
  CHECK(back->parts.at(StackPart::kPermute) ==
        static_cast<std::int64_t>(PermuteKernel::kUnfusedSeq));
  PlanFile padded = file_of(model, plan);
  padded.model.experts.dropless = false;
  padded.parts[StackPart::kDispatcher] = static_cast<std::int64_t>(Dispatcher::kDeepEp);
  const auto refused = export_plan(LaunchStack::kMegatronLm, padded, 4);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message,
             Catch::Contains("the deepep dispatcher does not support experts with a capacity"));
}

TEST_CASE("DeepEP is refused on GPUs and numbers of ranks that it does not support") {
  ModelSpec model = test::small_mixture();
  model.experts.dropless = true;
  model.experts.capacity_factor = 1;
  model.experts.count = 24;
  const auto refusal = [&](std::int64_t ep, const char* gpu) {
    PlanFile file = file_of(model, test::plan_of(model, {.tp = 1, .dp = 2 * ep, .ep = ep}, 2 * ep));
    file.plan.zero = 1;
    file.profile = gpu;
    file.parts[StackPart::kDispatcher] = static_cast<std::int64_t>(Dispatcher::kDeepEp);
    const auto files = export_plan(LaunchStack::kMegatronLm, file, 2 * ep);
    return files.ok() ? std::string() : files.error().message;
  };
  CHECK(refusal(4, "h100-sxm") == "");
  CHECK_THAT(refusal(4, "gb200"), Catch::Contains("DeepEP on GB200 and GB300"));
  CHECK_THAT(refusal(1, "h100-sxm"), Catch::Contains("DeepEP in a group of one rank"));
  CHECK_THAT(refusal(6, "h100-sxm"), Catch::Contains("DeepEP over this number of ranks"));
}

TEST_CASE("CUDA graphs of experts are written only for experts of a fixed size") {
  const auto exported = [](ModelSpec model, const char* scope) {
    PlanFile file = file_of(model, test::plan_of(model, {.tp = 1, .dp = 4}, 4));
    file.plan.zero = 1;
    file.plan.recompute = Recompute::kNone;
    file.parts[StackPart::kCudaGraphs] = parse_value(row_of(StackPart::kCudaGraphs), scope).value();
    const auto files = export_plan(LaunchStack::kMegatronLm, file, 4);
    return files.ok() ? files->front().text : files.error().message;
  };
  ModelSpec model = test::small_mixture();
  ModelSpec dense = model;
  dense.experts = {};
  CHECK(holds_line(exported(dense, "attn,moe_router"), "--cuda-graph-scope attn"));
  PlanFile growing = file_of(dense, test::plan_of(dense, {.tp = 1, .dp = 4}, 4));
  growing.plan.zero = 1;
  growing.plan.recompute = Recompute::kNone;
  growing.parts[StackPart::kCudaGraphs] = bit(GraphScope::kAttention);
  growing.parts[StackPart::kExpandableSegments] = 1;
  CHECK_THAT(export_plan(LaunchStack::kMegatronLm, growing, 4)->front().text,
             Catch::Contains("export NCCL_GRAPH_REGISTER=0"));
  growing.parts[StackPart::kRecomputeModules] = bit(RecomputeModule::kLatentUp);
  growing.plan.recompute = Recompute::kSelective;
  CHECK_THAT(export_plan(LaunchStack::kMegatronLm, growing, 4).error().message,
             Catch::Contains("recompute of mla_up_proj without latent attention"));
  CHECK(holds_line(exported(model, "attn,moe"), "--cuda-graph-scope attn moe"));
  PlanFile whole = file_of(model, test::plan_of(model, {.tp = 1, .dp = 4}, 4));
  whole.plan.zero = 1;
  whole.plan.recompute = Recompute::kFull;
  whole.parts[StackPart::kCudaGraphs] = bit(GraphScope::kAttention);
  CHECK_THAT(export_plan(LaunchStack::kMegatronLm, whole, 4).error().message,
             Catch::Contains("CUDA graphs of modules with full recompute"));
  model.experts.dropless = true;
  model.experts.capacity_factor = 1;
  CHECK_THAT(exported(model, "moe"), Catch::Contains("CUDA graphs of dropless experts"));
  CHECK_THAT(exported(model, "full_iteration"),
             Catch::Contains("CUDA graphs of the whole step with dropless experts"));
}

TEST_CASE("experts with biases are refused if tensor parallelism splits them") {
  ModelSpec model = test::small_mixture();
  model.experts.dropless = true;
  model.experts.capacity_factor = 1;
  model.linear_bias = true;
  const auto refusal = [&](std::int64_t etp) {
    Plan plan = test::plan_of(model, {.tp = 2, .dp = 4, .ep = 2, .etp = etp}, 4);
    plan.sequence_parallel = true;
    plan.zero = 1;
    const auto files = export_plan(LaunchStack::kMegatronLm, file_of(model, plan), 8);
    return files.ok() ? std::string() : files.error().message;
  };
  CHECK(refusal(1) == "");
  CHECK_THAT(refusal(0), Catch::Contains("experts with biases that are split by tensor parallel"));
}

TEST_CASE("features of recent models are exported to Megatron-LM and come back") {
  const std::filesystem::path folder =
      std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/core/model/configs";
  struct Line {
    const char* file;
    const char* line;
  };
  for (const auto& [file, line] :
       {Line{"qwen2.5-7b", "--add-qkv-bias"}, Line{"qwen3-8b", "--qk-layernorm"},
        Line{"qwen3-30b-a3b", "--qk-layernorm"},
        Line{"deepseek-v3", "--moe-layer-freq '([0]*3+[1]*58)'"},
        Line{"deepseek-v2-lite", "--moe-shared-expert-intermediate-size 2816"},
        Line{"mistral-7b-v0.1", "--window-size 4095,0"}, Line{"glm-4.5", "--rotary-percent 0.5"},
        Line{"kimi-k2", "--q-lora-rank 1536"}}) {
    INFO(file);
    ModelSpec model = read_model(folder / (std::string(file) + ".json")).value();
    model.seq = 4096;
    model.vocab_multiple = 128;
    Plan plan = test::plan_of(model, {.tp = 2, .pp = 1, .dp = 4}, 4);
    plan.stage_layers = {model.layers};
    plan.sequence_parallel = true;
    plan.zero = 1;
    const auto files = export_plan(LaunchStack::kMegatronLm, file_of(model, plan), 8);
    if (!files.ok()) FAIL(to_string(files.error()));
    CHECK(test::objection(LaunchStack::kMegatronLm, *files) == "");
    CHECK(holds_line(files->front().text, line));
    const auto read = import_plan(LaunchStack::kMegatronLm, *files, model);
    if (!read.ok()) FAIL(to_string(read.error()));
    CHECK(read->plan == plan);
    // Import for another model is refused.
    CHECK_FALSE(import_plan(LaunchStack::kMegatronLm, *files, test::small_llama()).ok());
    CHECK_FALSE(export_plan(LaunchStack::kTorchTitan, file_of(model, plan), 8).ok());
  }
}

TEST_CASE("a script that states windows, latents or clamped experts describes the model") {
  // Without the file's line about the model, its options alone describe the same layers.
  for (const char* name : {"mistral-7b-v0.1", "deepseek-v3", "gpt-oss-20b", "glm-4.5"}) {
    INFO(name);
    const std::filesystem::path folder =
        std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/core/model/configs";
    ModelSpec model = read_model(folder / (std::string(name) + ".json")).value();
    model.seq = 4096;
    model.vocab_multiple = 128;
    model.ends.prediction_layers = 0;
    Plan plan = test::plan_of(model, {.tp = 1, .pp = 1, .dp = 8}, 8);
    plan.stage_layers = {model.layers};
    plan.zero = 1;
    const auto files = export_plan(LaunchStack::kMegatronLm, file_of(model, plan), 8);
    if (!files.ok()) FAIL(to_string(files.error()));
    const auto read = import_plan(LaunchStack::kMegatronLm, *files, ImportInputs{});
    if (!read.ok()) FAIL(to_string(read.error()));
    CHECK(read->plan == plan);
    CHECK(parameter_count(read->model) == parameter_count(model));
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      const BlockShape said = block_of_kind(read->model, block_kind(read->model, layer));
      const BlockShape own = block_of_kind(model, block_kind(model, layer));
      CHECK(said.attention.window == own.attention.window);
      CHECK(said.attention.latent == own.attention.latent);
      CHECK(said.attention.score.sinks == own.attention.score.sinks);
      CHECK(said.experts.bias == own.experts.bias);
    }
  }
}

}  // namespace tpsim
