// Table of tpsim's commands, for --help, the manual and messages.
#include <array>

#include "cli/commands/commands.h"

namespace tpsim::cli {
namespace {

constexpr std::array kCommands = {
    CommandRow{Command::kPlan, run_plan, "plan",
               "search the best layouts of a model on a number of GPUs", "plan.json",
               "saved plan: search again for its model, cluster, GPUs, batch",
               "tpsim plan --model bloom-176b --gpus 384\n"
               "tpsim plan --model llama-2-70b --gpus 256 --cluster dgx-h100 --tp 4,8 --top 5\n"
               "tpsim plan --model my/config.json --gpus 64 --cluster dgx-a100 --save plan.json\n"
               "tpsim plan --model llama-3-70b --cluster dgx-h100 --gpus 64,128,...,4096 --plot "
               "curve.svg"},
    CommandRow{Command::kSimulate, run_simulate, "simulate",
               "predict one plan: time, speed, memory", "plan.json",
               "plan saved with --save; other options change it",
               "tpsim simulate plan.json --trace timeline.json\n"
               "tpsim simulate --model bloom-176b --tp 4 --pp 12 --dp 8 --micro-batch 2\n"
               "tpsim simulate --program step.json --cluster dgx-h100    # docs/capture.md"},
    CommandRow{Command::kExplain, run_explain, "explain",
               "show every term of a prediction and its source", "plan.json",
               "plan saved with --save; other options change it",
               "tpsim explain plan.json\n"
               "tpsim explain --model bloom-176b --gpus 384    # explains the best plan\n"
               "tpsim explain --model bloom-176b --gpus 384 --why-not tp=2,pp=12\n"
               "tpsim explain plan.json --program    # what a rank runs, in order\n"
               "tpsim explain --runs data/published_runs/bloom_jean_zay.csv --row A-097"},
    CommandRow{
        Command::kProfile, run_profile, "profile",
        "benchmark the kernels and collectives of this machine", "plan.json",
        "plan saved with --save: times only its ops and collectives",
        "tpsim profile plan.json -o profile.json\n"
        "tpsim profile --model my/config.json --gpus 2 --dtype fp32 --quick -o profile.json\n"
        "tpsim profile --from-datasheet x100 peak=1200TFLOP/s fp8=2400TFLOP/s memory=96GB \\\n"
        "    bandwidth=4TB/s processors=144 -o x100.json",
        "facts", "KEY=VALUE for --from-datasheet"},
    CommandRow{Command::kRun, run_training, "run", "train a plan on the reference model",
               "plan.json", "plan saved with --save; other options change it",
               "tpsim run --model my/config.json --seq 128 --tp 2 --global-batch 8 --steps 10\n"
               "tpsim run --checkpoint my --tokens tokens.safetensors --tp 2 --pp 2 --dtype fp32\n"
               "tpsim run plan.json --rank 17 --profile profile.json    # one rank, alone"},
    CommandRow{Command::kValidate, run_validate, "validate",
               "compare predictions with measured runs", "plan.json",
               "plan to predict, run on this machine and compare op by op",
               "tpsim validate plan.json --profile profile.json\n"
               "tpsim validate --runs bloom_jean_zay\n"
               "tpsim validate --runs runs.csv --cluster my-cluster.json --json"},
    CommandRow{Command::kCampaign, run_campaign, "campaign",
               "days, energy, cost and failures of a whole training run", "plan.json",
               "plan saved with --save, same as --plan",
               "tpsim campaign plan.json --tokens 366e9\n"
               "tpsim campaign --model llama-3-70b --cluster dgx-h100 --tokens 1T --deadline 60d\n"
               "tpsim campaign plan.json --tokens 366e9 --step-time 105s \\\n"
               "    --ramp 192,16,9765625 --checkpoint-every 3h --lost-nodes 4"},
    CommandRow{Command::kExport, run_export, "export",
               "write a plan as launch files of a framework", "plan.json", "plan saved with --save",
               "tpsim export plan.json --to megatron-deepspeed -o launch/\n"
               "tpsim export plan.json --to torchtitan"},
    CommandRow{Command::kImport, run_import, "import", "read launch files as a plan", "launch",
               "script, configuration, recipe, log, or export's folder",
               "tpsim import launch/ --save plan.json\n"
               "tpsim import train_mixtral.sh --set NNODES=4 --cluster dgx-h100\n"
               "tpsim import sft.yaml accelerate.yaml --gpus 8 --cluster dgx-h100\n"
               "tpsim import llama3.py --run --checkout Megatron-Bridge,Megatron-LM --gpus 64\n"
               "tpsim import pretrain.sh --from megatron-deepspeed --model bloom-176b --json",
               "configurations", "further configuration files, e.g. of accelerate or DeepSpeed"},
    CommandRow{Command::kCheckLog, run_check_log, "check-log",
               "compare a training log with its prediction and explain the gap", "training.log",
               "log file (docs/check-log.md), may be gzipped",
               "tpsim check-log training.log plan.json", "plan.json",
               "the plan that should be running, same as --plan"},
    CommandRow{Command::kList, run_list, "list", "list catalogue entries", "kind",
               "models, clusters, profiles, stacks or assumptions",
               "tpsim list models\n"
               "tpsim list models llama\n"
               "tpsim list clusters --json",
               "words", "show only entries whose name contains one of these"},
    CommandRow{Command::kGui, run_gui, "gui", "open the GUI", "plan.json",
               "plan saved with --save, or a view saved in the GUI",
               "tpsim gui --model bloom-176b --gpus 384\n"
               "tpsim gui plan.json\n"
               "tpsim gui plan.json --screenshot picture.png"},
    CommandRow{Command::kReport, run_report, "report", "write an interactive HTML page for a plan",
               "plan.json", "plan saved with --save, or a view saved in the GUI",
               "tpsim report plan.json --html report.html\n"
               "tpsim report plan.json --measured validation.json --html report.html"},
    CommandRow{Command::kShow, run_show, "show",
               "print a catalogue entry as a file to edit, or a schema", "kind",
               "kind of entry (see list), schema, formats, reports or families",
               "tpsim show cluster dgx-h100 > mine.json\n"
               "tpsim show model Qwen/Qwen3-8B\n"
               "tpsim show schema plan > plan.schema.json\n"
               "tpsim show schema plan-report > report.schema.json\n"
               "tpsim show formats    # docs/files.md",
               "name", "entry name; for schema the kind of file or report"},
    CommandRow{Command::kCompare, run_compare, "compare", "compare plans term by term", "plan.json",
               "plans saved with --save, ideally of one model and cluster",
               "tpsim compare a.json b.json c.json\n"
               "tpsim compare a.json b.json --cluster dgx-h200 --json",
               "others", "plans to compare with the first"},
    CommandRow{Command::kCompletion, run_completion, "completion",
               "print a shell completion script", "shell", "bash, zsh or fish",
               "tpsim completion bash > ~/.local/share/bash-completion/completions/tpsim\n"
               "tpsim completion fish > ~/.config/fish/completions/tpsim.fish"},
    CommandRow{Command::kCalibrate, run_calibrate, "calibrate",
               "fit a stack and a cluster to measured runs", "measured",
               "table of runs, log, or output of nccl-tests",
               "tpsim calibrate runs.csv --save-stack stack.json --save-cluster cluster.json\n"
               "tpsim calibrate a.log b.log --plan plan.json --save-stack stack.json\n"
               "tpsim calibrate all_reduce.txt --cluster dgx-h100 --save-cluster mine.json",
               "others", "more of the same kind"},
    CommandRow{Command::kCall, run_call, "call", "answer JSON requests on stdin, one per line",
               nullptr, nullptr,
               "echo '{\"format\": \"tpsim-request/1\", \"call\": \"models\"}' | tpsim call\n"
               "tpsim call    # until the end of standard input: docs/json.md"},
    CommandRow{Command::kBatch, run_batch, "batch", "answer a file of JSON requests on all cores",
               "requests.jsonl", "one request a line, as for call",
               "tpsim batch requests.jsonl -o answers.jsonl --brief\n"
               "tpsim batch requests.jsonl -o answers.jsonl    # again after a stop: goes on"},
    CommandRow{Command::kMcp, run_mcp, "mcp", "serve agents as tools of the Model Context Protocol",
               nullptr, nullptr,
               "claude mcp add tpsim -- tpsim mcp\n"
               "tpsim mcp    # until the end of standard input: docs/json.md"},
};

constexpr bool commands_in_order() {
  for (std::size_t i = 0; i < kCommands.size(); ++i) {
    if (static_cast<std::size_t>(kCommands[i].command) != i) return false;
  }
  return true;
}
static_assert(commands_in_order(), "rows stand in the order of Command");

}  // namespace

std::span<const CommandRow> command_rows() { return kCommands; }
const CommandRow& row_of(Command command) { return kCommands[static_cast<std::size_t>(command)]; }

}  // namespace tpsim::cli
