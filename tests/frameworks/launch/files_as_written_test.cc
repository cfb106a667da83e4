// Files that refer to another file, to shell variables or to defaults, as users write them.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <memory>

#include "core/base/files.h"
#include "core/scenario/catalogue.h"
#include "frameworks/launch/config_files.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launch_files.h"
#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

using Folder = std::map<std::string, std::string>;

// Path of the script in of_script(): in a folder with the files of the last in_folder().
std::filesystem::path script_path = "their/run.sh";

// Inputs with the files of a folder and the models of the catalogue.
ImportInputs in_folder(const Folder& files, std::int64_t gpus = 0) {
  const Catalogue catalogue = Catalogue::open().value();
  const auto folder = std::make_shared<test::TemporaryFolder>();
  for (const auto& [name, text] : files) {
    std::filesystem::create_directories((*folder / name).parent_path());
    REQUIRE(write_file_atomically(*folder / name, text).ok());
  }
  script_path = *folder / "run.sh";
  ImportInputs inputs;
  inputs.gpus = gpus;
  inputs.load = [catalogue](const std::string& name) {
    return catalogue.load_model(name == "some/Model-8B" ? "llama-3-8b" : name);
  };
  inputs.open = [folder](const std::string& name) -> Result<std::string> {
    return read_file(folder->path() / name, 1 << 20);
  };
  return inputs;
}

Result<ImportedPlan> of_script(const std::string& text, const ImportInputs& inputs) {
  const LaunchStack stack = stack_of_text(text);
  const LaunchFile file{launch_file_names(stack).front(), text, script_path.string()};
  return import_plan(stack, {file}, inputs);
}

ImportedPlan read(Result<ImportedPlan> plan) {
  if (!plan.ok()) FAIL(to_string(plan.error()));
  return *std::move(plan);
}

std::string error_of(const Result<ImportedPlan>& plan) {
  REQUIRE_FALSE(plan.ok());
  return to_string(plan.error());
}

bool has_note(const ImportedPlan& plan, const std::string& part) {
  return std::any_of(plan.notes.begin(), plan.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

const std::string kSizes =
    "--num-layers 12 --hidden-size 768 --ffn-hidden-size 2048 --num-attention-heads 12 "
    "--seq-length 1024 --max-position-embeddings 1024 --vocab-size 32000 --swiglu "
    "--normalization RMSNorm --disable-bias-linear --position-embedding-type rope "
    "--untie-embeddings-and-output-weights ";
const std::string kRun = "torchrun --nproc_per_node 8 pretrain_gpt.py ";
const std::string kBatch = " --bf16 --micro-batch-size 1 --global-batch-size 64 ";
const std::string kExperts =
    " --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 512 --moe-grouped-gemm "
    "--moe-token-dispatcher-type alltoall --expert-model-parallel-size 4 ";

std::string mixture(const std::string& more) { return kRun + kSizes + kBatch + kExperts + more; }

}  // namespace

TEST_CASE("a list with experts in every layer equals the number 1") {
  const ImportedPlan one = read(of_script(mixture("--moe-layer-freq 1"), {}));
  for (const char* list :
       {"'([1]*12)'", "[1]*12", "'[1]*6+[1]*6'", "'[1,1]*6'", "'[1, 1, 1]*4'", "'([1]+[1]*2)*4'"}) {
    INFO(list);
    const ImportedPlan same = read(of_script(mixture(std::string("--moe-layer-freq ") + list), {}));
    CHECK(same.plan == one.plan);
    CHECK(same.model.experts == one.model.experts);
    CHECK(same.model.other_blocks.empty());
  }
}

TEST_CASE("layers without experts have the width of the file, at any position") {
  const auto kinds = [](const std::string& more) {
    const ModelSpec model = read(of_script(mixture(more), {})).model;
    std::string text;
    for (std::int64_t layer = 0; layer < model.layers; ++layer) {
      const BlockShape block = block_of_kind(model, block_kind(model, layer));
      text += block.experts.count > 0 ? 'e' : 'd';
      CHECK(block.ffn_hidden == (block.experts.count > 0 ? 512 : 2048));
    }
    return text;
  };
  CHECK(kinds("--moe-layer-freq '([0]*2+[1]*10)'") == "ddeeeeeeeeee");
  CHECK(kinds("--first-k-dense-replace 1") == "deeeeeeeeeee");
  CHECK(kinds("--moe-layer-freq 2") == "edededededed");
  CHECK(kinds("--moe-layer-freq '[0,1]*6'") == "dededededede");
}

TEST_CASE("a parallel degree of zero is refused") {
  CHECK_THAT(error_of(of_script(mixture("--tensor-model-parallel-size 0"), {})),
             Catch::Contains("--tensor-model-parallel-size is 0; it must be at least 1"));
}

TEST_CASE("an invalid list of layers is refused with a valid example") {
  for (const char* wrong : {"[1]*11", "[1]*13", "[2]*12", "[1", "[1]*99999999", "[]*12", "x", "0",
                            "((((((((((((((((((([1]*12)))))))))))))))))))"}) {
    INFO(wrong);
    const std::string error =
        error_of(of_script(mixture(fmt::format("--moe-layer-freq '{}'", wrong)), {}));
    CHECK_THAT(error, Catch::Contains("--moe-layer-freq"));
    CHECK_THAT(error, Catch::Contains("[1]*12"));
  }
  CHECK_THAT(error_of(of_script(mixture("--moe-layer-freq $FREQ"), {})),
             Catch::Contains("--set FREQ="));
}

TEST_CASE("a shared expert and its overlap are read, with a note if the overlap has an effect") {
  const ImportedPlan plain = read(of_script(mixture(""), {}));
  const ImportedPlan alone = read(of_script(mixture("--moe-shared-expert-overlap"), {}));
  CHECK(alone.plan == plain.plan);
  CHECK(alone.notes == plain.notes);
  const std::string shared = "--moe-shared-expert-intermediate-size 1024 ";
  const ImportedPlan both = read(of_script(mixture(shared + "--moe-shared-expert-overlap"), {}));
  CHECK(both.model.experts.shared_ffn == 1024);
  CHECK(both.plan == plain.plan);
  CHECK(has_note(both, "--moe-shared-expert-overlap"));
}

TEST_CASE("registered buffers of Megatron-FSDP are noted, as the prediction leaves them out") {
  const ImportedPlan plan =
      read(of_script(mixture("--use-nccl-ub --fsdp-double-buffer --init-model-with-meta-device "
                             "--reuse-grad-buf-for-mxfp8-param-ag"),
                     {}));
  CHECK(plan.plan == read(of_script(mixture(""), {})).plan);
  CHECK(has_note(plan, "--use-nccl-ub, --fsdp-double-buffer, --reuse-grad-buf-for-mxfp8-param-ag"));
}

TEST_CASE("a schedule of batch sizes states the last one") {
  const std::string text = "torchrun --nproc_per_node 8 pretrain_gpt.py " + kSizes;
  const auto batch = [&](const std::string& schedule) {
    return of_script(text + "--step-batch-size-schedule \"" + schedule + "\"", {});
  };
  CHECK(read(batch("0:16 2.4B:320 12B:1536")).plan.global_batch == 1536);
  CHECK_THAT(error_of(batch("16 32:")), Catch::Contains("THRESHOLD:BATCH"));
}

TEST_CASE("unknown output of a program is read again by eval") {
  const std::string text =
      "GPUS=$(($(ds_ssh nvidia-smi -L | wc -l)-2))\nNAME=`basename $0 .sh`\n"
      "cmd=\"torchrun --nproc_per_node 8 pretrain_gpt.py " +
      kSizes + "--save $NAME --load run-$GPUS\"\neval $cmd\n";
  CHECK(read(of_script(text, {})).plan.degrees.dp == 8);
}

TEST_CASE("MTP layers of a named model are trained only if the file trains them") {
  ImportInputs inputs = in_folder({}, 64);
  inputs.model = Catalogue::open().value().load_model("glm-4.5-air").value();
  const auto imported = [&](const std::string& more) {
    return read(of_script(
        "torchrun pretrain_gpt.py --num-layers 46 --hidden-size 4096 --ffn-hidden-size 10944 "
        "--num-attention-heads 96 --group-query-attention --num-query-groups 8 --kv-channels 128 "
        "--seq-length 4096 --swiglu --normalization RMSNorm --disable-bias-linear --add-qkv-bias "
        "--position-embedding-type rope --untie-embeddings-and-output-weights --num-experts 128 "
        "--moe-ffn-hidden-size 1408 --moe-shared-expert-intermediate-size 1408 "
        "--moe-router-topk 8 --moe-router-score-function sigmoid --moe-grouped-gemm "
        "--moe-token-dispatcher-type alltoall --moe-layer-freq '[0]+[1]*45' "
        "--expert-model-parallel-size 8 --bf16 --micro-batch-size 1 --global-batch-size 64 " +
            more,
        inputs));
  };
  const ImportedPlan without = imported("");
  CHECK(without.model.ends.prediction_layers == 0);
  CHECK(has_note(without, "multi-token prediction"));
  const ImportedPlan with = imported("--mtp-num-layers 1");
  CHECK(with.model.ends.prediction_layers == 1);
  CHECK_FALSE(has_note(with, "multi-token prediction"));
}

TEST_CASE("files that a script sources are read from their folder") {
  const Folder folder = {{"sizes/tiny.sh", "SIZES=(" + kSizes + ")\n"},
                         {"nested.sh", ". \"$(dirname \"${BASH_SOURCE[0]}\")/sizes/tiny.sh\"\n"}};
  for (const char* line : {"source ./sizes/tiny.sh", "source sizes/../nested.sh",
                           ". \"$(cd -- \"$(dirname -- \"$0\")\" &>/dev/null && pwd)/nested.sh\"",
                           "DIR=`dirname $0`\nsource ${DIR}/sizes/tiny.sh",
                           "source $(realpath $(dirname ${BASH_SOURCE[0]}))/sizes/tiny.sh",
                           "source ${PWD}/nested.sh\nsource ~/.bashrc\nsource venv/bin/activate"}) {
    INFO(line);
    const ImportedPlan plan = read(
        of_script(std::string(line) + "\n" + kRun + "\"${SIZES[@]}\"" + kBatch, in_folder(folder)));
    CHECK(plan.model.layers == 12);
    CHECK(plan.plan.degrees.dp == 8);
    CHECK_FALSE(has_note(plan, "sources"));
  }
}

TEST_CASE("a missing sourced file is named") {
  const std::string error = error_of(
      of_script("source conf/gone.sh\n" + kRun + "\"${SIZES[@]}\"" + kBatch, in_folder({})));
  CHECK_THAT(error, Catch::Contains("conf/gone.sh"));
  CHECK(has_note(read(of_script("source conf/gone.sh\n" + kRun + kSizes + kBatch, in_folder({}))),
                 "conf/gone.sh"));
  // Two files that source each other end bash, and do not loop forever.
  const Folder loop = {{"a.sh", "source b.sh\n"}, {"b.sh", "source a.sh\n"}};
  CHECK_FALSE(of_script("source a.sh\n" + kRun + kSizes + kBatch, in_folder(loop)).ok());
}

TEST_CASE("a variable that only a skipped branch sets is empty, others are named") {
  const auto run = [](const std::string& before) {
    return of_script(before + "\n" + kRun + kSizes + kBatch + " $EXTRA --seed 1\n", in_folder({}));
  };
  const ImportedPlan plain = read(run("EXTRA="));
  for (const char* skipped :
       {"M=x\nif [ $M = y ]; then EXTRA='--c'; fi", "M=x\n[ $M = y ] && EXTRA=--c",
        "case x in y) EXTRA=--c ;; esac", "f() { EXTRA=--c; }"}) {
    INFO(skipped);
    const ImportedPlan same = read(run(skipped));
    CHECK(same.plan == plain.plan);
    CHECK_FALSE(has_note(same, "EXTRA"));
  }
  CHECK(has_note(read(run("M=x")), "$EXTRA, which the script does not set"));
  const std::string sharded = "EXTRA=--use-distributed-optimizer";
  CHECK(read(run("M=y\n[ $M = y ] && " + sharded)).plan.zero == 1);
  CHECK_THAT(error_of(run("[ -n \"$M\" ] && " + sharded)), Catch::Contains("--set M=VALUE"));
  CHECK_THAT(error_of(run("[ -f /data/x ] && " + sharded)), Catch::Contains("--answer '/data/x!'"));
  CHECK_THAT(error_of(run("EXTRA=$(tell)")), Catch::Contains("--answer 'tell=TEXT'"));
}

TEST_CASE("a file that the script writes is found by every spelling of its path") {
  const std::string json =
      "{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 2, "
      "\"fp16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 1}}";
  const auto plan = [&](const std::string& written, const std::string& named) {
    return read(of_script("cat <<EOF > " + written + "\n" + json + "\nEOF\n" + kRun +
                              "--num-layers 8 --hidden-size 512 --num-attention-heads 8 "
                              "--seq-length 512 --max-position-embeddings 512 "
                              "--vocab-file vocab.json --merge-file merges.txt "
                              "--micro-batch-size 2 --global-batch-size 64 --fp16 --zero-stage 1 "
                              "--deepspeed --deepspeed_config " +
                              named + "\n",
                          in_folder({{"conf/other.json", "{}"}})))
        .plan;
  };
  const Plan same = plan("ds.json", "ds.json");
  CHECK(same.degrees.dp == 8);
  CHECK(plan("ds.json", "./ds.json") == same);
  CHECK(plan("./conf/ds.json", "$PWD/conf/ds.json") == same);
  CHECK(plan("conf/ds.json", "$(pwd)/conf//ds.json") == same);
  CHECK(plan("${PWD}/ds.json", "conf/../ds.json") == same);
}

TEST_CASE("trainers started by a console command are read from their configuration") {
  const Folder folder = {
      {"sft.yaml",
       "model_name_or_path: some/Model-8B\nstage: sft\nfinetuning_type: full\ndeepspeed: z.json\n"
       "cutoff_len: 2048\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 3\n"
       "bf16: true\n"},
      {"tune.yml",
       "base_model: some/Model-8B\nsequence_len: 2048\nmicro_batch_size: 2\n"
       "gradient_accumulation_steps: 3\nbf16: true\nflash_attention: true\ndeepspeed: z.json\n"
       "gradient_checkpointing: true\n"},
      {"z.json", "{\"bf16\": {\"enabled\": \"auto\"}, \"zero_optimization\": {\"stage\": 3}}"}};
  for (const char* line :
       {"NPROC_PER_NODE=8 llamafactory-cli train sft.yaml", "axolotl train tune.yml",
        "lmf train sft.yaml", "axolotl train tune.yml --launcher torchrun -- --nproc_per_node=8",
        "/opt/bin/axolotl train tune.yml --launcher=accelerate"}) {
    INFO(line);
    const Plan plan = read(of_script(std::string(line) + "\n", in_folder(folder, 8))).plan;
    CHECK(plan.degrees == ParallelDegrees{.dp = 8});
    CHECK(plan.zero == 3);
    CHECK(plan.micro_batch == 2);
    CHECK(plan.global_batch == 48);
  }
  const std::string over = "llamafactory-cli train sft.yaml gradient_accumulation_steps=1";
  CHECK(read(of_script(over + "\n", in_folder(folder, 8))).plan.global_batch == 16);
  CHECK_THAT(error_of(of_script("axolotl train none.yml\n", in_folder(folder, 8))),
             Catch::Contains("none.yml"));
}

TEST_CASE("the TOML that a command names is read, and command line options override it") {
  const Folder folder = {
      {"conf/run.toml",
       "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\n"
       "seq_len = 4096\n[parallelism]\ndata_parallel_shard_degree = -1\n"
       "tensor_parallel_degree = 1\n[activation_checkpoint]\nmode = \"full\"\n"}};
  const ImportedPlan job = read(of_script(
      "#SBATCH --nodes=2\nC=${C:-\"$(dirname \"$0\")/conf/run.toml\"}\n"
      "srun torchrun --nproc_per_node=8 --nnodes=$SLURM_JOB_NUM_NODES ./torchtitan/train.py "
      "--job.config_file $C\n",
      in_folder(folder)));
  CHECK(job.stack == "torchtitan");
  CHECK(job.plan.degrees == ParallelDegrees{.dp = 16});
  CHECK(job.plan.recompute == Recompute::kFull);
  CHECK(job.model.seq == 4096);
  const Plan over = read(of_script("torchrun --nproc_per_node=8 -m torchtitan.train "
                                   "--job.config-file=conf/run.toml "
                                   "--training.tensor_parallel_degree 4 --training.batch_size 1\n",
                                   in_folder(folder)))
                        .plan;
  CHECK(over.degrees == ParallelDegrees{.tp = 4, .dp = 2});
  CHECK(over.micro_batch == 1);
  CHECK_THAT(error_of(of_script("torchrun --nproc_per_node 8 -m torchtitan.train "
                                "--job.config_file conf/none.toml\n",
                                in_folder(folder))),
             Catch::Contains("conf/none.toml"));
}

TEST_CASE("a trainer's maximum sequence length is an upper bound, with a note") {
  const Folder folder = {
      {"z.json", "{\"bf16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 3}}"}};
  const auto with = [&](const std::string& more) {
    const LaunchFile yaml{"sft.yaml",
                          "model_name_or_path: some/Model-8B\ndeepspeed: z.json\n"
                          "per_device_train_batch_size: 1\n" +
                              more};
    return read(import_config(yaml, in_folder(folder, 8)));
  };
  const auto puts_aside = [](const ImportedPlan& plan, const char* name) {
    return std::find(plan.outside.begin(), plan.outside.end(), name) != plan.outside.end();
  };
  for (const char* key : {"cutoff_len", "max_length", "max_seq_length", "sequence_len"}) {
    INFO(key);
    const ImportedPlan padded = with(fmt::format("{}: 4096\n", key));
    CHECK(has_note(padded, fmt::format("4096 tokens ({})", key)));
    CHECK(has_note(padded, "upper bounds"));
    for (const char* packing : {"packing", "sample_packing", "neat_packing"}) {
      const ImportedPlan packed = with(fmt::format("{}: 4096\n{}: true\n", key, packing));
      CHECK(has_note(packed, "fully packed"));
      CHECK_FALSE(puts_aside(packed, packing));
      CHECK(packed.plan == padded.plan);
    }
  }
}

TEST_CASE("nanotron's no_rope_layer removes rotary positions from every n-th layer") {
  const std::string yaml =
      "model:\n  dtype: bfloat16\n  model_config:\n    is_llama_config: true\n"
      "    hidden_size: 512\n    intermediate_size: 1024\n    num_attention_heads: 8\n"
      "    num_hidden_layers: 6\n    vocab_size: 1000\n    no_rope_layer: 3\n"
      "parallelism: {dp: 2, pp: 1, tp: 2, tp_mode: REDUCE_SCATTER}\n"
      "tokens: {micro_batch_size: 1, sequence_length: 256, batch_accumulation_per_replica: 2}\n"
      "data_stages:\n- data:\n    dataset:\n      folders: [a, b, c]\n      weights: [1, 2, 3]\n";
  const ImportedPlan plan = read(import_config({"run.yaml", yaml}, {}));
  for (std::int64_t layer = 0; layer < 6; ++layer) {
    const BlockShape block = block_of_kind(plan.model, block_kind(plan.model, layer));
    CHECK((block.attention.position == PositionKind::kNone) == (layer % 3 == 2));
  }
  // A list counts as one setting.
  CHECK(std::count(plan.outside.begin(), plan.outside.end(), "data_stages") == 1);
  for (const std::string& name : plan.outside) CHECK(name.find(".0") == std::string::npos);
}

}  // namespace tpsim
