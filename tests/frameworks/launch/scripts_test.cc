// Scripts and logs as users write them (tests/frameworks/launch/scripts): many shell constructs,
// and options of several releases and forks.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "core/base/files.h"
#include "core/plan/pipeline_layout.h"
#include "formats/shell_script.h"
#include "formats/unset_marks.h"
#include "frameworks/launch/launch_command.h"
#include "frameworks/launch/launch_files.h"

namespace tpsim {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;

LaunchFile script(const std::string& name) {
  const auto path =
      std::filesystem::path(TPSIM_SOURCE_DIR) / "tests/frameworks/launch/scripts" / name;
  return {name, read_file(path, kMostBytes).value()};
}

Result<ImportedPlan> imported(LaunchStack stack, LaunchFile file, const ImportInputs& inputs = {}) {
  file.path = "their/" + file.name;
  file.name = launch_file_names(stack).front();
  return import_plan(stack, {file}, inputs);
}

bool names(const ImportedPlan& plan, const std::string& option) {
  return std::find(plan.outside.begin(), plan.outside.end(), option) != plan.outside.end();
}

// Words and environment of the command in a text that is read without bash.
ShellCommand plain_command(const std::string& text) {
  const auto script = read_plain_script(text);
  REQUIRE(script.has_value());
  return script->commands.empty() ? ShellCommand{} : script->commands.front();
}

}  // namespace

TEST_CASE("a script with arrays is read with its experts, size and other options") {
  const auto read = imported(LaunchStack::kMegatronLm, script("experts.sh"));
  REQUIRE(read.ok());
  const Plan& plan = read->plan;
  CHECK(plan.degrees == ParallelDegrees{.tp = 1, .pp = 4, .dp = 4, .cp = 1, .ep = 4});
  CHECK(plan.virtual_stages == 4);  // 32 layers on 4 stages, 2 layers per chunk
  CHECK(plan.schedule == ScheduleKind::kInterleaved);
  CHECK(plan.zero == 1);
  CHECK(plan.attention == AttentionKind::kFlash);
  CHECK_FALSE(plan.sequence_parallel);  // has no effect with one tensor-parallel rank
  CHECK(read->model.experts.count == 8);
  CHECK(read->model.experts.dropless);
  CHECK(read->model.seq == 4096);
  CHECK(read->model.vocab == 0);  // words.model may have other words than Llama 2
  CHECK(read->stack == "megatron-core");
  CHECK(read->parts.at(StackPart::kRotaryKernel) ==
        static_cast<std::int64_t>(RotaryKernel::kTorch));
  CHECK(read->parts.at(StackPart::kOverlapParameterGather) == 1);
  for (const char* option :
       {"--moe-aux-loss-coeff", "--moe-router-dtype", "--cross-entropy-loss-fusion",
        "--cross-entropy-fusion-impl", "--rotary-percent", "--enable-experimental",
        "--auto-detect-ckpt-format", "--no-ckpt-fully-parallel-save", "--dist-ckpt-strictness"}) {
    CAPTURE(option);
    CHECK(names(*read, option));
  }
  const auto part = [&](StackPart which) { return text_of(row_of(which), read->parts.at(which)); };
  CHECK(part(StackPart::kDispatcher) == "alltoall");
  CHECK(part(StackPart::kPermute) == "fused");
  CHECK(part(StackPart::kExpandableSegments) == "on");
  CHECK(part(StackPart::kRouterKernel) == "fused");
  CHECK(read->parts.count(StackPart::kExpertLoad) == 0);
  ImportInputs more;
  more.given["SLURM_NNODES"] = "4";
  CHECK(imported(LaunchStack::kMegatronLm, script("experts.sh"), more)->plan.degrees.dp == 8);
}

TEST_CASE("strings, functions, conditions and loops run as in a shell") {
  const auto read = imported(LaunchStack::kMegatronLm, script("strings.sh"));
  REQUIRE(read.ok());
  CHECK(read->plan.degrees == ParallelDegrees{.tp = 2, .pp = 4, .dp = 2});
  CHECK(read->plan.stage_layers == std::vector<std::int64_t>{7, 9, 9, 7});
  CHECK(read->plan.recompute == Recompute::kSelective);
  CHECK(read->plan.dtype == DType::kBFloat16);
  CHECK(read->plan.zero == 1);
  CHECK(read->model.ffn_hidden == 11008);
  CHECK(read->model.vocab == 32000);
  CHECK(read->outside == std::vector<std::string>{"--data-path"});
  ImportInputs larger;
  larger.given = {{"SIZE", "13"}, {"NO_SHARDS", "1"}};
  const auto other = imported(LaunchStack::kMegatronLm, script("strings.sh"), larger);
  CHECK(other->plan.stage_layers == std::vector<std::int64_t>{7, 13, 13, 7});
  CHECK(other->plan.zero == 0);
  LaunchFile learned = script("strings.sh");
  const std::string rope = "--position-embedding-type rope";
  learned.text.replace(learned.text.find(rope), rope.size(), "--rotary-base 500000");
  const auto unturned = imported(LaunchStack::kMegatronLm, learned);
  REQUIRE(unturned.ok());
  CHECK(unturned->model.attention.position == PositionKind::kLearned);
  CHECK(names(*unturned, "--rotary-base"));

  LaunchFile wrong = script("strings.sh");
  wrong.text.replace(wrong.text.find("PP=4"), 4, "PP=3");
  CHECK(imported(LaunchStack::kMegatronLm, wrong).error().where == "their/strings.sh");
}

TEST_CASE("a job is read with the DeepSpeed JSON that it writes") {
  const auto read = imported(LaunchStack::kMegatronDeepSpeed, script("alibi.slurm"));
  REQUIRE(read.ok());
  CHECK(read->plan.degrees == ParallelDegrees{.tp = 4, .pp = 12, .dp = 8});
  CHECK(read->plan.stage_layers == even_stage_layers(70, 12, true));
  CHECK(read->plan.zero == 1);
  CHECK(read->plan.recompute == Recompute::kFull);
  CHECK(read->model.attention.position == PositionKind::kAlibi);
  CHECK(read->model.embedding_norm);
  CHECK(read->stack == "megatron-deepspeed-bloom");

  const auto sharded = imported(LaunchStack::kMegatronDeepSpeed, script("engine.sh"));
  REQUIRE(sharded.ok());
  CHECK(sharded->plan.degrees == ParallelDegrees{.dp = 32});
  CHECK(sharded->plan.zero == 2);
  CHECK(sharded->plan.attention == AttentionKind::kFlash);
  CHECK(sharded->model.norm == NormKind::kRmsNorm);
  CHECK(sharded->stack == "megatron-deepspeed-2023");
}

TEST_CASE("a log's block of arguments gives a plan") {
  const LaunchFile log = script("arguments.log");
  CHECK(has_arguments_block(log.text));
  CHECK(stack_of_text(log.text) == LaunchStack::kMegatronLm);
  const auto read = imported(LaunchStack::kMegatronLm, log);
  REQUIRE(read.ok());
  CHECK(read->plan.degrees == ParallelDegrees{.tp = 4, .pp = 4, .dp = 4});
  CHECK(read->plan.virtual_stages == 4);
  CHECK(read->plan.recompute == Recompute::kSelective);
  CHECK(read->plan.sequence_parallel);
  CHECK(read->plan.zero == 1);
  CHECK(read->model.attention.kv_heads == 8);
  CHECK_FALSE(read->model.linear_bias);
  CHECK(read->model.vocab == 128512);
  CHECK(read->parts.at(StackPart::kRotaryKernel) ==
        static_cast<std::int64_t>(RotaryKernel::kTorch));
  CHECK(read->parts.at(StackPart::kOverlapParameterGather) == 0);
  LaunchFile narrow = log;
  const std::string none = "fp8 ............................................. None";
  narrow.text.replace(narrow.text.find(none), none.size(),
                      "fp8 ............................................. e4m3");
  const auto rounded = imported(LaunchStack::kMegatronLm, narrow);
  if (!rounded.ok()) FAIL(to_string(rounded.error()));
  CHECK(rounded->plan.precision == Precision::kFp8);
}

TEST_CASE("unset variables of a script are named, with the option that sets them") {
  LaunchFile file = script("experts.sh");
  const std::string batch = "--micro-batch-size 1";
  file.text.replace(file.text.find(batch), batch.size(), "--micro-batch-size $3");
  const auto unset = imported(LaunchStack::kMegatronLm, file);
  REQUIRE_FALSE(unset.ok());
  CHECK(unset.error().message == "--micro-batch-size is $3, which the script does not set");
  CHECK(unset.error().hint == "add --set 3=VALUE");
  ImportInputs given;
  given.given["3"] = "2";
  CHECK(imported(LaunchStack::kMegatronLm, file, given)->plan.micro_batch == 2);

  file = script("experts.sh");
  const std::string nodes = "NNODES=${SLURM_NNODES:-\"2\"}";
  file.text.replace(file.text.find(nodes), nodes.size(), "NNODES=$SLURM_NNODES");
  CHECK_THAT(imported(LaunchStack::kMegatronLm, file).error().message,
             Catch::Contains("--nnodes is $SLURM_NNODES, which the script does not set"));
  ImportInputs size;
  size.gpus = 32;
  CHECK(imported(LaunchStack::kMegatronLm, file, size)->plan.degrees.dp == 8);
}

TEST_CASE("a command of plain words is read without bash, any other text is a script") {
  using Words = std::vector<std::string>;
  CHECK(plain_command("# a\nrun --a 'x y' \"z\" \\\n  --b=c '[1]*12' # d\n").words ==
        Words{"run", "--a", "x y", "z", "--b=c", "[1]*12"});
  CHECK(plain_command("N=8 A='b c' run it.py\n").environment.at("A") == "b c");
  const auto options = read_plain_script("export N=4\nARGS=(\n  --tp 2 # c\n  '--x=y z'\n)\n");
  REQUIRE(options.has_value());
  CHECK(options->commands.empty());
  CHECK(options->variables.back().values == Words{"--tp", "2", "--x=y z"});
  for (const char* text :
       {"run $A",       "run \"$A\"", "run `a`",       "run a; run b", "run a && run b",
        "run a\nrun b", "run a > b",  "run a | tee b", "for i in a",   "if a",
        "source a.sh",  "bash a.sh",  "./a.sh",        "run [1]*12",   "run ~/a",
        "run {a,b}",    "A=(a",       "run 'a",        "set -e",       "#SBATCH --nodes=2\nrun a",
        "export A",     "run a &",    "exec run a",    "cd a",         "A=$B",
        "run \\$a"}) {
    INFO(text);
    CHECK_FALSE(read_plain_script(text).has_value());
  }
  ImportInputs inputs;
  inputs.runs_scripts = false;
  CHECK(read_launch_command({"it.sh", "torchrun it.py --a 1\n"}, inputs).ok());
  const auto refused = read_launch_command({"it.sh", "torchrun it.py --a $B\n"}, inputs);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message, Catch::Contains("is a script: tpsim import needs bash"));
}

TEST_CASE("unknown values are named, and taken out of words") {
  const std::string variable = std::string(1, kUnset) + "$A";
  const std::string output = std::string(2, kUnset) + "$(a b.py)" + kUnsetEnd;
  CHECK(unset_name("x/" + variable + "/y") == "$A");
  CHECK(unset_name(output) == "$(a b.py)");
  CHECK_FALSE(unset_name("x").has_value());
  CHECK(without_marks("x/" + output) == "x/$(a b.py)");
  CHECK(is_unset_word(variable));
  CHECK_FALSE(is_unset_word(variable + "/y"));
  CHECK(may_be_words(output));
  CHECK_FALSE(may_be_words(variable));
  CHECK_FALSE(may_be_words(std::string(2, kUnset) + "$(hostname)" + kUnsetEnd));
  CHECK(unset_remedy("$A") == "--set A=VALUE");
  CHECK(unset_remedy("$(a b.py)") == "--answer 'a b.py=TEXT'");
}

TEST_CASE("pipeline layouts are read in every spelling") {
  using Chunks = std::vector<std::int64_t>;
  const auto chunks_of_layout = [](const char* text) {
    const auto layout = parse_pipeline_layout(text);
    return layout && layout->predictions == 0 ? layout->blocks : Chunks{};
  };
  CHECK(chunks_of_layout("Et*2|t*3|tL") == Chunks{2, 3, 1});
  CHECK(chunks_of_layout("Ett|(tt|)*2,L") == Chunks{2, 2, 2, 0});
  CHECK(chunks_of_layout("E|(t|)*3 L") == Chunks{0, 1, 1, 1, 0});
  CHECK(chunks_of_layout("Et|tmL").empty());
  CHECK(chunks_of_layout("(Et|)*2L").empty());
  CHECK(chunks_of_layout("Et|(t*9999999L").empty());
  const auto stages = [](const std::string& options) {
    LaunchFile file = script("strings.sh");
    const std::string old =
        "--decoder-first-pipeline-num-layers 7 --decoder-last-pipeline-num-layers 7";
    file.text.replace(file.text.find(old), old.size(), options);
    return imported(LaunchStack::kMegatronLm, file);
  };
  CHECK(stages("--num-virtual-stages-per-pipeline-rank 2")->plan.stage_layers == Chunks(8, 4));
  CHECK(stages("--num-layers-per-virtual-pipeline-stage 4")->plan.virtual_stages == 2);
  CHECK(stages("--decoder-last-pipeline-num-layers 5")->plan.stage_layers == Chunks{9, 9, 9, 5});
  CHECK(stages("--pipeline-model-parallel-layout 'Et*6|t*10|t*10|t*6L'")->plan.stage_layers ==
        Chunks{6, 10, 10, 6});
  CHECK_FALSE(stages("--account-for-embedding-in-pipeline-split").ok());  // 33 layers on 4 stages
  CHECK_FALSE(stages("--num-layers-per-virtual-pipeline-stage 3").ok());
}

TEST_CASE("scripts without end and files with endless options are errors") {
  const auto eval = read_launch_command({"it.sh", "X='eval \"$X\"; eval \"$X\"'\neval \"$X\"\n"});
  CHECK_FALSE(eval.ok());
  std::string options = "run.py";
  for (int i = 0; i < 50000; ++i) options += fmt::format(" --x{}", i);
  CHECK_FALSE(read_launch_command({"it.sh", options}).ok());
}

TEST_CASE("a script that the script writes runs with the launcher before it") {
  const auto command = read_launch_command(
      {"launch.sh",
       "TP=4\n"
       "work=$(cat <<- EOM\n  sleep 3 ;\n  numactl --membind=\\$((RANK/2)) \\\n"
       "  python train.py --tp $TP --rank \\$RANK\nEOM\n)\n"
       "echo \"$work\" > work.sh\ntorchrun --nnodes 2 --no-python bash work.sh 2>&1 | tee log\n",
       "their/launch.sh"},
      [] {
        ImportInputs inputs;
        inputs.given["RANK"] = "0";
        return inputs;
      }());
  REQUIRE(command.ok());
  CHECK(command->launcher == std::vector<std::string>{"torchrun", "--nnodes", "2", "--no-python",
                                                      "numactl", "--membind=0", "python"});
  CHECK(command->words == std::vector<std::string>{"--tp", "4", "--rank", "0"});
}

TEST_CASE("a table of learned positions may have more rows than the sequence has tokens") {
  const auto plan =
      imported(LaunchStack::kMegatronLm,
               {"run.sh",
                "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
                "--num-attention-heads 8 --seq-length 256 --max-position-embeddings 1024 "
                "--vocab-size 50257 --micro-batch-size 1 --global-batch-size 8 --bf16\n"});
  REQUIRE(plan.ok());
  CHECK(plan->model.seq == 256);
  CHECK(plan->model.ends.positions == 1024);
}

TEST_CASE("a variable that the script leaves empty for the user is named") {
  const auto stopped = imported(
      LaunchStack::kMegatronLm,
      {"run.sh",
       "IMAGE=\"\"\nif [ -z \"$IMAGE\" ]; then\n  exit 1\nfi\npython pretrain_gpt.py --x 1\n"});
  REQUIRE_FALSE(stopped.ok());
  CHECK_THAT(stopped.error().hint, Catch::Contains("--set IMAGE=VALUE"));
}

TEST_CASE("a started script that does not exist is named") {
  const auto outer =
      imported(LaunchStack::kMegatronLm, {"run.sh", "exec bash \"${HERE}/train.sh\" \"$@\"\n"});
  REQUIRE_FALSE(outer.ok());
  CHECK_THAT(outer.error().message, Catch::Contains("it needs /train.sh, which does not exist"));
}

}  // namespace tpsim
