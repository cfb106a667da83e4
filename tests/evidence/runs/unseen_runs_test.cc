// Runs that are not in any table: other widths, odd head counts, one GPU, tensor groups across
// nodes. There are no measurements; the tests check laws that hold for every machine.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "evidence/runs/known_names.h"
#include "evidence/runs/validation.h"
#include "lowering/passes/quantization.h"
#include "lowering/trace/trace.h"
#include "sim/step/simulate.h"
#include "tests/sim/small_scenario.h"

namespace tpsim {
namespace {

PublishedRun gpt_run(std::int64_t hidden, std::int64_t heads, std::int64_t tp) {
  PublishedRun run;
  run.id = "unseen";
  run.outcome = "ok";
  run.gpu = "A100-80GB";
  run.framework = "Megatron-LM";
  run.layers = 8;
  run.hidden = hidden;
  run.heads = heads;
  run.seq = 1024;
  run.tp = tp;
  run.pp = run.dp = run.micro_batch = 1;
  run.global_batch = 4;
  run.step_s = 1;
  return run;
}

RunLoader loader_of_shipped_data() {
  const std::filesystem::path data = std::filesystem::path(TPSIM_SOURCE_DIR) / "data";
  auto environments = read_run_environments(data / "published_runs/environments.json");
  REQUIRE(environments.ok());
  return RunLoader(Catalogue(data), *environments, {});
}

// Predicted step of a run on a machine changed by `change`.
template <class Change>
double changed_step(const PublishedRun& run, const Change& change) {
  RunLoader loader = loader_of_shipped_data();
  auto setup = loader.setup(run);
  REQUIRE(setup.ok());
  change(setup->scenario);
  const auto predicted = simulate(setup->scenario, setup->plan);
  REQUIRE(predicted.ok());
  return predicted->step.value();
}

double step_of(const PublishedRun& run) {
  return changed_step(run, [](Scenario&) {});
}

std::string refusal_of(const PublishedRun& run) {
  RunLoader loader = loader_of_shipped_data();
  return predict_run(loader, run).skipped_because;
}

}  // namespace

TEST_CASE("a GPU whose name contains another GPU's name is not confused with it") {
  for (const char* gpu : {"GH300 96GB", "A800 80GB PCIe", "H800-PCIe"}) {
    PublishedRun run = gpt_run(1536, 12, 1);
    run.gpu = gpu;
    CAPTURE(gpu);
    CHECK_FALSE(refusal_of(run).empty());
  }
}

TEST_CASE("sizes of a named model and one degree may be missing in a row") {
  PublishedRun full = gpt_run(4096, 32, 2);
  full.layers = 32;
  full.kv_heads = 8;
  full.ffn_hidden = 14336;
  full.gated_ffn = true;
  full.vocab = 128256;
  full.gpus = 8;
  full.dp = 4;
  PublishedRun named = full;
  named.model = "Llama3-8B";
  named.layers = named.hidden = named.heads = named.kv_heads = named.ffn_hidden = named.vocab = 0;
  named.gated_ffn.reset();
  named.dp = 0;
  CHECK(step_of(named) == step_of(full));
  RunLoader loader = loader_of_shipped_data();
  CHECK(loader.completed(named).dp == 4);
  CHECK(loader.setup(named)->assumed.back() == "sizes of Llama3-8B");
  named.dp = 4;
  named.pp = 0;
  CHECK(loader.completed(named).pp == 1);  // tp 2 and dp 4 use all 8 GPUs
  named.dp = 0;
  CHECK(refusal_of(named) == "the row does not state pp");  // two degrees are missing
  // Sizes that differ from the model of this name: the name is not used.
  named.hidden = 5120;
  CHECK(refusal_of(named) ==
        "the row does not state layers, and no known model of its sizes is called Llama3-8B");
}

TEST_CASE("a framework name means the software of the row's month") {
  KnownNames names;
  names.add("NeMo, Megatron-Bridge", "new");
  names.add("NeMo until 2025-01", "old");
  names.add("NeMo until 2023-06", "oldest");
  const auto called = [&](const char* date, const char* framework) {
    return names.called(framework, month_of(date, framework)).entry;
  };
  CHECK(called("", "NVIDIA NeMo") == "new");
  CHECK(called("2024-12-31", "NeMo") == "old");
  CHECK(called("2025-01", "NeMo") == "old");
  CHECK(called("2025-02", "NeMo") == "new");
  CHECK(called("2025", "NeMo") == "new");  // any month of 2025
  CHECK(called("2023", "NeMo") == "old");
  CHECK(called("2023-03", "NeMo") == "oldest");
  CHECK(called("", "NeMo 24.07") == "old");
  CHECK(called("", "NeMo 25.07.01") == "new");
  CHECK(called("", "NeMo 1.24.07") == "new");  // not a version with year and month
  CHECK(called("2024-03", "Megatron-Bridge") == "new");
  CHECK(called("2024-03", "torch").empty());
}

TEST_CASE("a program's parts hold on its GPU, for its model and until its month") {
  KnownNames names;
  names.add("titan", "new");
  names.add("titan with compile=on/loss_head=eager on B200 until 2026-05", "old");
  CHECK(names.called("titan", "2026-05", {}, "B200").entry == "old");
  CHECK(names.called("titan", "2026-05", {}, "B200").parts == "compile=on/loss_head=eager");
  CHECK(names.called("titan", "2026-06", {}, "B200").entry == "new");
  CHECK(names.called("titan", "2026-05", {}, "H100").parts.empty());
  names.add("titan of Llama-4 with loss_head=eager until 2026-05", "old");
  const auto parts_of = [&](const char* model) {
    return names.called("titan", "2026-05", {}, "B200", model).parts;
  };
  CHECK(parts_of("meta-llama/llama-4-scout") == "loss_head=eager");
  CHECK(parts_of("Llama 4 Scout cut to 2 layers") == "loss_head=eager");
  CHECK(parts_of("Llama-3-70B") == "compile=on/loss_head=eager");
}

TEST_CASE("parts that a row states replace the stack's") {
  PublishedRun run = gpt_run(1536, 12, 1);
  run.gpu = "H100-80GB-SXM";
  run.attention = "flash";
  run.seq = 8192;  // with shorter sequences the host hides the time of attention
  const double usual = step_of(run);
  run.parts[StackPart::kAttentionKernel] = "flash2";
  CHECK(step_of(run) > usual);
  run.parts[StackPart::kAttentionKernel] = "best";
  CHECK(step_of(run) == usual);
}

TEST_CASE("models of any width, head count and framework are priced") {
  for (const char* gpu :
       {"A100-80GB", "A100-40GB", "H100-80GB", "H200", "B200", "A100-80GB-PCIe"}) {
    for (const char* framework : {"", "Megatron-LM", "Megatron-DeepSpeed", "NeMo", "Composer"}) {
      PublishedRun run = gpt_run(1536, 12, 1);
      run.gpu = gpu;
      run.framework = framework;
      RunLoader loader = loader_of_shipped_data();
      const RunOutcome outcome = predict_run(loader, run);
      CAPTURE(gpu, framework, outcome.skipped_because);
      REQUIRE(outcome.predicted);
      CHECK(outcome.low_s < outcome.step_s);
      CHECK(outcome.step_s < outcome.high_s);
      CHECK(outcome.low_s > 0);
    }
  }
}

TEST_CASE("a wider model, a deeper one and a longer batch take longer") {
  double last = 0;
  for (const std::int64_t hidden : {768, 1000, 1024, 2000, 2048, 3072, 5000, 8192}) {
    CAPTURE(hidden);
    const double step = step_of(gpt_run(hidden, 8, 1));
    CHECK(step > 0.9 * last);  // an unaligned width may be slower than the next aligned width
    last = step;
  }
  PublishedRun run = gpt_run(2048, 16, 1);
  const double once = step_of(run);
  run.layers *= 2;
  CHECK(step_of(run) > 1.5 * once);
  run.layers /= 2;
  run.global_batch *= 2;
  CHECK(step_of(run) > 1.7 * once);  // the end of the step does not grow with the batch
}

TEST_CASE("unaligned heads cost more, and grouped query attention costs less") {
  CHECK(step_of(gpt_run(2040, 20, 1)) > step_of(gpt_run(2048, 16, 1)));
  PublishedRun grouped = gpt_run(2048, 16, 1);
  grouped.kv_heads = 2;
  CHECK(step_of(grouped) < step_of(gpt_run(2048, 16, 1)));
}

TEST_CASE("a tensor group across nodes is slower than two replicas of half of it") {
  PublishedRun across = gpt_run(4096, 32, 16);
  across.global_batch = 64;
  PublishedRun inside = across;
  inside.tp = 8;
  inside.dp = 2;
  CHECK(step_of(across) > step_of(inside));
}

TEST_CASE("a faster part of the machine never slows a run") {
  PublishedRun run = gpt_run(4096, 32, 2);
  run.pp = 2;
  run.dp = 8;
  run.global_batch = 64;
  const double step = step_of(run);
  CHECK(changed_step(run, [](Scenario& s) { s.cluster.inter_node.bandwidth *= 2; }) <= step);
  CHECK(changed_step(run, [](Scenario& s) { s.cluster.intra_node.bandwidth *= 2; }) <= step);
  CHECK(changed_step(run, [](Scenario& s) { s.cluster.inter_node.latency *= 0.5; }) <= step);
  CHECK(changed_step(run, [](Scenario& s) { s.stack.host.per_op *= 0.5; }) <= step);
  CHECK(changed_step(run, [](Scenario& s) { s.profile.device.memory_bandwidth *= 2; }) < step);
  CHECK(changed_step(run, [](Scenario& s) { s.stack.rank_jitter *= 0.5; }) <= step);
}

TEST_CASE("the interval of a run on an unknown network is wider than inside a node") {
  PublishedRun alone = gpt_run(4096, 32, 8);
  PublishedRun across = gpt_run(4096, 32, 16);
  RunLoader loader = loader_of_shipped_data();
  const auto width = [&](const PublishedRun& run) {
    const RunOutcome outcome = predict_run(loader, run);
    return (outcome.high_s - outcome.low_s) / outcome.step_s;
  };
  CHECK(width(across) > width(alone));
}

TEST_CASE("a causal softmax reads half of the scores and writes all of them") {
  ModelSpec model = model_of(gpt_run(512, 8, 1), {});
  Plan plan;
  plan.attention = AttentionKind::kUnfused;
  const LayerTrace trace = trace_layers(LayerKind::kBlock, model, plan, {});
  int softmaxes = 0;
  for (const OpRecord& op : trace.program.ops) {
    const bool backward = op.key.kind == OpKind::kSoftmaxBackward;
    if (op.key.kind != OpKind::kSoftmaxForward && !backward) continue;
    ++softmaxes;
    const double scores = 2.0 * static_cast<double>(op.key.dims[0] * op.key.dims[1]) *
                          static_cast<double>(op.key.dims[2]);
    CHECK(op.bytes == Approx((backward ? 2.0 : 1.5) * scores).epsilon(0.001));
  }
  CHECK(softmaxes >= 2);
}

TEST_CASE("only linear layers use 8 bits, and each operand is quantized once") {
  ModelSpec model = model_of(gpt_run(512, 8, 1), {});
  Plan plan;
  plan.attention = AttentionKind::kUnfused;
  plan.recompute = Recompute::kNone;
  const LayerTrace trace = trace_layers(LayerKind::kBlock, model, plan, {});
  plan.precision = Precision::kFp8Block;
  Scenario scenario;
  QuantizedOperands rounded(scenario, plan);
  int linear = 0, casts = 0;
  for (const OpRecord& op : trace.program.ops) {
    if (!is_linear_layer(op)) continue;
    ++linear;
    const std::vector<OpRecord> ops = rounded.ops_for(op);
    CHECK(ops.back().flops == op.flops);
    CHECK(ops.back().key.dtype == DType::kFloat8Block);
    if (ops.size() == 1) continue;
    ++casts;
    const double scales = 2.0 * 4 / 128;  // row and column scales
    CHECK(ops.front().bytes ==
          Approx((4.0 + scales) * static_cast<double>(op.key.dims[1] * op.key.dims[3])));
  }
  CHECK(linear == 12);  // 4 linear layers: forward, dgrad and wgrad
  CHECK(casts == 8);
}

TEST_CASE("experts use 8 bits like linear layers, and the router keeps 16 bits") {
  const ModelSpec model = test::small_mixture();
  Plan plan;
  plan.attention = AttentionKind::kUnfused;
  std::map<std::string, bool> narrow;
  for (const OpRecord& op : trace_layers(LayerKind::kBlock, model, plan, {}).program.ops) {
    if (op.key.kind == OpKind::kMatmul) narrow[op.label.text] = is_linear_layer(op);
  }
  const std::map<std::string, bool> expected = {
      {"attention.qkv", true},     {"attention.output", true}, {"attention.scores", false},
      {"attention.values", false}, {"experts.router", false},  {"experts.up", true},
      {"experts.down", true}};
  CHECK(narrow == expected);
}

TEST_CASE("dtype and recipe of a row set the precision of linear layers") {
  PublishedRun run = gpt_run(4096, 32, 8);
  const auto recipe = [&](const char* dtype, const char* column) {
    run.dtype = dtype;
    run.precision_recipe = column;
    const Result<Plan> plan = plan_of(run, {}, StackSpec{});
    return plan.ok()
               ? std::string(name_of(plan->precision)) + " " + std::string(name_of(plan->dtype))
               : plan.error().message;
  };
  CHECK(recipe("fp8", "") == "fp8 bf16");
  CHECK(recipe("fp8", "delayed") == "fp8 bf16");
  CHECK(recipe("fp8", "current") == "fp8-current bf16");
  CHECK(recipe("fp8", "block") == "fp8-block bf16");
  CHECK(recipe("mxfp8", "") == "mxfp8 bf16");
  CHECK(recipe("nvfp4", "nvfp4") == "nvfp4 bf16");
  CHECK(recipe("bf16", "") == "none bf16");
  CHECK(recipe("bf16", "current") == "precision_recipe current is not possible with dtype bf16");
  run.dtype = "fp8";
  run.precision_recipe = "";
  StackSpec torchao;
  torchao.choices.only[Setting::kPrecision] = {static_cast<std::int64_t>(Precision::kNone),
                                               static_cast<std::int64_t>(Precision::kFp8Current)};
  CHECK(plan_of(run, {}, torchao)->precision == Precision::kFp8Current);
  CHECK(recipe("fp8", "secret") == "precision_recipe 'secret' is not modelled");
}

TEST_CASE("fp32 training attends without FlashAttention, except in PyTorch's own kernel") {
  PublishedRun run = gpt_run(4096, 32, 8);
  run.attention = "flash";
  StackSpec fused, plain, megatron;
  plain.parts.norm_kernel = megatron.parts.norm_kernel = KernelFusion::kTorch;
  megatron.parts.attention_kernel = AttentionKernel::kMegatron;
  for (const char* dtype : {"bf16", "fp32"}) {
    run.dtype = dtype;
    const bool is_wide = run.dtype == "fp32";
    CAPTURE(dtype);
    const auto without_sdpa = is_wide ? AttentionKind::kUnfused : AttentionKind::kFlash;
    CHECK(plan_of(run, {}, fused)->attention == without_sdpa);
    CHECK(plan_of(run, {}, megatron)->attention == without_sdpa);
    CHECK(plan_of(run, {}, plain)->attention == AttentionKind::kFlash);
  }
}

TEST_CASE("8-bit GEMMs make a large model faster, but not twice as fast") {
  PublishedRun run = gpt_run(12288, 96, 8);
  run.gpu = "H100-80GB";
  run.framework = "NeMo";
  run.seq = 4096;
  const double wide = step_of(run);
  run.dtype = "fp8";
  const double narrow = step_of(run);
  CHECK(narrow < 0.85 * wide);
  CHECK(narrow > 0.5 * wide);
}

TEST_CASE("runs of memory measurements do not count for time errors") {
  PublishedRun run = gpt_run(2048, 16, 1);
  run.cluster = "here";
  run.memory_gb = 10;
  RunEnvironment here;
  here.cluster = "here";
  here.runs_on = "dgx-a100-node";
  here.memory_only = true;
  RunLoader loader(Catalogue(std::filesystem::path(TPSIM_SOURCE_DIR) / "data"), {here}, {});
  const ValidationSummary s = summarize({predict_run(loader, run)});
  CHECK(s.n == 0);
  CHECK(s.memory_n == 1);
}

TEST_CASE("vocabularies are padded, with tp 1 only if the runs pad them") {
  PublishedRun run = gpt_run(2048, 16, 1);
  run.vocab = 50257;
  RunEnvironment unpadded;
  unpadded.unpadded_vocabulary = true;
  CHECK(padded_vocab(model_of(run, {}), 1) == 50304);
  CHECK(padded_vocab(model_of(run, unpadded), 1) == 50257);
  run.tp = 4;
  CHECK(padded_vocab(model_of(run, unpadded), 4) == 50688);
}

TEST_CASE("a run that cannot be priced has a reason") {
  PublishedRun run = gpt_run(2048, 16, 1);
  run.gpu = "P100-16GB";
  CHECK_THAT(refusal_of(run), Catch::Contains("P100-16GB") && Catch::Contains("--cluster"));
  run = gpt_run(2048, 16, 3);
  CHECK_THAT(refusal_of(run), Catch::Contains("heads"));
  run = gpt_run(2048, 16, 2);
  run.gpus = 7;
  CHECK(refusal_of(run) == "the row states 7 GPUs, but its layout needs 2");
  run = gpt_run(2048, 16, 1);
  run.dtype = "fp8";
  CHECK(refusal_of(run) == "profile a100-sxm4-80gb has no GEMM rate for fp8");
  run = gpt_run(2048, 16, 1);
  run.global_batch = 0;
  CHECK(refusal_of(run) == "the row does not state global_batch");
  run = gpt_run(2048, 15, 1);
  CHECK(refusal_of(run) == "hidden 2048 is not divisible by 15 heads: fill head_dim");
  run.heads = 0;
  CHECK(refusal_of(run) == "the row does not state heads");
}

}  // namespace tpsim
