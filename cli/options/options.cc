#include "cli/options/options.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"

namespace tpsim::cli {
namespace {

constexpr std::uint32_t bit(Command command) {
  return std::uint32_t{1} << static_cast<int>(command);
}
constexpr std::uint32_t kPlans = bit(Command::kPlan);
constexpr std::uint32_t kSimulates = bit(Command::kSimulate);
constexpr std::uint32_t kExplains = bit(Command::kExplain);
constexpr std::uint32_t kCampaigns = bit(Command::kCampaign);
constexpr std::uint32_t kProfiles = bit(Command::kProfile);
constexpr std::uint32_t kRuns = bit(Command::kRun);
constexpr std::uint32_t kValidates = bit(Command::kValidate);
constexpr std::uint32_t kExports = bit(Command::kExport);
constexpr std::uint32_t kImports = bit(Command::kImport);
constexpr std::uint32_t kLogChecks = bit(Command::kCheckLog);
constexpr std::uint32_t kLists = bit(Command::kList);
constexpr std::uint32_t kExplores = bit(Command::kGui);
constexpr std::uint32_t kReports = bit(Command::kReport);
constexpr std::uint32_t kCompares = bit(Command::kCompare);
constexpr std::uint32_t kCalibrates = bit(Command::kCalibrate);
constexpr std::uint32_t kEvery = ~std::uint32_t{0};
constexpr std::uint32_t kSearches = kPlans | kExplains | kCampaigns;
constexpr std::uint32_t kMeasures = kProfiles | kRuns | kValidates;
constexpr std::uint32_t kSingle = kSimulates | kExplains | kRuns | kCampaigns;
constexpr std::uint32_t kAll = kPlans | kSingle;

constexpr std::array kCommands = {
    CommandRow{Command::kPlan, "plan", "find the best layouts of a model over a number of GPUs",
               "plan.json", "a plan whose model, machine, GPUs and batch are searched anew",
               "tpsim plan --model bloom-176b --gpus 384\n"
               "tpsim plan --model llama-2-70b --gpus 256 --cluster dgx-h100 --tp 4,8 --top 5\n"
               "tpsim plan --model my/config.json --gpus 64 --cluster dgx-a100 --save plan.json\n"
               "tpsim plan --model llama-3-70b --cluster dgx-h100 --gpus 64,128,...,4096 --plot "
               "curve.svg"},
    CommandRow{Command::kSimulate, "simulate", "predict one plan: time, speed, memory", "plan.json",
               "a plan saved with --save; options given beside it change it",
               "tpsim simulate plan.json --trace timeline.json\n"
               "tpsim simulate --model bloom-176b --tp 4 --pp 12 --dp 8 --micro-batch 2"},
    CommandRow{Command::kExplain, "explain", "show every term of a prediction and its source",
               "plan.json", "a plan saved with --save; options given beside it change it",
               "tpsim explain plan.json\n"
               "tpsim explain --model bloom-176b --gpus 384    # explains the best plan\n"
               "tpsim explain --model bloom-176b --gpus 384 --why-not tp=2,pp=12\n"
               "tpsim explain plan.json --program    # what a rank runs, in order\n"
               "tpsim explain --runs data/published_runs/bloom_jean_zay.csv --row A-097"},
    CommandRow{
        Command::kProfile, "profile", "time on this machine what plans need", "plan.json",
        "a plan saved with --save: only what it needs is timed",
        "tpsim profile plan.json -o profile.json\n"
        "tpsim profile --model my/config.json --gpus 2 --dtype fp32 --quick -o profile.json\n"
        "tpsim profile --from-datasheet x100 peak=1200TFLOP/s fp8=2400TFLOP/s memory=96GB \\\n"
        "    bandwidth=4TB/s processors=144 -o x100.json",
        "facts", "of --from-datasheet, as KEY=VALUE"},
    CommandRow{Command::kRun, "run", "train a plan on the reference model", "plan.json",
               "a plan saved with --save; options given beside it change it",
               "tpsim run --model my/config.json --seq 128 --tp 2 --global-batch 8 --steps 10\n"
               "tpsim run --checkpoint my --tokens tokens.safetensors --tp 2 --pp 2 --dtype fp32\n"
               "tpsim run plan.json --rank 17 --profile profile.json    # one rank, alone"},
    CommandRow{Command::kValidate, "validate", "hold predictions against measured runs",
               "plan.json", "a plan to predict, run on this machine, and compare op by op",
               "tpsim validate plan.json --profile profile.json\n"
               "tpsim validate --runs bloom_jean_zay\n"
               "tpsim validate --runs runs.csv --cluster my-cluster.json --json"},
    CommandRow{Command::kCampaign, "campaign", "cost a whole run: days, energy, money, failures",
               "plan.json", "a plan saved with --save, as --plan",
               "tpsim campaign plan.json --tokens 366e9\n"
               "tpsim campaign --model llama-3-70b --cluster dgx-h100 --tokens 1T --deadline 60d\n"
               "tpsim campaign plan.json --tokens 366e9 --step-time 105s \\\n"
               "    --ramp 192,16,9765625 --checkpoint-every 3h --lost-nodes 4"},
    CommandRow{Command::kExport, "export", "write a plan as the launch files of a training stack",
               "plan.json", "a plan saved with --save",
               "tpsim export plan.json --to megatron-deepspeed -o launch/\n"
               "tpsim export plan.json --to torchtitan"},
    CommandRow{Command::kImport, "import", "read launch files back as a plan", "launch",
               "script, configuration, recipe, log, or export's folder",
               "tpsim import launch/ --save plan.json\n"
               "tpsim import train_mixtral.sh --set NNODES=4 --cluster dgx-h100\n"
               "tpsim import sft.yaml accelerate.yaml --gpus 8 --cluster dgx-h100\n"
               "tpsim import llama3.py --set recipe=llama3_8b_pretrain_config --gpus 64\n"
               "tpsim import pretrain.sh --from megatron-deepspeed --model bloom-176b --json",
               "beside", "configurations beside the first: accelerate's, DeepSpeed's"},
    CommandRow{Command::kCheckLog, "check-log",
               "say whether a run is as predicted, and if not, why", "training.log",
               "a log (docs/check-log.md), packed by gzip or -, standard input",
               "tpsim check-log training.log plan.json", "plan.json",
               "the plan that should be running, as --plan"},
    CommandRow{Command::kList, "list", "show what the catalogue holds", "kind",
               "models, clusters, profiles, stacks or assumptions",
               "tpsim list models\n"
               "tpsim list models llama\n"
               "tpsim list clusters --json",
               "words", "of the names: entries that hold one of them"},
    CommandRow{Command::kGui, "gui", "explore plans by eye", "plan.json",
               "a plan saved with --save, or a view saved in the window",
               "tpsim gui --model bloom-176b --gpus 384\n"
               "tpsim gui plan.json\n"
               "tpsim gui plan.json --screenshot picture.png"},
    CommandRow{Command::kReport, "report", "make a page that explores a plan in any browser",
               "plan.json", "a plan saved with --save",
               "tpsim report plan.json --html report.html\n"
               "tpsim report plan.json --measured validation.json --html report.html"},
    CommandRow{Command::kShow, "show", "print a catalogue entry as a file to edit, or a schema",
               "kind", "a kind of list, assumptions, schema, formats or families",
               "tpsim show cluster dgx-h100 > mine.json\n"
               "tpsim show model Qwen/Qwen3-8B\n"
               "tpsim show schema plan > plan.schema.json\n"
               "tpsim show formats    # docs/files.md",
               "name", "which one; of a schema the kind of file"},
    CommandRow{Command::kCompare, "compare", "hold plans against each other, term by term",
               "plan.json", "plans saved with --save, best in one model and cluster",
               "tpsim compare a.json b.json c.json\n"
               "tpsim compare a.json b.json --cluster dgx-h200 --json",
               "others", "the plans to compare it with"},
    CommandRow{Command::kCompletion, "completion", "print what completes tpsim in a shell", "shell",
               "bash, zsh or fish",
               "tpsim completion bash > ~/.local/share/bash-completion/completions/tpsim\n"
               "tpsim completion fish > ~/.config/fish/completions/tpsim.fish"},
    CommandRow{Command::kCalibrate, "calibrate",
               "fit a stack and a cluster to what was measured there", "measured",
               "a table of runs, a log, or output of nccl-tests",
               "tpsim calibrate runs.csv --save-stack stack.json --save-cluster cluster.json\n"
               "tpsim calibrate a.log b.log --plan plan.json --save-stack stack.json\n"
               "tpsim calibrate all_reduce.txt --cluster dgx-h100 --save-cluster mine.json",
               "others", "more of the same kind"},
    CommandRow{Command::kCall, "call", "answer requests of programs, one JSON document per line",
               nullptr, nullptr,
               "echo '{\"format\": \"tpsim-request/1\", \"call\": \"models\"}' | tpsim call\n"
               "tpsim call    # until the end of standard input: docs/json.md"},
};

constexpr const char* kWhat = "Model and machine";
constexpr const char* kSearch = "Search";
constexpr const char* kTrain = "Training";
constexpr const char* kLayout = kLayoutGroup.data();
constexpr const char* kCut = "Layout of one plan";
constexpr const char* kRun = "The run";
constexpr const char* kAssumed = "Assumptions, in place of the file's";
constexpr const char* kSoftware = "Software, in place of the stack's own";
constexpr const char* kOutput = "Output";

// But for the settings of plans, which setting_option() makes from their table.
const std::array<OptionRow, kPlainOptCount> kPlain = {{
    {Opt::kModel, "--model", "NAME|FILE", "catalogue name, tpsim model or Hugging Face config.json",
     kWhat, kAll | kImports | kProfiles | kExplores | kLogChecks},
    {Opt::kCluster, "--cluster", "NAME|FILE",
     "the machines [the model's usual, or the profile's own]", kWhat,
     kAll | kValidates | kImports | kExplores | kCompares | kLogChecks | kCalibrates},
    {Opt::kStack, "--stack", "NAME|FILE", "the training software [the cluster's]", kWhat,
     kAll | kValidates | kImports | kProfiles | kCompares | kLogChecks | kCalibrates},
    {Opt::kProfile, "--profile", "NAME|FILE", "what its GPU does, op by op [the cluster's]", kWhat,
     kAll | kValidates | kImports | kCompares | kLogChecks | kCalibrates},
    {Opt::kNodeGbps, "--node-gbps", "X", "Gb/s that leave a node, one direction [the cluster's]",
     kWhat, kAll | kValidates | kCompares | kLogChecks | kCalibrates},
    {Opt::kSeq, "--seq", "N", "tokens in a sequence [the model's]", kWhat,
     kAll | kImports | kProfiles},

    {Opt::kGpus, "--gpus", "N", "GPUs to lay the model over; plan: 64,128,...,4096", kSearch,
     kSearches | kProfiles | kExplores | kImports | kLogChecks},
    {Opt::kTop, "--top", "N", "plans to show [10]", kSearch, kPlans},
    {Opt::kObjective, "--objective", "time|memory|cost|energy",
     "what the best plan has least of [time]", kSearch, kSearches},
    {Opt::kMaxMemory, "--max-memory", "SIZE",
     "memory of a GPU that plans may use, as 72GiB [its own]", kSearch, kSearches},
    {Opt::kMaxOom, "--max-oom", "SHARE",
     "risk of running out of memory to accept [5%; of one plan 50%]", kSearch,
     kSearches | kSimulates | kExports},

    {Opt::kExclude, "--exclude", "NAME=VALUE,...", "settings no plan may have, as zero=3", kSearch,
     kSearches},
    {Opt::kUnevenEnds, "--uneven-ends", "N", "blocks that end stages may be short of [2]", kSearch,
     kSearches},
    {Opt::kThreads, "--threads", "N", "that work; the answer is the same [all cores]", kSearch,
     kSearches | kCalibrates},
    {Opt::kPareto, "--pareto", "", "show all plans that no other beats in time and memory", kSearch,
     kPlans},
    {Opt::kWhyNot, "--why-not", "NAME=VALUE,...", "compare with the best plan that has these",
     kSearch, kExplains},
    {Opt::kWhatIf, "--what-if", "", "other machines and shapes: what would change", kSearch,
     kExplains},
    {Opt::kProgram, "--program", "", "show what a rank runs: ops, collectives, allocations",
     kOutput, kExplains},

    {Opt::kCountEmbedding, "--count-embedding", "",
     "cut stages with embedding and head as a block each", kCut, kSingle},
    {Opt::kNoCountEmbedding, "--no-count-embedding", "", "cut stages by blocks alone", kCut,
     kSingle},

    {Opt::kRuns, "--runs", "FILE.csv|NAME", "table of measured runs (docs/runs.md)", kWhat,
     kValidates | kExplains},
    {Opt::kRow, "--row", "ID", "which of them to explain", kWhat, kExplains},
    {Opt::kMarkdown, "--markdown", "", "print a section of docs/accuracy.md", kOutput, kValidates},

    {Opt::kPlanFile, "--plan", "FILE", "a plan saved with --save", kRun,
     kCampaigns | kLogChecks | kCalibrates},
    {Opt::kTokens, "--tokens", "N|FILE", "how many, as 366e9; run: safetensors file [made up]",
     kRun, kCampaigns | kRuns},
    {Opt::kRamp, "--ramp", "START,INC,SAMPLES", "batch-size ramp, as Megatron's [none]", kRun,
     kCampaigns},
    {Opt::kStepTime, "--step-time", "TIME", "measured time of a step, as 105s [as predicted]", kRun,
     kCampaigns},
    {Opt::kCheckpointEvery, "--checkpoint-every", "TIME", "work between checkpoints, as 3h [best]",
     kRun, kCampaigns},
    {Opt::kLostNodes, "--lost-nodes", "N", "plan anew for 1 to N nodes lost for good [0]", kRun,
     kCampaigns},
    {Opt::kReplays, "--replays", "N", "campaigns played with random failures [2000]", kRun,
     kCampaigns},
    {Opt::kSeed, "--seed", "N", "of random weights, tokens or failures [1]", kRun,
     kCampaigns | kRuns},
    {Opt::kAssumptions, "--assumptions", "NAME|FILE", "power, prices, failures [the cluster's]",
     kAssumed, kCampaigns},
    {Opt::kGpuPower, "--gpu-power", "W", "draw of a GPU, as 400W", kAssumed, kCampaigns},
    {Opt::kOtherPower, "--other-power", "W", "of the rest of a node, for each GPU", kAssumed,
     kCampaigns},
    {Opt::kPue, "--pue", "X", "building's power over its machines'", kAssumed, kCampaigns},
    {Opt::kCarbon, "--carbon", "G", "CO2 of the grid, as 57g/kWh", kAssumed, kCampaigns},
    {Opt::kPrice, "--price", "USD", "of a GPU-hour, as 2USD/h", kAssumed, kCampaigns},
    {Opt::kNodeMtbf, "--node-mtbf", "H", "mean time between failures of a node, as 5000h", kAssumed,
     kCampaigns},
    {Opt::kStorageBandwidth, "--storage-bandwidth", "GB/s", "at which checkpoints are written",
     kAssumed, kCampaigns},
    {Opt::kRestartTime, "--restart-time", "MIN", "from a failure to the next step, as 30min",
     kAssumed, kCampaigns},
    {Opt::kRepairTime, "--repair-time", "H", "until a failed node is back, as 72h", kAssumed,
     kCampaigns},
    {Opt::kDowntime, "--downtime", "H", "of the run for other reasons, as 100h", kAssumed,
     kCampaigns},
    {Opt::kSpareNodes, "--spare-nodes", "N|cost|time",
     "kept ready beside the plan's, or chosen for [cost]", kAssumed, kCampaigns},

    {Opt::kSteps, "--steps", "N", "steps to train, counted from the first [10]", kTrain,
     kRuns | kValidates},
    {Opt::kRank, "--rank", "R", "run this rank alone, with modelled collectives", kTrain, kRuns},
    {Opt::kDevice, "--device", "cpu|cuda", "what computes [cpu]", kTrain, kMeasures},
    {Opt::kCheckpoint, "--checkpoint", "DIR", "Hugging Face folder: config.json and safetensors",
     kTrain, kRuns | kCampaigns},
    {Opt::kRate, "--lr", "X", "learning rate [1e-4]", kTrain, kRuns},
    {Opt::kBetas, "--betas", "B1,B2", "of AdamW [0.9,0.95]", kTrain, kRuns},
    {Opt::kEpsilon, "--eps", "X", "of AdamW [1e-8]", kTrain, kRuns},
    {Opt::kWeightDecay, "--weight-decay", "X", "of matrices [0.1]", kTrain, kRuns},
    {Opt::kClipGrad, "--clip-grad", "X", "global gradient norm at most; 0 never clips [1]", kTrain,
     kRuns},
    {Opt::kAuxiliaryLoss, "--aux-loss-coeff", "X",
     "of the router's loss that keeps experts evenly loaded [0]", kTrain, kRuns},
    {Opt::kBiasRate, "--bias-update-rate", "X",
     "by which a router's biases follow the load of its experts [0]", kTrain, kRuns},
    {Opt::kStateFolder, "--state", "DIR", "where training state is saved, and resumed from", kTrain,
     kRuns},
    {Opt::kSaveEvery, "--save-every", "N", "steps between saved states [0: never]", kTrain, kRuns},
    {Opt::kDumpGradients, "--dump-gradients", "FILE", "the first step's gradients, before clipping",
     kTrain, kRuns},
    {Opt::kCudaGraphs, "--cuda-graphs", "", "record a micro-batch once, then replay it (one GPU)",
     kTrain, kRuns},

    {Opt::kQuick, "--quick", "", "take fewer samples: a minute for a small model", kOutput,
     kProfiles},
    {Opt::kCollectives, "--collectives", "", "time all collectives, at all sizes", kOutput,
     kProfiles},
    {Opt::kFromDatasheet, "--from-datasheet", "NAME",
     "time nothing: a profile from peak=, memory=, ...", kOutput, kProfiles},
    {Opt::kTo, "--to", "STACK", "megatron-lm, nemo, nanotron, slurm, ... (docs/export.md: all)",
     kOutput, kExports},
    {Opt::kFrom, "--from", "STACK", "what the files are for, as --to of export [as they look]",
     kOutput, kImports},
    {Opt::kSet, "--set", "NAME=VALUE,...", "what files leave open: NNODES=4,vocab-size=32000",
     kOutput, kImports},
    {Opt::kOutputFolder, "-o", "PATH", "folder for the files [print them]; file of the profile",
     kOutput, kExports | kProfiles},
    {Opt::kJson, "--json", "", "print JSON (docs/json.md)", kOutput,
     kAll | kLogChecks | kLists | kValidates | kRuns | kImports | kCompares | kCalibrates |
         kExports},
    {Opt::kSave, "--save", "FILE", "write the plan, for every command that takes a plan.json",
     kOutput, kPlans | kSimulates | kImports},
    {Opt::kTrace, "--trace", "FILE|-", "write the timeline, for Perfetto; - prints it instead",
     kOutput, kSimulates},
    {Opt::kAllowOom, "--allow-oom", "", "accept a plan that does not fit in memory", kOutput,
     kSimulates | kCampaigns | kExports},
    {Opt::kAllowLoss, "--allow-loss", "", "write files whose step or memory differs by over 2 %",
     kOutput, kExports},
    {Opt::kNoLimits, "--no-limits", "", "start work of any length and size", kOutput, kAll},
    {Opt::kIgnoreStackLimits, "--ignore-stack-limits", "",
     "plan and predict what the stack's launcher cannot run", kSoftware, kAll},
    {Opt::kPlot, "--plot", "FILE.svg|FILE.png", "draw the plans: time, memory, the best one's step",
     kOutput, kPlans | kCompares},
    {Opt::kHtml, "--html", "FILE", "the page to write", kOutput, kReports},
    {Opt::kScreenshot, "--screenshot", "FILE.png", "draw without a window, and end", kOutput,
     kExplores},
    {Opt::kScript, "--script", "FILE", "use the program as the file says (docs/gui.md)", kOutput,
     kExplores},
    {Opt::kWindowSize, "--size", "WxH", "of the window or picture [1280x800]", kOutput, kExplores},
    {Opt::kTheme, "--theme", "light|dark", "colours [light]", kOutput, kExplores},
    {Opt::kMeasured, "--measured", "FILE", "report of validate --json to show beside", kOutput,
     kExplores | kReports},
    {Opt::kQuiet, "--quiet", "", "say nothing on stderr but errors", kOutput, kEvery},
    {Opt::kColor, "--color", "auto|always|never", "colours on stdout [auto]", kOutput, kEvery},
    {Opt::kScaling, "--scaling", "strong|weak",
     "of several --gpus: one batch, or one that grows [strong]", kSearch, kPlans},
    {Opt::kMaxGap, "--max-gap", "SHARE",
     "exit 3 if step or memory is off by more, as 10% [no limit]", kOutput, kLogChecks},
    {Opt::kDeadline, "--deadline", "TIME", "by when the run must end, as 60d: chooses the GPUs",
     kRun, kCampaigns},
    {Opt::kBudget, "--budget", "MONEY", "what it may cost, as 3MUSD: chooses the GPUs", kRun,
     kCampaigns},
    {Opt::kAttentionDropout, "--attention-dropout", "P",
     "of attention; flash attention wants 0 [the model's]", kWhat,
     kPlans | kSimulates | kExplains | kCampaigns},
    {Opt::kSaveStack, "--save-stack", "FILE", "write the software with what was found", kOutput,
     kCalibrates},
    {Opt::kSaveCluster, "--save-cluster", "FILE", "write the machines with what was found", kOutput,
     kCalibrates},
}};

OptionRow setting_option(const SettingRow& row) {
  const char* group = kLayout;
  auto commands = static_cast<std::uint32_t>(kAll | kProfiles);
  if (row.kind == SettingKind::kList) {  // of one plan
    group = kCut;
    commands = kSingle;
  } else if (row.role == SettingRole::kGiven) {
    group = kWhat;
    commands |= kExplores;
  }
  if (row.setting == Setting::kMicroBatch || row.setting == Setting::kGlobalBatch) {
    commands |= kImports;  // where a file leaves them open
  }
  if (row.counts_for != nullptr) commands = 0;
  return {opt_of(row.setting),
          std::string(option_of(row.setting)),
          placeholder_of(row),
          std::string(row.help),
          group,
          commands,
          row.role != SettingRole::kGiven};
}

// Parts that the reference model runs, with every value but those that `run` refuses.
constexpr std::array kExecuted = {
    StackPart::kLogitsDtype, StackPart::kGradientAccumulation,     StackPart::kGradientSync,
    StackPart::kReduceDtype, StackPart::kOverlapGradientReduction, StackPart::kPipelineSends,
    StackPart::kTpOverlap,   StackPart::kTpRecomputeAllgather};

OptionRow part_option(const PartRow& row) {
  const bool is_executed =
      std::find(kExecuted.begin(), kExecuted.end(), row.part) != kExecuted.end();
  return {opt_of(row.part),
          std::string(option_of(row.part)),
          placeholder_of(row),
          std::string(row.help),
          kSoftware,
          kPlans | kSimulates | kExplains | kCampaigns | (is_executed ? kRuns : 0)};
}

struct Options {
  std::array<OptionRow, kOptCount> by_opt;
  std::vector<OptionRow> by_group;

  Options() {
    std::copy(kPlain.begin(), kPlain.end(), by_opt.begin());
    std::transform(setting_rows().begin(), setting_rows().end(), by_opt.begin() + kPlainOptCount,
                   setting_option);
    std::transform(part_rows().begin(), part_rows().end(),
                   by_opt.begin() + kPlainOptCount + kSettingCount, part_option);
    for (std::size_t i = 0; i < by_opt.size(); ++i) {
      TPSIM_CHECK(static_cast<std::size_t>(by_opt[i].opt) == i, "rows stand in the order of Opt");
    }
    for (const char* group :
         {kWhat, kSearch, kLayout, kCut, kSoftware, kRun, kAssumed, kTrain, kOutput}) {
      for (const OptionRow& row : by_opt) {
        if (row.group == group) by_group.push_back(row);
      }
    }
  }
};
const Options& options() {
  static const Options all;
  return all;
}

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

std::span<const OptionRow> option_rows() { return options().by_group; }
const OptionRow& row_of(Opt opt) { return options().by_opt[static_cast<std::size_t>(opt)]; }

bool takes(Command command, const OptionRow& row) { return (row.commands & bit(command)) != 0; }

}  // namespace tpsim::cli
