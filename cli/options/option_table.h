// Table of tpsim's options and commands, with the names that the code uses for them.
#pragma once

#include <cstdint>
#include <string_view>

namespace tpsim::cli {

enum class Command : std::uint8_t {
  kPlan,
  kSimulate,
  kExplain,
  kProfile,
  kRun,
  kValidate,
  kCampaign,
  kExport,
  kImport,
  kCheckLog,
  kList,
  kGui,
  kReport,
  kShow,
  kCompare,
  kCompletion,
  kCalibrate,
  kCall,
  kBatch,
  kMcp,
};
inline constexpr int kCommandCount = static_cast<int>(Command::kMcp) + 1;

struct CommandSet {
  std::uint32_t bits = 0;
  constexpr explicit CommandSet(std::uint32_t set) : bits(set) {}
  constexpr CommandSet(Command one)  // NOLINT(google-explicit-constructor)
      : bits(std::uint32_t{1} << static_cast<int>(one)) {}
  constexpr bool contains(Command one) const { return (bits & CommandSet(one).bits) != 0; }
};
constexpr CommandSet operator|(CommandSet a, CommandSet b) { return CommandSet(a.bits | b.bits); }
constexpr CommandSet operator|(Command a, Command b) { return CommandSet(a) | CommandSet(b); }

// How `import` treats a repeated option. All other commands refuse repetitions.
enum class Repeats : std::uint8_t {
  kNever,  // an error, since the intended value is unclear
  kLastWins,
  kJoins,  // all values form one list, in which later ones override
  kEach,   // each value is a text, which may contain commas
};

// Titles of groups in --help.
namespace option_group {
inline constexpr std::string_view kInputs = "Model and machine", kSearch = "Search",
                                  kLayout = "Layout", kCut = "Layout of one plan",
                                  kSoftware = "Software (overrides the stack)",
                                  kWholeRun = "The run",
                                  kAssumed = "Assumptions (override the file)",
                                  kTraining = "Training", kOutput = "Output";
}  // namespace option_group

// An option of some commands. An option that means something else in other commands has another row
// with the same name.
struct OptionFacts {
  const char* name;
  const char* value;  // placeholder in --help; empty for a switch
  const char* help;
  std::string_view group;
  CommandSet commands;
  Repeats repeats = Repeats::kNever;
};

namespace option_table {
using enum Command;
using namespace option_group;  // NOLINT(google-build-using-namespace)

inline constexpr CommandSet kNone{0}, kEvery{~std::uint32_t{0}};
inline constexpr CommandSet kSearches = kPlan | kExplain | kCampaign;
inline constexpr CommandSet kMeasures = kProfile | kRun | kValidate;
inline constexpr CommandSet kSingle = kSimulate | kExplain | kRun | kCampaign;
inline constexpr CommandSet kAll = kPlan | kSingle;
inline constexpr CommandSet kPredicting = kPlan | kSimulate | kExplain | kCampaign;

// All options except those of plan settings, software parts and assumptions, which their tables
// define.
inline constexpr OptionFacts kRows[] = {
    {"--model", "NAME|FILE", "catalogue name, tpsim model or Hugging Face config.json", kInputs,
     kAll | kImport | kProfile | kGui | kCheckLog, Repeats::kLastWins},
    {"--cluster", "NAME|FILE", "cluster: nodes, GPUs, network [the model's usual one]", kInputs,
     kAll | kValidate | kImport | kGui | kCompare | kCheckLog | kCalibrate},
    {"--stack", "NAME|FILE", "training software [the cluster's]", kInputs,
     kAll | kGui | kValidate | kImport | kProfile | kCompare | kCheckLog | kCalibrate},
    {"--profile", "NAME|FILE", "kernel times of the GPU [the cluster's]", kInputs,
     kAll | kGui | kValidate | kImport | kCompare | kCheckLog | kCalibrate},
    {"--node-gbps", "X", "network bandwidth per node, Gb/s one way [the cluster's]", kInputs,
     kAll | kGui | kValidate | kCompare | kCheckLog | kCalibrate},
    {"--seq", "N", "tokens per sequence [as pretrained, at most 8,192]", kInputs,
     kAll | kGui | kImport | kProfile},

    {"--gpus", "N", "number of GPUs; plan also takes a list: 64,128,...,4096", kSearch, kPlan},
    {"--gpus", "N", "number of GPUs; with a goal also a list: 64,128,...,4096", kSearch, kCampaign},
    {"--gpus", "N", "number of GPUs [as in the file]", kSearch, kImport},
    {"--gpus", "N", "number of GPUs", kSearch, kExplain | kProfile | kGui | kCheckLog},
    {"--top", "N", "layouts to show, or plans with --group none [10]", kSearch, kPlan},
    {"--group", "layout|none", "show the best plan of each layout, or every plan [layout]", kSearch,
     kPlan},
    {"--objective", "time|memory|cost|energy", "what to minimize [time]", kSearch, kSearches},
    {"--max-memory", "SIZE", "memory limit per GPU, e.g. 72GiB [all of it]", kSearch,
     kSearches | kGui},
    {"--max-oom", "SHARE", "accepted risk of running out of memory [5%; for one plan 50%]", kSearch,
     kSearches | kGui | kSimulate | kExport | kImport | kCompare},

    {"--exclude", "NAME=VALUE,...", "exclude plans with these settings, e.g. zero=3", kSearch,
     kSearches | kGui},
    {"--uneven-ends", "N", "first and last stage may have up to N fewer layers [2]", kSearch,
     kSearches | kGui},
    {"--threads", "N", "worker threads (does not change the result) [all cores]", kSearch,
     kSearches | kCalibrate},
    {"--threads", "N", "requests that are answered side by side [all cores]", kSearch, kBatch},
    {"--pareto", "", "show the Pareto front of step time and memory", kSearch, kPlan},
    {"--why-not", "NAME=VALUE,...", "compare with the best plan that has these settings", kSearch,
     kExplain},
    {"--what-if", "", "effect of other hardware and model shapes", kSearch, kExplain},
    {"--memory", "", "show the contents of the memory at the peak", kOutput, kExplain},
    {"--snapshot", "FILE", "with --memory: compare with a memory snapshot of PyTorch", kOutput,
     kExplain},
    {"--save-snapshot", "FILE", "with --memory: write the prediction for pytorch.org/memory_viz",
     kOutput, kExplain},
    {"--program", "", "show the ops, collectives and allocations of each stage", kOutput, kExplain},
    {"--program", "FILE", "step of a PyTorch program, captured by python -m tpsim_capture", kInputs,
     kSimulate},
    {"--after", "PASS", "with --program: after this pass (trace: no pass) [the last]", kOutput,
     kExplain},

    {"--without", "PASS,...", "with --program: without these passes", kOutput, kExplain},
    {"--diff", "PLAN.json", "with --program: compare with this plan, or two passes (A,B)", kOutput,
     kExplain},

    {"--count-embedding", "", "balance stages with embedding and head counted as a layer each",
     kCut, kSingle},
    {"--no-count-embedding", "", "balance stages by transformer layers alone", kCut, kSingle},

    {"--runs", "FILE.csv|NAME", "table of measured runs (docs/runs.md)", kInputs,
     kValidate | kExplain},
    {"--row", "ID", "row to explain", kInputs, kExplain},
    {"--markdown", "", "print a section of docs/accuracy.md", kOutput, kValidate},

    {"--plan", "FILE", "plan saved with --save", kWholeRun, kCampaign | kCheckLog | kCalibrate},
    {"--tokens", "N", "length of the run in tokens, e.g. 366e9, 366B or 1T", kWholeRun, kCampaign},
    {"--tokens", "FILE", "safetensors file of training tokens [random tokens]", kWholeRun, kRun},
    {"--ramp", "START,INC,SAMPLES", "batch-size ramp-up, as in Megatron [none]", kWholeRun,
     kCampaign},
    {"--step-time", "TIME", "measured step time, e.g. 105s [predicted]", kWholeRun, kCampaign},
    {"--checkpoint-every", "TIME", "time between checkpoints, e.g. 3h [optimal]", kWholeRun,
     kCampaign},
    {"--lost-nodes", "N", "search again with 1 to N nodes lost permanently [0]", kWholeRun,
     kCampaign},
    {"--replays", "N", "simulated runs with random failures [2000]", kWholeRun, kCampaign},
    {"--seed", "N", "seed of random weights, tokens or failures [1]", kWholeRun, kCampaign | kRun},
    {"--assumptions", "NAME|FILE", "power, prices, failures [the cluster's]", kAssumed, kCampaign},
    {"--steps", "N", "steps to train, counted from the first [10]", kTraining, kRun},
    {"--steps", "N", "steps to run; the first two are warm-up [12]", kTraining, kValidate},
    {"--rank", "R", "run this rank alone; explain: rank of --snapshot [0]", kTraining,
     kRun | kExplain},
    {"--device", "cpu|cuda", "device that computes [cpu]", kTraining, kMeasures},
    {"--checkpoint", "DIR", "Hugging Face folder: config.json and safetensors", kTraining, kRun},
    {"--lr", "X", "learning rate [1e-4]", kTraining, kRun},
    {"--betas", "B1,B2", "AdamW's betas [0.9,0.95]", kTraining, kRun},
    {"--momentum", "X", "Muon's momentum [0.95]", kTraining, kRun},
    {"--eps", "X", "AdamW's epsilon [1e-8]", kTraining, kRun},
    {"--weight-decay", "X", "weight decay of matrices [0.1]", kTraining, kRun},
    {"--clip-grad", "X", "maximum global gradient norm; 0: no clipping [1]", kTraining, kRun},
    {"--aux-loss-coeff", "X", "coefficient of the router's load-balancing loss [0]", kTraining,
     kRun},
    {"--bias-update-rate", "X", "update rate of the router's expert biases [0]", kTraining, kRun},
    {"--state", "DIR", "folder to save training state in and to resume from", kTraining, kRun},
    {"--save-every", "N", "steps between saved states [0: never]", kTraining, kRun},
    {"--dump-gradients", "FILE", "write the first step's gradients, before clipping", kTraining,
     kRun},
    {"--cuda-graphs", "", "capture a micro-batch as a CUDA graph and replay it (one GPU)",
     kTraining, kRun},

    {"--quick", "", "take fewer samples; a minute for a small model", kOutput, kProfile},
    {"--collectives", "", "time every collective at every size", kOutput, kProfile},
    {"--from-datasheet", "NAME", "profile from datasheet values (peak=, ...), without timing",
     kOutput, kProfile},
    {"--to", "STACK", "framework: megatron-lm, nemo, slurm, ... (docs/export.md)", kOutput,
     kExport},
    {"--from", "STACK", "framework of the files, a value of export's --to [detected]", kOutput,
     kImport},
    {"--set", "NAME=VALUE,...", "values that the files omit, e.g. NNODES=4,vocab-size=32000",
     kOutput, kImport, Repeats::kJoins},
    {"--answer", "COMMAND=TEXT", "what a command prints whose output a script uses", kOutput,
     kImport, Repeats::kEach},
    {"--command", "N", "number of the training command, if a script starts several", kOutput,
     kImport},
    {"--trust", "", "run a script without isolation if the system forbids it", kOutput, kImport},
    {"--assume-harmless", "", "ignore unknown settings; widens the prediction interval", kOutput,
     kImport},
    {"--run", "", "run a recipe or script in Python and read its configuration", kOutput, kImport},
    {"--checkout", "DIR,...", "sources of the frameworks that --run needs", kOutput,
     kImport | kExport, Repeats::kJoins},
    {"--check", "DIR", "check the files with the framework's code in this checkout", kOutput,
     kExport},
    {"-o", "PATH", "output folder [print the files]", kOutput, kExport},
    {"-o", "PATH", "output file of the profile", kOutput, kProfile},
    {"-o", "PATH", "output file of the answers; those that it has are kept", kOutput, kBatch},
    {"--json", "", "print JSON (docs/json.md)", kOutput,
     kAll | kCheckLog | kList | kValidate | kRun | kImport | kCompare | kCalibrate | kExport |
         kBatch},
    {"--brief", "", "print JSON of at most 1,000 bytes: the numbers that decide", kOutput,
     kPredicting | kCheckLog | kCompare | kCalibrate | kExport},
    {"--brief", "", "write short answers", kOutput, kBatch},
    {"--save", "FILE", "write the plan as a file that other commands read", kOutput,
     kPlan | kSimulate | kImport},
    {"--trace", "FILE|-", "write the timeline for Perfetto; -: to stdout", kOutput, kSimulate},
    {"--allow-oom", "", "accept a plan that does not fit in memory", kOutput,
     kSimulate | kCampaign | kExport},
    {"--allow-loss", "", "write files even if they lose settings of the plan", kOutput, kExport},
    {"--no-limits", "", "allow tpsim itself to use more than 10 min or 1 GiB of memory", kOutput,
     kAll},
    {"--ignore-stack-limits", "", "allow plans that the stack's launcher refuses", kSoftware,
     kAll | kGui},
    {"--plot", "FILE.svg", "plot step time and memory of the plans, and the best step", kOutput,
     kPlan},
    {"--plot", "FILE.svg", "plot the step times with their intervals", kOutput, kCompare},
    {"--html", "FILE", "the page to write", kOutput, kReport},
    {"--screenshot", "FILE.png", "write a picture without opening a window, then exit", kOutput,
     kGui},
    {"--script", "FILE", "run the interactions in the file (docs/gui.md)", kOutput, kGui},
    {"--size", "WxH", "size of the window or picture [1280x800]", kOutput, kGui},
    {"--theme", "light|dark", "colors [light]", kOutput, kGui},
    {"--measured", "FILE", "output of validate --json to show next to the prediction", kOutput,
     kGui | kReport},
    {"--quiet", "", "print only errors on stderr", kOutput, kEvery},
    {"--verbose", "", "list the settings that have no effect", kOutput, kImport},
    {"--color", "auto|always|never", "colors on stdout [auto]", kOutput, kEvery},
    {"--scaling", "strong|weak", "several --gpus: same batch, or batch grows with GPUs [strong]",
     kSearch, kPlan},
    {"--max-gap", "SHARE", "exit 3 if step or memory is off by more, e.g. 10% [no limit]", kOutput,
     kCheckLog},
    {"--deadline", "TIME", "time limit, e.g. 60d: chooses the number of GPUs", kWholeRun,
     kCampaign},
    {"--budget", "MONEY", "cost limit, e.g. 3MUSD: chooses the number of GPUs", kWholeRun,
     kCampaign},
    {"--checkpoint", "sync|async", "training waits for storage or for a copy to the host [sync]",
     kWholeRun, kCampaign},
    {"--attention-dropout", "P", "attention dropout; flash attention needs 0 [the model's]",
     kInputs, kPredicting | kGui},
    {"--save-stack", "FILE", "write the calibrated stack", kOutput, kCalibrate},
    {"--save-cluster", "FILE", "write the calibrated cluster", kOutput, kCalibrate},
};
}  // namespace option_table

}  // namespace tpsim::cli
