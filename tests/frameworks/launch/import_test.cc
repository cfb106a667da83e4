// Import of launch files: defaults for missing options, options outside of the plan, and refused
// options.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <utility>

#include "core/scenario/catalogue.h"
#include "frameworks/launch/launch_files.h"
#include "tests/frameworks/launch/launch_plans.h"

namespace tpsim {

using test::bloom_file;
using test::llama_file;
using test::titan_file;
using test::without;

TEST_CASE("launch files of another model are refused, for each difference") {
  const PlanFile file = llama_file();
  const auto files = export_plan(LaunchStack::kMegatronLm, file, 8).value();
  const auto refused = [&](auto change) {
    ModelSpec other = file.model;
    change(other);
    const auto back = import_plan(LaunchStack::kMegatronLm, files, other);
    return !back.ok() && back.error().kind == ErrorKind::kBadInput;
  };
  CHECK(refused([](ModelSpec& m) { m.layers -= 1; }));
  CHECK(refused([](ModelSpec& m) { m.ffn_hidden += 128; }));
  CHECK(refused([](ModelSpec& m) { m.vocab += 1; }));
  CHECK(refused([](ModelSpec& m) { m.attention.rope_theta = 1e4; }));
  CHECK(refused([](ModelSpec& m) { m.attention.kv_heads = m.attention.heads; }));
  CHECK(refused([](ModelSpec& m) { m.norm = NormKind::kLayerNorm; }));
  CHECK(refused([](ModelSpec& m) { m.mlp = MlpKind::kGelu; }));
  CHECK(refused([](ModelSpec& m) { m.linear_bias = true; }));
  CHECK(refused([](ModelSpec& m) { m.tied_embedding = true; }));
  CHECK(refused([](ModelSpec& m) { m.norm_epsilon *= 2; }));
}

TEST_CASE("missing options have the stack's default, and a typo has the nearest name") {
  const PlanFile file = bloom_file();
  auto files = export_plan(LaunchStack::kMegatronDeepSpeed, file, 8).value();
  const auto text = files[0].text;
  files[0].text = without(text, "  --ffn-hidden-size 57344\n", "");  // as in BLOOM's script
  CHECK(import_plan(LaunchStack::kMegatronDeepSpeed, files, file.model).value().plan == file.plan);
  files[0].text = without(text, "  --hidden-dropout 0\n", "");
  const auto dropout = import_plan(LaunchStack::kMegatronDeepSpeed, files, file.model);
  REQUIRE(dropout.ok());
  CHECK(dropout->model.hidden_dropout == 0.1);  // the default of Megatron
  CHECK(dropout->model.attention_dropout == 0);
  files[0].text = without(text, "--micro-batch-size", "--micro-batch-sise");
  const auto typo = import_plan(LaunchStack::kMegatronDeepSpeed, files, file.model);
  REQUIRE_FALSE(typo.ok());
  CHECK_THAT(typo.error().hint, Catch::Contains("did you mean --micro-batch-size?"));
}

TEST_CASE(
    "recipes of 8 and 4 bits come back from the stacks that have them, others name what they "
    "lack") {
  for (const Precision precision : all_of<Precision>()) {
    INFO(name_of(precision));
    PlanFile llama = llama_file(), titan = titan_file(), bloom = bloom_file();
    llama.plan.precision = titan.plan.precision = bloom.plan.precision = precision;
    if (precision != Precision::kNone) llama.plan.dtype = titan.plan.dtype = DType::kBFloat16;
    const bool keeps_8_bits = precision != Precision::kNone && precision != Precision::kNvFp4;
    const bool is_narrow = llama.plan.dtype == DType::kBFloat16;
    for (const LaunchStack stack : {LaunchStack::kMegatronLm, LaunchStack::kNemo}) {
      for (const bool gathers : {false, keeps_8_bits}) {
        for (const DType gradients :
             {DType::kFloat32, is_narrow ? llama.plan.dtype : DType::kFloat32}) {
          llama.plan.fp8_param_gather = gathers;
          llama.plan.gradient_dtype = gradients;
          const auto files = export_plan(stack, llama, 8);
          if (!files.ok()) FAIL(to_string(files.error()));
          const auto back = import_plan(stack, *files, llama.model);
          if (!back.ok()) FAIL(to_string(back.error()));
          CHECK(back->plan == llama.plan);
        }
      }
    }
    const auto files = export_plan(LaunchStack::kTorchTitan, titan, 8);
    const bool has_converter =
        precision == Precision::kFp8Current || precision == Precision::kMxFp8;
    REQUIRE(files.ok() == (precision == Precision::kNone || has_converter));
    if (files.ok()) {
      CHECK(import_plan(LaunchStack::kTorchTitan, *files, titan.model)->plan == titan.plan);
    } else {
      CHECK_THAT(files.error().message, Catch::Contains(std::string(name_of(precision))));
    }
    const auto deepspeed = export_plan(LaunchStack::kMegatronDeepSpeed, bloom, 8);
    CHECK(deepspeed.ok() == (precision == Precision::kNone));
  }
}

TEST_CASE("NeMo's files name a precision recipe only if all of its fields are the plan's") {
  PlanFile llama = llama_file();
  llama.plan.dtype = DType::kBFloat16;
  llama.plan.gradient_dtype = DType::kFloat32;
  const auto yaml = [&](Precision precision, bool gathers) {
    llama.plan.precision = precision;
    llama.plan.fp8_param_gather = gathers;
    return export_plan(LaunchStack::kNemo, llama, 8)->at(1).text;
  };
  CHECK_THAT(yaml(Precision::kNone, false), Catch::Contains("mixed_precision: bf16_mixed\n"));
  CHECK_THAT(yaml(Precision::kMxFp8, true),
             Catch::Contains("mixed_precision: bf16_with_mxfp8_mixed\n"));
  const std::string whole = yaml(Precision::kMxFp8, false);  // the recipe gathers 8 bits
  CHECK(test::holds_line(whole, "fp8_param_gather: false"));
  // The recipe keeps the first and last block in 16 bits.
  CHECK(test::holds_line(yaml(Precision::kFp8Current, true), "fp8_recipe: tensorwise"));
  llama.plan.gradient_dtype = DType::kBFloat16;
  CHECK(test::holds_line(yaml(Precision::kNone, false), "grad_reduce_in_fp32: false"));
}

TEST_CASE("graphs of the whole step switch NeMo's check of the loss off, as Megatron's") {
  PlanFile llama = llama_file();
  llama.parts[StackPart::kCudaGraphs] = kGraphsOfStep;
  const auto nemo = export_plan(LaunchStack::kNemo, llama, 8).value();
  CHECK_THAT(nemo.back().text,
             Catch::Contains("rerun_state_machine:\n  check_for_nan_in_loss: false\n"));
  CHECK(import_plan(LaunchStack::kNemo, nemo, llama.model)->parts.at(StackPart::kCudaGraphs) ==
        kGraphsOfStep);
  CHECK(test::holds_line(export_plan(LaunchStack::kMegatronLm, llama, 8)->front().text,
                         "--no-check-for-nan-in-loss-and-grad"));
}

TEST_CASE("graphs of recomputed modules with dropout are refused") {
  PlanFile llama = llama_file();
  llama.plan.recompute = Recompute::kSelective;
  llama.plan.attention = AttentionKind::kUnfused;  // flash attention has no dropout here
  llama.parts[StackPart::kRecomputeModules] = bit(RecomputeModule::kCoreAttention);
  const auto is_refused = [&](LaunchStack stack, std::int64_t graphs, double dropout) {
    llama.parts[StackPart::kCudaGraphs] = graphs;
    llama.model.attention_dropout = dropout;
    const auto files = export_plan(stack, llama, 8);
    return !files.ok() && to_string(files.error()).find("dropout") != std::string::npos;
  };
  for (const LaunchStack stack : {LaunchStack::kMegatronLm, LaunchStack::kNemo}) {
    for (const std::int64_t graphs : {bit(GraphScope::kAttention), kGraphsOfStep}) {
      CHECK(is_refused(stack, graphs, 0.1));
      CHECK_FALSE(is_refused(stack, graphs, 0));
    }
    CHECK_FALSE(is_refused(stack, bit(GraphScope::kMlp), 0.1));
    CHECK_FALSE(is_refused(stack, 0, 0.1));
  }
}

TEST_CASE("16-bit moments are not written for Muon, whose optimizer has none") {
  PlanFile llama = llama_file();
  llama.plan.zero = 1;
  llama.parts[StackPart::kOptimizerDtype] = static_cast<std::int64_t>(DType::kBFloat16);
  CHECK(export_plan(LaunchStack::kMegatronLm, llama, 8).ok());
  llama.parts[StackPart::kOptimizerKind] = static_cast<std::int64_t>(OptimizerKind::kMuon);
  for (const LaunchStack stack : {LaunchStack::kMegatronLm, LaunchStack::kNemo}) {
    CHECK_THAT(export_plan(stack, llama, 8).error().message, Catch::Contains("Muon"));
  }
}

TEST_CASE("delayed weight gradients are written only with the overlap that they need") {
  PlanFile file = llama_file();
  file.model = Catalogue::open()->load_model("mixtral-8x7b").value();
  file.plan = {};
  file.plan.degrees = {.tp = 1, .pp = 1, .dp = 8};
  file.plan.degrees.ep = 8;
  file.plan.zero = 1;
  file.plan.recompute = Recompute::kNone;
  file.plan.attention = AttentionKind::kFlash;
  file.plan.stage_layers = {file.model.layers};
  file.plan.global_batch = 64;
  file.parts = {{StackPart::kDispatcher, static_cast<std::int64_t>(Dispatcher::kAllToAll)},
                {StackPart::kDelayWgrad, 1}};
  for (const bool overlaps : {false, true}) {
    file.parts[StackPart::kEpOverlap] = overlaps ? 1 : 0;
    const auto files = export_plan(LaunchStack::kMegatronLm, file, 8);
    if (!files.ok()) FAIL(to_string(files.error()));
    CHECK(test::holds_line(files->front().text, "--delay-wgrad-compute") == overlaps);
  }
}

TEST_CASE("options outside of the plan are listed, and unsupported plans are refused") {
  const PlanFile llama = llama_file();
  const auto with = [](std::vector<LaunchFile> files, std::size_t which, const std::string& before,
                       const std::string& lines) {
    files[which].text = without(files[which].text, before, lines + before);
    return files;
  };
  const auto megatron = export_plan(LaunchStack::kMegatronLm, llama, 8).value();
  const auto own = import_plan(
      LaunchStack::kMegatronLm,
      with(megatron, 0, "  --bf16", "  --lr 1e-4\n  --data-path my/data\n  --adam-beta2 0.95\n"),
      llama.model);
  REQUIRE(own.ok());
  CHECK(own->plan == llama.plan);
  CHECK(own->outside == std::vector<std::string>{"--lr", "--data-path", "--adam-beta2"});

  const auto titan = export_plan(LaunchStack::kTorchTitan, titan_file(), 8).value();
  CHECK(import_plan(LaunchStack::kTorchTitan,
                    with(titan, 0, "  --training.max_context", "  --optimizer.lr 1e-4\n"),
                    llama.model)
            ->outside == std::vector<std::string>{"--optimizer.lr"});

  const auto nemo = export_plan(LaunchStack::kNemo, llama, 8).value();
  const auto read = [&](const std::string& lines) {
    return import_plan(LaunchStack::kNemo, with(nemo, 1, "ddp:", lines), llama.model);
  };
  CHECK(read("optimizer:\n  lr: 0.0001\n")->outside == std::vector<std::string>{"optimizer.lr"});
  CHECK(read("dist:\n  use_tp_pp_dp_mapping: false\n")->plan == llama.plan);  // ignored if off
  CHECK_THAT(read("train:\n  micro_batch_sise: 1\n").error().hint,
             Catch::Contains("did you mean train.micro_batch_size?"));

  for (const auto& [line, why] : {std::pair{"--fp8-dot-product-attention", "linear layers"},
                                  std::pair{"--fp32-residual-connection", "dtype"}}) {
    const auto refused =
        import_plan(LaunchStack::kMegatronLm,
                    with(megatron, 0, "  --bf16", fmt::format("  {}\n", line)), llama.model);
    REQUIRE_FALSE(refused.ok());
    CHECK_THAT(refused.error().message, Catch::Contains("changes the plan and is not modelled"));
    CHECK_THAT(refused.error().hint, Catch::Contains(why));
  }
}

TEST_CASE("DeepSpeed's JSON may have other settings, but none that moves memory") {
  const PlanFile file = bloom_file();
  const auto good = export_plan(LaunchStack::kMegatronDeepSpeed, file, 8).value();
  const auto read = [&](const std::string& part, const std::string& instead) {
    auto files = good;
    files[1].text = without(files[1].text, part, instead);
    return import_plan(LaunchStack::kMegatronDeepSpeed, files, file.model);
  };
  CHECK(read("{\n",
             "{\n \"optimizer\": {\"type\": \"Adam\"}, \"zero_allow_untested_optimizer\": true,\n")
            .ok());
  CHECK(read("\"stage\": 0", "\"stage\": 0, \"reduce_bucket_size\": 5e8").ok());
  CHECK_THAT(read("\"stage\": 0", "\"stage\": 3, \"offload_param\": {\"device\": \"cpu\"}")
                 .error()
                 .message,
             Catch::Contains("offload_param"));
  CHECK_THAT(read("\"stage\": 0", "\"stage\": 0, \"offload_optimizer\": {\"device\": \"nvme\"}")
                 .error()
                 .message,
             Catch::Contains("offload_optimizer"));
  CHECK_THAT(read("{\n", "{\n \"train_batch_sise\": 1,\n").error().hint,
             Catch::Contains("did you mean train_batch_size?"));
}

TEST_CASE("files that break a rule of their stack are refused") {
  const PlanFile file = llama_file();
  const LaunchFile good = export_plan(LaunchStack::kMegatronLm, file, 8).value().front();
  const auto broken = [&](const std::string& part, const std::string& instead) {
    const LaunchFile bad{good.name, without(good.text, part, instead)};
    return !import_plan(LaunchStack::kMegatronLm, {bad}, file.model).ok();
  };
  CHECK(broken("--bf16", "--bf17"));
  CHECK(broken("--bf16", "--bf16\n  --fp16"));
  CHECK(broken("--bf16", "bf16"));
  CHECK(broken("NUM_NODES=32", "NUM_NODES=31"));
  CHECK(broken("NUM_NODES=32\n", ""));
  CHECK(broken("--global-batch-size 512", "--global-batch-size 511"));
  CHECK(broken("--global-batch-size 512", "--global-batch-size many"));
  CHECK(broken("-pipeline-rank 5", "-pipeline-rank 7"));
  CHECK(broken("--num-layers 80", "--num-layers 81"));
  CHECK(broken("\n)\n", "\n"));

  const auto deepspeed = export_plan(LaunchStack::kMegatronDeepSpeed, bloom_file(), 8).value();
  const auto config_broken = [&](const std::string& part, const std::string& instead) {
    std::vector<LaunchFile> bad = deepspeed;
    bad[1].text = without(bad[1].text, part, instead);
    return !import_plan(LaunchStack::kMegatronDeepSpeed, bad, bloom_file().model).ok();
  };
  CHECK(config_broken("\"stage\": 0", "\"stage\": 2"));
  CHECK(config_broken("\"train_batch_size\": 2048", "\"train_batch_size\": 1024"));
  CHECK(
      config_broken("\"gradient_accumulation_steps\": 128", "\"gradient_accumulation_steps\": 64"));
  CHECK(config_broken("bf16", "fp16"));
  CHECK_FALSE(
      import_plan(LaunchStack::kMegatronDeepSpeed, {deepspeed[0]}, bloom_file().model).ok());
}

TEST_CASE("uniform recompute of several layers is read where a chunk has one") {
  PlanFile file = llama_file();
  file.plan.recompute = Recompute::kFull;
  file.plan.recompute_blocks = 0;
  const auto files = export_plan(LaunchStack::kMegatronLm, file, 8).value();
  const auto with = [&](const ModelSpec& model, const std::string& text) {
    auto own = files;
    own[0].text = without(text, "--recompute-num-layers 1\n", "--recompute-num-layers 5\n");
    return import_plan(LaunchStack::kMegatronLm, own, model);
  };
  const auto refused = with(file.model, files[0].text);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message, Catch::Contains("units of 4 layers"));
  CHECK_THAT(refused.error().hint, Catch::Contains("--set recompute-num-layers=1"));
  // One layer in every chunk: a unit of five layers is one of one layer.
  ModelSpec thin = file.model;
  thin.layers = file.plan.degrees.pp;
  const std::string layers = "--num-layers ";
  std::string text = files[0].text;
  const std::size_t at = text.find(layers) + layers.size();
  text.replace(at, text.find('\n', at) - at, std::to_string(thin.layers));
  const std::size_t stages = text.find("  --num-virtual-stages-per-pipeline-rank");
  if (stages != std::string::npos) text.erase(stages, text.find('\n', stages) + 1 - stages);
  const auto read = with(thin, text);
  if (!read.ok()) FAIL(to_string(read.error()));
  CHECK(read->plan.recompute == Recompute::kFull);
}

}  // namespace tpsim
