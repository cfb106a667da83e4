// For files that leave a plan open, the error lists all missing inputs at once. Settings of
// unsupported plans are refused with name and value.
#include <catch2/catch.hpp>

#include "core/scenario/catalogue.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {
namespace {

ImportInputs on(std::int64_t gpus, const char* model = nullptr,
                std::map<std::string, std::string> given = {}) {
  const Catalogue catalogue = Catalogue::open().value();
  ImportInputs all;
  all.gpus = gpus;
  all.given = std::move(given);
  if (model != nullptr) all.model = catalogue.load_model(model).value();
  all.load = [catalogue](const std::string& name) { return catalogue.load_model(name); };
  return all;
}

Error refused(const Result<ImportedPlan>& plan) {
  REQUIRE_FALSE(plan.ok());
  return plan.error();
}

ImportedPlan read(Result<ImportedPlan> plan) {
  if (!plan.ok()) FAIL(to_string(plan.error()));
  return *std::move(plan);
}

// A Megatron command with everything that a plan needs except the vocabulary, and `more`.
LaunchFile megatron(const std::string& more) {
  return {"megatron-lm.sh",
          "torchrun --nproc_per_node 8 --nnodes ${NODES:-1} pretrain_gpt.py --num-layers 8 "
          "--hidden-size 512 --num-attention-heads 8 --seq-length 256 "
          "--max-position-embeddings 256 --attention-dropout 0 --hidden-dropout 0 "
          "--micro-batch-size 2 --global-batch-size 64 --bf16 " +
              more + "\n",
          "their/run.sh"};
}

Result<ImportedPlan> of_megatron(const std::string& more, const ImportInputs& inputs = {}) {
  return import_plan(LaunchStack::kMegatronLm, {megatron(more)}, inputs);
}

LaunchFile titan(const std::string& parallelism, const std::string& more = "") {
  return {"run.toml",
          "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 2048\n"
          "local_batch_size = 2\n[parallelism]\n" +
              parallelism + more};
}

LaunchFile deepspeed(const std::string& more) {
  return {"ds.json", R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4,
    "zero_optimization": {"stage": 2}, "bf16": {"enabled": true})" +
                         more + "}"};
}

}  // namespace

TEST_CASE("all missing inputs of a configuration are reported at once") {
  const LaunchFile shards{"fsdp.yaml",
                          "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
                          "mixed_precision: bf16\n"};
  const Error trainer = refused(import_config(shards, on(0)));
  CHECK_THAT(trainer.message, Catch::Contains("which model?") && Catch::Contains("how many GPUs") &&
                                  Catch::Contains("the batch size per GPU"));
  CHECK(trainer.hint == "add --model NAME or its config.json, and --gpus N, and --micro-batch N");
  LaunchFile unknown = titan("tensor_parallel_degree = 2\n");
  unknown.text.replace(unknown.text.find("8B"), 2, "9Q");
  CHECK(refused(import_config(unknown, on(0))).hint ==
        "add --model NAME or its config.json, and --gpus N");
  const LaunchFile overrides{"o.yaml",
                             "model:\n  tensor_model_parallel_size: 2\ntrain:\n"
                             "  global_batch_size: 8\n  micro_batch_size: 1\n"};
  const Error recipe = refused(import_config(overrides, on(0)));
  CHECK(recipe.hint ==
        "add --model NAME or its config.json, and --set model.pipeline_model_parallel_size=N,"
        "model.context_parallel_size=N, and --gpus N");
}

TEST_CASE("torchtitan's degrees give the GPU count if none of them is -1") {
  const char* degrees = "data_parallel_shard_degree = 4\ntensor_parallel_degree = 2\n";
  CHECK(read(import_config(titan(degrees), on(0))).plan.degrees ==
        ParallelDegrees{.tp = 2, .dp = 4});
  CHECK(refused(import_config(titan("tensor_parallel_degree = 2\n"), on(0))).hint ==
        "add --gpus N");
  CHECK_THAT(refused(import_config(titan(degrees), on(64))).message,
             Catch::Contains("data 4 x tensor 2 x pipeline 1 x context 1 are 8 GPUs, not 64"));
  CHECK_FALSE(import_config(titan("data_parallel_shard_degree = 4096\n"
                                  "tensor_parallel_degree = 999999999\n"),
                            on(0))
                  .ok());
  CHECK(read(import_config(titan(degrees,
                                 "[float8]\nfilter_fqns = [\"output\"]\n"
                                 "precompute_float8_dynamic_scale_for_fsdp = true\n"),
                           on(0)))
            .plan.precision == Precision::kNone);
}

TEST_CASE("a GPU count that the layout does not divide is refused with the layout") {
  const Error error =
      refused(of_megatron("--vocab-size 1024 --tensor-model-parallel-size 4 "
                          "--pipeline-model-parallel-size 4"));
  CHECK(error.message == "8 GPUs are not divisible by tensor 4 x pipeline 4 x context 1 = 16");
  CHECK(error.hint == "state the number of GPUs: --gpus N, a multiple of 16");
}

TEST_CASE("unset variables for sizes of the model are named") {
  LaunchFile file = megatron("--vocab-size 1024");
  file.text.replace(file.text.find("--num-layers 8"), 14, "--num-layers $LAYERS");
  const Error error = refused(import_plan(LaunchStack::kMegatronLm, {file}, on(8)));
  CHECK_THAT(error.message, Catch::Contains("the script does not set: --num-layers is $LAYERS"));
  CHECK_THAT(error.hint, Catch::Contains("--set LAYERS=VALUE"));
  file.text.replace(0, file.text.find(" --nnodes"),
                    "torchrun --nproc_per_node `nvidia-smi -L | wc -l`");
  CHECK_THAT(
      refused(import_plan(LaunchStack::kMegatronLm, {file}, on(0, nullptr, {{"LAYERS", "8"}})))
          .message,
      Catch::Contains("the plan depends on the output of 'nvidia-smi -L'"));
}

TEST_CASE("unsupported optimizers and their 8-bit states are refused by name") {
  const auto message = [](const Result<ImportedPlan>& plan) { return refused(plan).message; };
  CHECK(message(of_megatron("--vocab-size 1024 --optimizer soap")) ==
        "--optimizer soap changes the plan and is not modelled");
  CHECK(of_megatron("--vocab-size 1024 --optimizer adam").ok());
  CHECK(message(of_megatron("--vocab-size 1024 --use-distributed-optimizer "
                            "--use-precision-aware-optimizer --exp-avg-dtype fp8")) ==
        "--exp-avg-dtype fp8 changes the plan and is not modelled");
  CHECK(
      message(import_config(
          titan("data_parallel_shard_degree = 4\n", "[optimizer]\nearly_step_in_backward = true\n"),
          on(0))) == "--optimizer.early_step_in_backward changes the plan and is not modelled");
  CHECK(message(import_config(
            titan("data_parallel_shard_degree = 4\n", "[optimizer]\nname = \"Muon\"\n"), on(0))) ==
        "--optimizer.name Muon changes the plan and is not modelled");
  CHECK(message(import_config(deepspeed(R"(, "optimizer": {"type": "OneBitAdam"})"),
                              on(8, "llama-2-7b"))) ==
        "optimizer.type: OneBitAdam changes the plan and is not modelled");
}

TEST_CASE("the optimizer in a log is read like that of a script") {
  const auto log = [](const char* optimizer) {
    std::string text = "  world_size ...................................... 8\n";
    for (const auto& [name, value] :
         std::map<std::string, std::string>{{"tensor_model_parallel_size", "2"},
                                            {"num_layers", "4"},
                                            {"hidden_size", "256"},
                                            {"num_attention_heads", "4"},
                                            {"seq_length", "128"},
                                            {"max_position_embeddings", "128"},
                                            {"micro_batch_size", "1"},
                                            {"global_batch_size", "8"},
                                            {"bf16", "True"},
                                            {"attention_dropout", "0.0"},
                                            {"hidden_dropout", "0.0"},
                                            {"padded_vocab_size", "1024"},
                                            {"main_grads_dtype", "torch.float32"},
                                            {"exp_avg_dtype", "torch.float32"},
                                            {"optimizer", optimizer}}) {
      text += "  " + name + " ................................ " + value + "\n";
    }
    return LaunchFile{"megatron-lm.sh", text, "run.log"};
  };
  const auto adam = import_plan(LaunchStack::kMegatronLm, {log("adam")}, on(0));
  CHECK(read(adam).plan.gradient_dtype == DType::kFloat32);
  const ImportedPlan muon = read(import_plan(LaunchStack::kMegatronLm, {log("dist_muon")}, on(0)));
  CHECK(muon.parts.at(StackPart::kOptimizerKind) ==
        static_cast<std::int64_t>(OptimizerKind::kMuon));
  CHECK(muon.plan.zero == 1);
}

TEST_CASE("the gradient dtype is read from Megatron's options and DeepSpeed's JSON") {
  const std::string aware =
      "--vocab-size 1024 --use-distributed-optimizer --use-precision-aware-optimizer ";
  CHECK(read(of_megatron(aware + "--main-grads-dtype bf16")).plan.gradient_dtype ==
        DType::kBFloat16);
  CHECK(read(of_megatron(aware + "--main-grads-dtype fp32")).plan.gradient_dtype ==
        DType::kFloat32);
  CHECK_FALSE(of_megatron(aware + "--main-grads-dtype fp8").ok());
  const auto trained = import_config(deepspeed(R"(, "data_types": {"grad_accum_dtype": "bf16"})"),
                                     on(8, "llama-2-7b"));
  CHECK(read(trained).plan.gradient_dtype == DType::kBFloat16);
}

TEST_CASE("null ignores an option of a script") {
  const std::string more = "--vocab-size 1024 --something-of-next-year --mirror";
  const Error error = refused(of_megatron(more));
  CHECK(error.message == "2 settings are unknown: '--something-of-next-year', '--mirror'");
  CHECK_THAT(error.hint, Catch::Contains("--set something-of-next-year=null,mirror=null ignores"));
  CHECK(of_megatron(more, on(0, nullptr, {{"something-of-next-year", "null"}, {"mirror", "null"}}))
            .ok());
}

TEST_CASE("a merges file means GPT-2's vocabulary, and a gated MLP has its usual width") {
  CHECK(read(of_megatron("--vocab-file v.json --merge-file m.txt")).model.vocab == 50257);
  const ImportedPlan gated = read(of_megatron("--vocab-size 1024 --swiglu --disable-bias-linear"));
  CHECK(gated.model.ffn_hidden == 8 * 512 / 3 / 64 * 64);
  CHECK(read(of_megatron("--vocab-size 1024 --position-embedding-type rope --rotary-percent 0.5"))
            .model.attention.rotary.fraction == 0.5);
}

TEST_CASE("DeepSpeed's launcher uses the GPUs of --include") {
  const auto plan = [](const char* include) {
    LaunchFile file{"megatron-lm.sh", std::string("deepspeed --include ") + include +
                                          " train.py --model_name_or_path llama-2-7b "
                                          "--per_device_train_batch_size 2 --bf16 True\n"};
    return read(import_plan(LaunchStack::kMegatronLm, {file}, on(0))).plan.degrees.dp;
  };
  CHECK(plan("localhost:0,1,2,5") == 4);
  CHECK(plan("one:0,1@two:2,3,4") == 5);
  CHECK(plan("one:0,1,2 --num_nodes 1") == 3);
}

TEST_CASE("LLaMA-Factory's settings are read, with recompute as default") {
  const std::string text =
      "model_name_or_path: llama-2-7b\nstage: sft\nfinetuning_type: full\ntemplate: llama2\n"
      "flash_attn: fa2\nenable_liger_kernel: true\nper_device_train_batch_size: 2\nbf16: true\n";
  const ImportedPlan plan = read(import_config({"sft.yaml", text}, on(8)));
  CHECK(plan.plan.recompute == Recompute::kFull);
  CHECK(plan.plan.attention == AttentionKind::kFlash);
  CHECK(plan.parts.at(StackPart::kLossHead) == static_cast<std::int64_t>(LossHead::kChunked));
  CHECK(read(import_config({"sft.yaml", text + "disable_gradient_checkpointing: true\n"}, on(8)))
            .plan.recompute == Recompute::kNone);
  const auto with = [&](const char* before, const char* after) {
    std::string other = text;
    other.replace(other.find(before), std::string(before).size(), after);
    return refused(import_config({"sft.yaml", other}, on(8))).message;
  };
  CHECK(with("finetuning_type: full", "finetuning_type: oft") ==
        "trains adapters or a part of the weights: finetuning_type: oft");
  CHECK(with("stage: sft", "stage: ppo") == "stage: ppo changes the plan and is not modelled");
  std::string pairs = text;
  pairs.replace(pairs.find("stage: sft"), 10, "stage: dpo");
  CHECK(read(import_config({"dpo.yaml", pairs}, on(8))).plan.micro_batch == 4);
}

TEST_CASE("lists equal to a default are accepted") {
  const std::string moe = [] {
    std::string text = "  moe_layer_freq: [1";
    for (int i = 1; i < 32; ++i) text += ", 1";
    return text + "]\n";
  }();
  const auto with = [](const std::string& of_model, const std::string& more) {
    const std::string text =
        "model:\n  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 1\n"
        "  context_parallel_size: 1\n  expert_model_parallel_size: 8\n  sequence_parallel: true\n"
        "  seq_length: 4096\n" +
        of_model + "train:\n  micro_batch_size: 1\n  global_batch_size: 32\n" + more;
    return read(import_config({"run.yaml", text}, on(16, "mixtral-8x7b"))).plan;
  };
  const Plan plain = with("", "");
  CHECK(with(moe, "") == plain);
  CHECK(with("  cuda_graph_scope: []\n", "") == plain);
  CHECK(with("  moe_layer_freq: 1\n", "peft: null\n") == plain);
  CHECK(with("", "peft: none\n") == plain);
  const std::string toml = "pipeline_parallel_split_points = []\n";
  const std::string lists = "[compile]\nenable = true\n";
  CHECK(read(import_config(titan("data_parallel_shard_degree = 8\n" + toml, lists), on(8))).parts ==
        read(import_config(titan("data_parallel_shard_degree = 8\n",
                                 lists + "components = [\"model\", \"loss\"]\n"),
                           on(8)))
            .parts);
}

TEST_CASE("a named model overrides a script's sizes and completes missing ones") {
  ImportInputs inputs = on(8, "llama-3-8b");
  inputs.model_wins = true;
  const auto script = [](const std::string& sizes) {
    return LaunchFile{"megatron-lm.sh",
                      "torchrun --nproc_per_node 8 pretrain_gpt.py " + sizes +
                          " --seq-length 4096 --attention-dropout 0 --hidden-dropout 0 "
                          "--micro-batch-size 1 --global-batch-size 8 --bf16\n"};
  };
  const auto plan_of = [&](const std::string& sizes) {
    return read(import_plan(LaunchStack::kMegatronLm, {script(sizes)}, inputs));
  };
  const ImportedPlan open = plan_of("");
  CHECK(open.model.layers == 32);
  CHECK(open.plan.stage_layers == std::vector<std::int64_t>{32});
  CHECK(open.notes.empty());
  const ImportedPlan other = plan_of("--num-layers 40 --hidden-size $H --qk-layernorm");
  CHECK(other.plan == open.plan);
  REQUIRE(other.notes.size() == 2);
  CHECK_THAT(other.notes.back(),
             Catch::Contains("--num-layers is 40; the prediction uses the named model's value 32"));
  inputs.model_wins = false;
  CHECK_FALSE(import_plan(LaunchStack::kMegatronLm, {script("--num-layers 40")}, inputs).ok());
}

TEST_CASE("flex attention is refused in every spelling") {
  const std::string text =
      "base_model: llama-2-7b\nmicro_batch_size: 2\nbf16: true\nsequence_len: 2048\n";
  CHECK(read(import_config({"a.yaml", text + "attention: flash\n"}, on(8))).plan.attention ==
        AttentionKind::kFlash);
  for (const char* line : {"attention: flex\n", "attn_implementation: flex_attention\n"}) {
    CHECK_THAT(refused(import_config({"a.yaml", text + line}, on(8))).message,
               Catch::Contains("changes the plan and is not modelled"));
  }
}

TEST_CASE("names and values of older files are accepted") {
  LaunchFile file = megatron("--vocab-size 1024 --position-embedding-type absolute");
  file.text.replace(file.text.find("--max-position"), 14, "--max-absolute-position");
  CHECK(read(import_plan(LaunchStack::kMegatronLm, {file}, on(0))).model.attention.position ==
        PositionKind::kLearned);
  CHECK(read(of_megatron("--vocab-size 1024 --position-embedding-type rotary"))
            .model.attention.position == PositionKind::kRotary);
}

TEST_CASE("a script that exits without an argument is reported") {
  LaunchFile file = megatron("--vocab-size 1024");
  file.text.insert(0, "if [ \"$1\" != small ]; then exit 1; fi\n");
  const Error error = refused(import_plan(LaunchStack::kMegatronLm, {file}, on(8)));
  CHECK(error.message == "ends before it starts training");
  CHECK_THAT(error.hint, Catch::Contains("--set 1=VALUE"));
  CHECK(import_plan(LaunchStack::kMegatronLm, {file}, on(8, nullptr, {{"1", "small"}})).ok());
}

TEST_CASE("axolotl's mesh of shards gives the GPU count") {
  const std::string text =
      "base_model: llama-2-7b\nmicro_batch_size: 2\nbf16: true\nfsdp_version: 2\n";
  const ImportedPlan plan =
      read(import_config({"a.yaml", text + "dp_shard_size: 8\ndp_replicate_size: 2\n"}, on(0)));
  CHECK(plan.plan.degrees.dp == 16);
  CHECK(plan.parts.at(StackPart::kShardGroup) == kShardOverNode);
  const ImportedPlan tensor =
      read(import_config({"a.yaml", text + "tensor_parallel_size: 2\n"}, on(8)));
  CHECK(tensor.plan.degrees == ParallelDegrees{.tp = 2, .dp = 4});
  const std::string both =
      text + "dp_shard_size: 2\ndp_replicate_size: 2\ntensor_parallel_size: 2\n";
  CHECK(read(import_config({"a.yaml", both}, on(0))).plan.degrees ==
        ParallelDegrees{.tp = 2, .dp = 4});
  const Error error = refused(import_config({"a.yaml", both}, on(16)));
  CHECK_THAT(error.message, Catch::Contains("data-parallel ranks: 16 GPUs / (tp 2 x cp 1)"));
  CHECK_THAT(error.hint, Catch::Contains("--gpus 8"));
}

TEST_CASE("a configuration of GPT-NeoX without a width asks for its model") {
  const LaunchFile neox{"20B.yml",
                        "# many GPUs\n{\n  \"pipe-parallel-size\": 4,\n  \"num-layers\": 8,\n"
                        "  \"zero_optimization\": {\"stage\": 1},\n}\n"};
  CHECK_THAT(refused(import_config(neox, on(8))).message, Catch::Contains("which model?"));
}

TEST_CASE("NeMo's tokenizer type gives the vocabulary, and Bridge's dtype the precision") {
  const LaunchFile words{"nemo.yaml",
                         "trainer: {devices: 8, num_nodes: 1, precision: bf16}\nmodel:\n"
                         "  micro_batch_size: 1\n  global_batch_size: 8\n"
                         "  tensor_model_parallel_size: 2\n  encoder_seq_length: 256\n"
                         "  max_position_embeddings: 256\n  num_layers: 4\n  hidden_size: 256\n"
                         "  ffn_hidden_size: 1024\n  num_attention_heads: 4\n"
                         "  attention_dropout: 0.0\n  hidden_dropout: 0.0\n"
                         "  tokenizer: {library: megatron, type: GPT2BPETokenizer}\n"};
  CHECK(read(import_config(words, on(0))).model.vocab == 50257);
  const LaunchFile bridge{"bridge.yaml",
                          "model:\n  tensor_model_parallel_size: 2\n"
                          "  pipeline_model_parallel_size: 1\n  context_parallel_size: 1\n"
                          "train:\n  global_batch_size: 8\n  micro_batch_size: 1\n"
                          "mixed_precision:\n  dtype: fp16\n"};
  CHECK(read(import_config(bridge, on(8, "llama-3-8b"))).plan.dtype == DType::kFloat16);
}

}  // namespace tpsim
