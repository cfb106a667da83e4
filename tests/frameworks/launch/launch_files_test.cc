// Launch files: every plan that a stack takes comes back exactly, every other is refused with a
// reason, and the text is that of tests/frameworks/launch/launch_files/.
#include "frameworks/launch/launch_files.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <utility>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "plans/search/enumerate.h"
#include "tests/frameworks/launch/launch_plans.h"
#include "tests/frameworks/launch/stack_rules.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

using test::bloom_file;
using test::file_of;
using test::holds_line;
using test::llama_file;
using test::titan_file;
using test::without;

constexpr std::size_t kMostBytes = 1 << 20;

const std::vector<LaunchStack> kStacks = {LaunchStack::kMegatronLm, LaunchStack::kMegatronDeepSpeed,
                                          LaunchStack::kNemo,       LaunchStack::kTorchTitan,
                                          LaunchStack::kNanotron,   LaunchStack::kAccelerate,
                                          LaunchStack::kSlurm,      LaunchStack::kKubernetes};

// A configuration names what its program must know and no plan is made of.
bool names_more(LaunchStack stack) {
  return stack == LaunchStack::kNanotron || stack == LaunchStack::kAccelerate;
}

// Every combination that the search knows, on 16 GPUs, with every dtype and rank order, sequences
// whole and shared; with sanitizers one in TPSIM_EVERY_PLAN.
std::vector<Plan> all_plans(const ModelSpec& model) {
  std::vector<Plan> plans;
  SearchSpace space;
  space.gpus = 16;
  space.global_batch = 32;
  space.uneven_ends = 0;
  space.asked[Setting::kRankOrder] = {static_cast<std::int64_t>(RankOrder::kTpDpPp)};
  space.asked[Setting::kCp] = {1, 2};
  space.asked[Setting::kRecomputeBlocks] = {1};
  space.asked[Setting::kOffload] = {0, 1};  // none and optimizer
  std::size_t seen = 0;
  enumerate_plans(test::small_scenario(model), space, [&](const Plan& plan) {
    if (seen++ % TPSIM_EVERY_PLAN != 0) return;
    plans.push_back(plan);
    Plan other = plan;
    other.dtype = other.gradient_dtype = DType::kFloat16;
    other.rank_order = RankOrder::kTpPpDp;
    plans.push_back(other);
    other.rank_order = RankOrder::kTpDpPp;
    plans.push_back(other);
  });
  return plans;
}

// Any plan that is legal for the model, most of its choices made at random.
Plan random_plan(const ModelSpec& model, std::mt19937& random) {
  const auto pick = [&](std::initializer_list<std::int64_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  for (;;) {
    Plan plan;
    plan.degrees = {.tp = pick({1, 2, 4}), .pp = pick({1, 2, 3, 4, 8}), .dp = pick({1, 2, 3, 8})};
    plan.virtual_stages = pick({1, 1, 2, 3});
    plan.zero = static_cast<int>(pick({0, 1, 2, 3}));
    plan.micro_batch = pick({1, 2, 3, 5});
    plan.global_batch = plan.degrees.dp * plan.micro_batch * pick({1, 2, 6, 24});
    plan.sequence_parallel = pick({0, 1}) == 1;
    plan.recompute = static_cast<Recompute>(pick({0, 1, 2, 3}));
    if (plan.recompute == Recompute::kBlocks) plan.recompute_blocks = pick({1, 2, 3});
    plan.attention = static_cast<AttentionKind>(pick({0, 1}));
    plan.schedule = static_cast<ScheduleKind>(pick({0, 1, 2}));
    plan.dtype = static_cast<DType>(pick({0, 1, 2}));
    plan.gradient_dtype = pick({0, 1}) == 0 ? DType::kFloat32 : static_cast<DType>(pick({0, 1, 2}));
    plan.offload = pick({0, 0, 0, 0, 1}) == 0 ? Offload::kNone : Offload::kOptimizer;
    plan.rank_order = pick({0, 0, 1}) == 0 ? RankOrder::kTpDpPp : RankOrder::kTpPpDp;
    plan.stage_layers = even_stage_layers(model.layers, chunk_count(plan), pick({0, 1}) == 1);
    if (plan.stage_layers.empty()) continue;
    if (pick({0, 0, 1}) == 1) {  // blocks move to another stage
      const std::size_t from = random() % plan.stage_layers.size();
      const std::size_t to = random() % plan.stage_layers.size();
      plan.stage_layers[to] += std::exchange(plan.stage_layers[from], 0) * (from != to ? 1 : 0);
    }
    if (validate(plan, model).ok()) return plan;
  }
}

}  // namespace

TEST_CASE("what a stack takes comes back exactly, and what it refuses has a reason") {
  for (const ModelSpec& model : {test::small_bloom(), test::small_llama(), test::small_gpt()}) {
    std::map<LaunchStack, int> taken;
    for (const Plan& plan : all_plans(model)) {
      for (const LaunchStack stack : kStacks) {
        const auto files = export_plan(stack, file_of(model, plan), 4);
        if (!files.ok()) {
          CHECK(files.error().kind == ErrorKind::kBadInput);
          CHECK_FALSE(files.error().hint.empty());
          continue;
        }
        ++taken[stack];
        REQUIRE(test::objection(stack, *files) == "");
        const auto back = import_plan(stack, *files, model);
        INFO(name_of(stack) << " " << short_name(plan)
                            << (back.ok() ? "" : to_string(back.error())));
        REQUIRE(back.ok());
        CHECK(back->plan == plan);
        CHECK(back->outside.empty() != names_more(stack));
      }
    }
    const bool bloom = model.embedding_norm;
    const bool llama = model.norm == NormKind::kRmsNorm;
    CHECK((taken[LaunchStack::kMegatronLm] > 0) == !bloom);
    CHECK((taken[LaunchStack::kNemo] > 0) == !bloom);
    CHECK((taken[LaunchStack::kMegatronDeepSpeed] > 0) == !llama);
    CHECK((taken[LaunchStack::kTorchTitan] > 0) == llama);
    CHECK((taken[LaunchStack::kNanotron] > 0) == llama);
    CHECK(taken[LaunchStack::kAccelerate] > 0);
  }
}

TEST_CASE("random plans come back exactly in every dimension, or are refused with a reason") {
  constexpr int kPlans = 6000;
  std::mt19937 random(20220711);
  std::map<LaunchStack, int> taken;
  for (ModelSpec model : {test::small_bloom(), test::small_llama(), test::small_gpt()}) {
    model.hidden_dropout = model.norm == NormKind::kRmsNorm ? 0 : 0.1;
    for (int i = 0; i < kPlans; ++i) {
      const Plan plan = random_plan(model, random);
      StackSpec software;
      software.training.overlap_gradient_reduction = i % 2 == 1;
      software.training.overlap_parameter_gather = i % 4 == 3;
      software.parts.cp_comm_type = i % 3 == 0 ? CpCommType::kP2p : CpCommType::kAllGather;
      for (const LaunchStack stack : kStacks) {
        const auto files = export_plan(stack, file_of(model, plan), 1, software);
        INFO(name_of(stack) << " " << short_name(plan));
        if (!files.ok()) {
          CHECK_FALSE(files.error().hint.empty());
          continue;
        }
        ++taken[stack];
        REQUIRE(test::objection(stack, *files) == "");
        const auto back = import_plan(stack, *files, model);
        if (!back.ok()) FAIL(to_string(back.error()));
        REQUIRE(back->plan == plan);
        const auto exchange = back->parts.find(StackPart::kCpCommType);
        if (exchange != back->parts.end()) {
          REQUIRE(exchange->second == static_cast<int>(software.parts.cp_comm_type));
        }
      }
    }
  }
  for (const LaunchStack stack : kStacks) CHECK(taken[stack] > 20);
}

TEST_CASE("the stacks' own rules notice a file that breaks them") {
  const auto objects = [](LaunchStack stack, const PlanFile& file, const std::string& part,
                          const std::string& instead) {
    auto files = export_plan(stack, file, 8).value();
    REQUIRE(test::objection(stack, files) == "");
    for (LaunchFile& one : files) {
      const std::size_t at = one.text.find(part);
      if (at != std::string::npos) one.text.replace(at, part.size(), instead);
    }
    return !test::objection(stack, files).empty();
  };
  const PlanFile llama = llama_file();
  const PlanFile bloom = bloom_file();
  CHECK(objects(LaunchStack::kMegatronLm, llama, "--bf16", "--bf17"));
  CHECK(objects(LaunchStack::kMegatronLm, llama, "--bf16", "--bf16\n  --fp16"));
  CHECK(objects(LaunchStack::kMegatronLm, llama, "MAX_CONNECTIONS=1", "MAX_CONNECTIONS=8"));
  CHECK(objects(LaunchStack::kMegatronLm, llama, "-size 512", "-size 513"));
  CHECK(objects(LaunchStack::kMegatronLm, llama, "-pipeline-rank 5", "-pipeline-rank 3"));
  CHECK(objects(LaunchStack::kMegatronDeepSpeed, bloom, "--zero-stage 0", "--zero-stage 2"));
  CHECK(objects(LaunchStack::kMegatronDeepSpeed, bloom, "steps\": 128", "steps\": 64"));
  CHECK(objects(LaunchStack::kMegatronDeepSpeed, bloom, "type alibi", "type rotary"));
  CHECK(objects(LaunchStack::kNemo, llama, "bf16: true", "bf16: maybe"));
  CHECK(objects(LaunchStack::kTorchTitan, titan_file(), "--parallelism.enable-sequence-parallel",
                "--parallelism.enable-sequence-parallel true"));
  CHECK(objects(LaunchStack::kSlurm, bloom, "--nodes=48", "--nodes=47"));
}

TEST_CASE("every version of a stack that ships has its job script") {
  PlanFile file = bloom_file();
  for (const char* stack : {"megatron-deepspeed-bloom", "megatron-deepspeed-bloom-early",
                            "mine/megatron-deepspeed.json", "reference"}) {
    file.stack = stack;
    CHECK(export_plan(LaunchStack::kSlurm, file, 8).ok());
  }
  file.stack = "reference";
  CHECK_THAT(
      export_plan(LaunchStack::kSlurm, file, 8)->front().text,
      Catch::Contains("srun tpsim run plan.json --device cuda") && Catch::Contains("--gres=gpu:8"));
  file.stack = "reference-cpu";
  CHECK_THAT(export_plan(LaunchStack::kSlurm, file, 8)->front().text,
             Catch::Contains("srun --mpi=pmix") && !Catch::Contains("--gres"));
  file.stack = "megatron-deepspeedy";
  CHECK_FALSE(export_plan(LaunchStack::kSlurm, file, 8).ok());
}

TEST_CASE("a model's name cannot add lines to a job script") {
  PlanFile file = bloom_file();
  file.model.name = "evil\nscancel --user=me # $(x)";
  const auto files = export_plan(LaunchStack::kSlurm, file, 8);
  REQUIRE(files.ok());
  CHECK_THAT(files->front().text,
             Catch::Contains("#SBATCH --job-name=evil-scancel---user-me-----x-\n"));
}

TEST_CASE("context parallelism goes to the stacks that run it as the reference model does") {
  const ModelSpec model = test::small_llama();
  Plan plan = test::plan_of(model, {.tp = 2, .pp = 1, .dp = 2, .cp = 2}, 4);
  plan.attention = AttentionKind::kFlash;
  plan.recompute = Recompute::kNone;
  plan.zero = 1;
  const auto megatron = export_plan(LaunchStack::kMegatronLm, file_of(model, plan), 4);
  REQUIRE(megatron.ok());
  CHECK(holds_line(megatron->front().text, "--context-parallel-size 2"));
  CHECK(holds_line(megatron->front().text, "--cp-comm-type all_gather"));
  // Nothing said is Megatron's ring; PyTorch's is no setting of it.
  const auto exchanged = [&](const std::string& instead) {
    auto files = *megatron;
    files.front().text = without(files.front().text, "  --cp-comm-type all_gather\n", instead);
    const auto back = import_plan(LaunchStack::kMegatronLm, files, model);
    if (!back.ok()) return back.error().message;
    const PartRow& row = row_of(StackPart::kCpCommType);
    return text_of(row, back->parts.at(row.part));
  };
  CHECK(exchanged("") == "p2p");
  CHECK(exchanged("  --cp-comm-type all_gather\n") == "all_gather");
  CHECK(exchanged("  --cp-comm-type allgather allgather\n") == "all_gather");
  CHECK_THAT(exchanged("  --cp-comm-type p2p a2a\n"), Catch::Contains("is p2p a2a"));
  CHECK_THAT(exchanged("  --cp-comm-type a2a\n"), Catch::Contains("p2p and all_gather"));
  PlanFile ring = file_of(model, plan);
  ring.parts = {{StackPart::kCpCommType, static_cast<int>(CpCommType::kP2p)}};
  for (const LaunchStack stack : {LaunchStack::kMegatronLm, LaunchStack::kNemo}) {
    const auto files = export_plan(stack, ring, 4);
    REQUIRE(files.ok());
    CHECK(import_plan(stack, *files, model).value().parts.at(StackPart::kCpCommType) ==
          ring.parts.at(StackPart::kCpCommType));
  }
  ring.parts = {{StackPart::kCpCommType, static_cast<int>(CpCommType::kTorchRing)}};
  CHECK_THAT(export_plan(LaunchStack::kMegatronLm, ring, 4).error().hint, Catch::Contains("p2p"));

  const auto titan = export_plan(LaunchStack::kTorchTitan, file_of(model, plan), 4);
  REQUIRE_FALSE(titan.ok());
  CHECK_THAT(titan.error().hint, Catch::Contains("ZeRO 2 or 3"));
  plan.zero = 3;
  const auto sharded = export_plan(LaunchStack::kTorchTitan, file_of(model, plan), 4);
  REQUIRE(sharded.ok());
  CHECK(import_plan(LaunchStack::kTorchTitan, *sharded, model).value().plan == plan);

  const ModelSpec gpt = test::small_gpt();
  plan = test::plan_of(gpt, {.tp = 2, .pp = 1, .dp = 2, .cp = 2}, 4);
  const auto unfused = export_plan(LaunchStack::kMegatronLm, file_of(gpt, plan), 4);
  REQUIRE_FALSE(unfused.ok());
  CHECK_THAT(unfused.error().message, Catch::Contains("unfused attention"));
  const auto deepspeed = export_plan(LaunchStack::kMegatronDeepSpeed, file_of(gpt, plan), 4);
  REQUIRE_FALSE(deepspeed.ok());
  CHECK_THAT(deepspeed.error().message, Catch::Contains("context parallelism"));
}

TEST_CASE("uneven stages are laid out for Megatron and refused where stages are equal") {
  ModelSpec model = test::small_gpt();
  Plan plan = test::plan_of(model, {.tp = 2, .pp = 4, .dp = 2}, 4);
  plan.stage_layers = {0, 3, 4, 1};
  for (const LaunchStack stack : {LaunchStack::kMegatronLm, LaunchStack::kNemo}) {
    const auto files = export_plan(stack, file_of(model, plan), 4);
    REQUIRE(files.ok());
    CHECK(import_plan(stack, *files, model).value().plan == plan);
  }
  CHECK_FALSE(export_plan(LaunchStack::kMegatronDeepSpeed, file_of(model, plan), 4).ok());
}

TEST_CASE("BLOOM's layout is exported with the settings of its launch script") {
  // bigscience-workshop/bigscience train/tr11-176B-ml/tr11-176B-ml.slurm @ 003b2505, main phase.
  const auto files = export_plan(LaunchStack::kMegatronDeepSpeed, bloom_file(), 8);
  REQUIRE(files.ok());
  const std::string& shell = files->front().text;
  for (const char* line :
       {"--tensor-model-parallel-size 4", "--pipeline-model-parallel-size 12",
        "--pp-partition-method 'type:transformer|embedding'", "--num-layers 70",
        "--hidden-size 14336", "--num-attention-heads 112", "--seq-length 2048",
        "--max-position-embeddings 2048", "--micro-batch-size 2", "--global-batch-size 2048",
        "--embed-layernorm", "--bf16", "--position-embedding-type alibi",
        "--checkpoint-activations", "--pad-vocab-size-to 250880", "--deepspeed", "--zero-stage 0",
        "--deepspeed-activation-checkpointing"}) {
    INFO(line);
    CHECK(holds_line(shell, line));
  }
  CHECK_THAT(shell, Catch::Contains("NUM_NODES=48\nGPUS_PER_NODE=8\n"));
  const std::string& config = (*files)[1].text;
  for (const char* part :
       {"\"train_micro_batch_size_per_gpu\": 2", "\"train_batch_size\": 2048",
        "\"gradient_clipping\": 1", "{\"stage\": 0}", "\"bf16\": {\"enabled\": true}"}) {
    INFO(config);
    CHECK_THAT(config, Catch::Contains(part));
  }
}

TEST_CASE("refusals name what and why") {
  struct Case {
    LaunchStack stack;
    PlanFile file;
    const char* what;
  };
  PlanFile zero_2 = bloom_file();
  zero_2.plan.zero = 2;
  PlanFile zero_3 = bloom_file();  // its engine is the pipeline's on one stage too
  zero_3.plan.zero = 3;
  zero_3.plan.degrees = {.tp = 4, .pp = 1, .dp = 96};
  zero_3.plan.global_batch = 1920;
  zero_3.plan.stage_layers = {70};
  PlanFile replicated = llama_file();
  replicated.plan.zero = 0;
  PlanFile flash = bloom_file();
  flash.plan.attention = AttentionKind::kFlash;
  PlanFile gpipe = llama_file();
  gpipe.plan.schedule = ScheduleKind::kGpipe;
  gpipe.plan.virtual_stages = 1;
  gpipe.plan.stage_layers = even_stage_layers(80, 4, false);
  PlanFile few = titan_file();
  few.plan.virtual_stages = 1;
  few.plan.schedule = ScheduleKind::kOneFOneB;
  few.plan.stage_layers = even_stage_layers(80, 4, false);
  few.plan.global_batch = 3 * few.plan.degrees.dp;
  PlanFile odd = titan_file();
  odd.model.seq = 8200;  // divides by tp, not by twice as much
  PlanFile mapped = llama_file();
  mapped.plan.zero = 3;
  mapped.plan.degrees = {.tp = 8, .pp = 1, .dp = 32};
  mapped.plan.virtual_stages = 1;
  mapped.plan.schedule = ScheduleKind::kOneFOneB;
  mapped.plan.stage_layers = {80};
  mapped.plan.rank_order = RankOrder::kTpPpDp;
  PlanFile elsewhere = llama_file();
  elsewhere.stack = "my/stack.json";
  for (const Case& c : {Case{LaunchStack::kMegatronDeepSpeed, zero_2, "ZeRO 2 and 3"},
                        Case{LaunchStack::kMegatronDeepSpeed, flash, "flash attention"},
                        Case{LaunchStack::kMegatronLm, bloom_file(), "ALiBi"},
                        Case{LaunchStack::kMegatronLm, gpipe, "gpipe"},
                        Case{LaunchStack::kMegatronDeepSpeed, zero_3, "ZeRO 2 and 3"},
                        Case{LaunchStack::kTorchTitan, llama_file(), "ZeRO 1"},
                        Case{LaunchStack::kTorchTitan, replicated, "bf16 with tensor"},
                        Case{LaunchStack::kTorchTitan, bloom_file(), "architecture"},
                        Case{LaunchStack::kTorchTitan, few, "fewer micro-batches than stages"},
                        Case{LaunchStack::kTorchTitan, odd, "sequences of this length"},
                        Case{LaunchStack::kNemo, mapped, "tp-pp-dp with ZeRO 2 or 3"},
                        Case{LaunchStack::kNanotron, bloom_file(), "architecture"},
                        Case{LaunchStack::kAccelerate, llama_file(), "tensor, pipeline"},
                        Case{LaunchStack::kKubernetes, elsewhere, "my/stack.json"},
                        Case{LaunchStack::kSlurm, elsewhere, "my/stack.json"}}) {
    const auto files = export_plan(c.stack, c.file, 8);
    REQUIRE_FALSE(files.ok());
    CHECK_THAT(files.error().message, Catch::Contains(c.what));
  }
}

TEST_CASE("what the plan's stack overlaps is asked for, where Megatron can") {
  StackSpec software;
  TrainingOptions& training = software.training;
  training.overlap_gradient_reduction = training.overlap_parameter_gather = true;
  PlanFile file = llama_file();
  const auto text = [&](LaunchStack stack) {
    const auto files = export_plan(stack, file, 8, software);
    REQUIRE(files.ok());
    REQUIRE(test::objection(stack, *files) == "");
    CHECK(import_plan(stack, *files, file.model).value().plan == file.plan);
    return files->back().text;
  };
  CHECK_THAT(text(LaunchStack::kMegatronLm),
             Catch::Contains("--overlap-grad-reduce\n  --overlap-param-gather"));
  CHECK_THAT(text(LaunchStack::kNemo), Catch::Contains("overlap_param_gather: true"));
  file.plan.zero = 0;  // nothing to gather
  CHECK_THAT(text(LaunchStack::kMegatronLm), Catch::Contains("--overlap-grad-reduce") &&
                                                 !Catch::Contains("--overlap-param-gather"));
  auto files = export_plan(LaunchStack::kMegatronLm, file, 8, software).value();
  files[0].text = without(files[0].text, "reduce\n", "reduce\n  --overlap-param-gather\n");
  CHECK_THAT(import_plan(LaunchStack::kMegatronLm, files, file.model).error().message,
             Catch::Contains("needs a distributed optimizer"));
}

TEST_CASE("the exported files are the golden ones") {
  // Regenerated with TPSIM_REGENERATE_GOLDEN=1, and read as a diff.
  const PlanFile titan = titan_file();
  const std::filesystem::path folder =
      std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/frameworks/launch/launch_files";
  const auto check = [&](LaunchStack stack, const PlanFile& file, const std::string& name) {
    const auto files = export_plan(stack, file, 8);
    REQUIRE(files.ok());
    for (const LaunchFile& exported : *files) {
      INFO(name << "/" << exported.name);
      const auto golden = read_file(folder / name / exported.name, kMostBytes);
      REQUIRE(golden.ok());
      if (std::getenv("TPSIM_REGENERATE_GOLDEN") != nullptr) {
        REQUIRE(write_file_atomically(folder / name / exported.name, exported.text).ok());
      }
      CHECK(exported.text == *golden);
    }
    CHECK(import_plan(stack, *files, file.model).value().plan == file.plan);
  };
  check(LaunchStack::kMegatronDeepSpeed, bloom_file(), "bloom-176b");
  check(LaunchStack::kSlurm, bloom_file(), "bloom-176b");
  check(LaunchStack::kMegatronLm, llama_file(), "llama-3-70b");
  check(LaunchStack::kNemo, llama_file(), "llama-3-70b");
  check(LaunchStack::kTorchTitan, titan, "llama-3-70b");
  check(LaunchStack::kKubernetes, bloom_file(), "bloom-176b");
}

}  // namespace tpsim
