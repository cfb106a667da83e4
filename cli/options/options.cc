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

constexpr const char* kWhat = "Model and machine";
constexpr const char* kSearch = "Search";
constexpr const char* kTrain = "Training";
constexpr const char* kLayout = kLayoutGroup.data();
constexpr const char* kCut = "Layout of one plan";
constexpr const char* kRun = "The run";
constexpr const char* kAssumed = "Assumptions (override the file)";
constexpr const char* kSoftware = "Software (overrides the stack)";
constexpr const char* kOutput = "Output";

// All options except those of plan settings, software parts and assumptions, which their tables
// define.
const std::array<OptionRow, kPlainOptCount> kPlain = {{
    {Opt::kModel, "--model", "NAME|FILE", "catalogue name, tpsim model or Hugging Face config.json",
     kWhat, kAll | kImports | kProfiles | kExplores | kLogChecks, false, Repeats::kLastWins},
    {Opt::kCluster, "--cluster", "NAME|FILE",
     "cluster: nodes, GPUs, network [the model's usual one]", kWhat,
     kAll | kValidates | kImports | kExplores | kCompares | kLogChecks | kCalibrates},
    {Opt::kStack, "--stack", "NAME|FILE", "training software [the cluster's]", kWhat,
     kAll | kExplores | kValidates | kImports | kProfiles | kCompares | kLogChecks | kCalibrates},
    {Opt::kProfile, "--profile", "NAME|FILE", "kernel times of the GPU [the cluster's]", kWhat,
     kAll | kExplores | kValidates | kImports | kCompares | kLogChecks | kCalibrates},
    {Opt::kNodeGbps, "--node-gbps", "X", "network bandwidth per node, Gb/s one way [the cluster's]",
     kWhat, kAll | kExplores | kValidates | kCompares | kLogChecks | kCalibrates},
    {Opt::kSeq, "--seq", "N", "tokens per sequence [the model's]", kWhat,
     kAll | kExplores | kImports | kProfiles},

    {Opt::kGpus, "--gpus", "N", "number of GPUs; plan also takes a list: 64,128,...,4096", kSearch,
     kSearches | kProfiles | kExplores | kImports | kLogChecks},
    {Opt::kTop, "--top", "N", "plans to show [10]", kSearch, kPlans},
    {Opt::kObjective, "--objective", "time|memory|cost|energy", "what to minimize [time]", kSearch,
     kSearches},
    {Opt::kMaxMemory, "--max-memory", "SIZE", "memory limit per GPU, e.g. 72GiB [all of it]",
     kSearch, kSearches | kExplores},
    {Opt::kMaxOom, "--max-oom", "SHARE",
     "accepted risk of running out of memory [5%; for one plan 50%]", kSearch,
     kSearches | kExplores | kSimulates | kExports | kImports | kCompares},

    {Opt::kExclude, "--exclude", "NAME=VALUE,...", "exclude plans with these settings, e.g. zero=3",
     kSearch, kSearches | kExplores},
    {Opt::kUnevenEnds, "--uneven-ends", "N",
     "first and last stage may have up to N fewer layers [2]", kSearch, kSearches | kExplores},
    {Opt::kThreads, "--threads", "N", "worker threads (does not change the result) [all cores]",
     kSearch, kSearches | kCalibrates},
    {Opt::kPareto, "--pareto", "", "show the Pareto front of step time and memory", kSearch,
     kPlans},
    {Opt::kWhyNot, "--why-not", "NAME=VALUE,...",
     "compare with the best plan that has these settings", kSearch, kExplains},
    {Opt::kWhatIf, "--what-if", "", "effect of other hardware and model shapes", kSearch,
     kExplains},
    {Opt::kMemory, "--memory", "", "show the contents of the memory at the peak", kOutput,
     kExplains},
    {Opt::kSnapshot, "--snapshot", "FILE",
     "with --memory: compare with a memory snapshot of PyTorch", kOutput, kExplains},
    {Opt::kSaveSnapshot, "--save-snapshot", "FILE",
     "with --memory: write the prediction for pytorch.org/memory_viz", kOutput, kExplains},
    {Opt::kProgram, "--program", "", "show the ops, collectives and allocations of each stage",
     kOutput, kExplains},
    {Opt::kAfter, "--after", "PASS", "with --program: after this pass (trace: no pass) [the last]",
     kOutput, kExplains},

    {Opt::kDiff, "--diff", "PLAN.json", "with --program: differences to this plan, pass by pass",
     kOutput, kExplains},

    {Opt::kCountEmbedding, "--count-embedding", "",
     "balance stages with embedding and head counted as a layer each", kCut, kSingle},
    {Opt::kNoCountEmbedding, "--no-count-embedding", "",
     "balance stages by transformer layers alone", kCut, kSingle},

    {Opt::kRuns, "--runs", "FILE.csv|NAME", "table of measured runs (docs/runs.md)", kWhat,
     kValidates | kExplains},
    {Opt::kRow, "--row", "ID", "row to explain", kWhat, kExplains},
    {Opt::kMarkdown, "--markdown", "", "print a section of docs/accuracy.md", kOutput, kValidates},

    {Opt::kPlanFile, "--plan", "FILE", "plan saved with --save", kRun,
     kCampaigns | kLogChecks | kCalibrates},
    {Opt::kTokens, "--tokens", "N|FILE",
     "number of tokens, e.g. 366e9; run: safetensors file [random tokens]", kRun,
     kCampaigns | kRuns},
    {Opt::kRamp, "--ramp", "START,INC,SAMPLES", "batch-size ramp-up, as in Megatron [none]", kRun,
     kCampaigns},
    {Opt::kStepTime, "--step-time", "TIME", "measured step time, e.g. 105s [predicted]", kRun,
     kCampaigns},
    {Opt::kCheckpointEvery, "--checkpoint-every", "TIME",
     "time between checkpoints, e.g. 3h [optimal]", kRun, kCampaigns},
    {Opt::kLostNodes, "--lost-nodes", "N", "search again with 1 to N nodes lost permanently [0]",
     kRun, kCampaigns},
    {Opt::kReplays, "--replays", "N", "simulated runs with random failures [2000]", kRun,
     kCampaigns},
    {Opt::kSeed, "--seed", "N", "seed of random weights, tokens or failures [1]", kRun,
     kCampaigns | kRuns},
    {Opt::kAssumptions, "--assumptions", "NAME|FILE", "power, prices, failures [the cluster's]",
     kAssumed, kCampaigns},
    {Opt::kSteps, "--steps", "N", "steps to train, counted from the first [10]", kTrain,
     kRuns | kValidates},
    {Opt::kRank, "--rank", "R", "run this rank alone; explain: rank of --snapshot [0]", kTrain,
     kRuns | kExplains},
    {Opt::kDevice, "--device", "cpu|cuda", "device that computes [cpu]", kTrain, kMeasures},
    {Opt::kCheckpoint, "--checkpoint", "DIR", "Hugging Face folder: config.json and safetensors",
     kTrain, kRuns | kCampaigns},
    {Opt::kRate, "--lr", "X", "learning rate [1e-4]", kTrain, kRuns},
    {Opt::kBetas, "--betas", "B1,B2", "AdamW's betas [0.9,0.95]", kTrain, kRuns},
    {Opt::kMomentum, "--momentum", "X", "Muon's momentum [0.95]", kTrain, kRuns},
    {Opt::kEpsilon, "--eps", "X", "AdamW's epsilon [1e-8]", kTrain, kRuns},
    {Opt::kWeightDecay, "--weight-decay", "X", "weight decay of matrices [0.1]", kTrain, kRuns},
    {Opt::kClipGrad, "--clip-grad", "X", "maximum global gradient norm; 0: no clipping [1]", kTrain,
     kRuns},
    {Opt::kAuxiliaryLoss, "--aux-loss-coeff", "X",
     "coefficient of the router's load-balancing loss [0]", kTrain, kRuns},
    {Opt::kBiasRate, "--bias-update-rate", "X", "update rate of the router's expert biases [0]",
     kTrain, kRuns},
    {Opt::kStateFolder, "--state", "DIR", "folder to save training state in and to resume from",
     kTrain, kRuns},
    {Opt::kSaveEvery, "--save-every", "N", "steps between saved states [0: never]", kTrain, kRuns},
    {Opt::kDumpGradients, "--dump-gradients", "FILE",
     "write the first step's gradients, before clipping", kTrain, kRuns},
    {Opt::kCudaGraphs, "--cuda-graphs", "",
     "capture a micro-batch as a CUDA graph and replay it (one GPU)", kTrain, kRuns},

    {Opt::kQuick, "--quick", "", "take fewer samples; a minute for a small model", kOutput,
     kProfiles},
    {Opt::kCollectives, "--collectives", "", "time every collective at every size", kOutput,
     kProfiles},
    {Opt::kFromDatasheet, "--from-datasheet", "NAME",
     "profile from datasheet values (peak=, ...), without timing", kOutput, kProfiles},
    {Opt::kTo, "--to", "STACK", "framework: megatron-lm, nemo, slurm, ... (docs/export.md)",
     kOutput, kExports},
    {Opt::kFrom, "--from", "STACK", "framework of the files, a value of export's --to [detected]",
     kOutput, kImports},
    {Opt::kSet, "--set", "NAME=VALUE,...",
     "values that the files omit, e.g. NNODES=4,vocab-size=32000", kOutput, kImports, false,
     Repeats::kJoins},
    {Opt::kAssumeHarmless, "--assume-harmless", "",
     "ignore unknown settings; widens the prediction interval", kOutput, kImports},
    {Opt::kRunCode, "--run", "", "run a recipe or script in Python and read its configuration",
     kOutput, kImports},
    {Opt::kCheckout, "--checkout", "DIR,...", "sources of the frameworks that --run needs", kOutput,
     kImports | kExports, false, Repeats::kJoins},
    {Opt::kJudge, "--check", "DIR", "check the files with the framework's code in this checkout",
     kOutput, kExports},
    {Opt::kOutputFolder, "-o", "PATH", "output folder [print the files]; profile: output file",
     kOutput, kExports | kProfiles},
    {Opt::kJson, "--json", "", "print JSON (docs/json.md)", kOutput,
     kAll | kLogChecks | kLists | kValidates | kRuns | kImports | kCompares | kCalibrates |
         kExports},
    {Opt::kSave, "--save", "FILE", "write the plan as a file that other commands read", kOutput,
     kPlans | kSimulates | kImports},
    {Opt::kTrace, "--trace", "FILE|-", "write the timeline for Perfetto; -: to stdout", kOutput,
     kSimulates},
    {Opt::kAllowOom, "--allow-oom", "", "accept a plan that does not fit in memory", kOutput,
     kSimulates | kCampaigns | kExports},
    {Opt::kAllowLoss, "--allow-loss", "", "write files even if they lose settings of the plan",
     kOutput, kExports},
    {Opt::kNoLimits, "--no-limits", "",
     "allow tpsim itself to use more than 10 min or 1 GiB of memory", kOutput, kAll},
    {Opt::kIgnoreStackLimits, "--ignore-stack-limits", "",
     "allow plans that the stack's launcher refuses", kSoftware, kAll | kExplores},
    {Opt::kPlot, "--plot", "FILE.svg", "plot step time and memory of the plans, and the best step",
     kOutput, kPlans | kCompares},
    {Opt::kHtml, "--html", "FILE", "the page to write", kOutput, kReports},
    {Opt::kScreenshot, "--screenshot", "FILE.png",
     "write a picture without opening a window, then exit", kOutput, kExplores},
    {Opt::kScript, "--script", "FILE", "run the interactions in the file (docs/gui.md)", kOutput,
     kExplores},
    {Opt::kWindowSize, "--size", "WxH", "size of the window or picture [1280x800]", kOutput,
     kExplores},
    {Opt::kTheme, "--theme", "light|dark", "colors [light]", kOutput, kExplores},
    {Opt::kMeasured, "--measured", "FILE",
     "output of validate --json to show next to the prediction", kOutput, kExplores | kReports},
    {Opt::kQuiet, "--quiet", "", "print only errors on stderr", kOutput, kEvery},
    {Opt::kVerbose, "--verbose", "", "list the settings that have no effect", kOutput, kImports},
    {Opt::kColor, "--color", "auto|always|never", "colors on stdout [auto]", kOutput, kEvery},
    {Opt::kScaling, "--scaling", "strong|weak",
     "several --gpus: same batch, or batch grows with GPUs [strong]", kSearch, kPlans},
    {Opt::kMaxGap, "--max-gap", "SHARE",
     "exit 3 if step or memory is off by more, e.g. 10% [no limit]", kOutput, kLogChecks},
    {Opt::kDeadline, "--deadline", "TIME", "time limit, e.g. 60d: chooses the number of GPUs", kRun,
     kCampaigns},
    {Opt::kBudget, "--budget", "MONEY", "cost limit, e.g. 3MUSD: chooses the number of GPUs", kRun,
     kCampaigns},
    {Opt::kAttentionDropout, "--attention-dropout", "P",
     "attention dropout; flash attention needs 0 [the model's]", kWhat,
     kPlans | kSimulates | kExplains | kCampaigns | kExplores},
    {Opt::kSaveStack, "--save-stack", "FILE", "write the calibrated stack", kOutput, kCalibrates},
    {Opt::kSaveCluster, "--save-cluster", "FILE", "write the calibrated cluster", kOutput,
     kCalibrates},
}};

OptionRow setting_option(const SettingRow& row) {
  const char* group = kLayout;
  auto commands = static_cast<std::uint32_t>(kAll | kExplores | kProfiles);
  if (row.is_list()) {  // accepted only where there is a single plan
    group = kCut;
    commands = kSingle;
  } else if (row.role == SettingRole::kGiven) {
    group = kWhat;
  }
  if (row.setting == Setting::kMicroBatch || row.setting == Setting::kGlobalBatch) {
    commands |= kImports;  // for launch files that do not state them
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

// `run` accepts the parts that the reference model executes. check_overlap() refuses overlaps that
// cannot be executed.
OptionRow part_option(const PartRow& row) {
  return {opt_of(row.part),
          std::string(option_of(row.part)),
          placeholder_of(row),
          std::string(row.help),
          kSoftware,
          kPlans | kSimulates | kExplains | kCampaigns | kExplores | (row.is_executed ? kRuns : 0)};
}

OptionRow assumption_option(const AssumptionRow& row) {
  std::string help = row.meaning;
  if (*row.example != '\0') help += std::string(", e.g. ") + row.example;
  return {opt_of(row.assumption),
          option_of(row.assumption),
          row.placeholder,
          std::move(help),
          kAssumed,
          kCampaigns};
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
    std::transform(assumption_rows().begin(), assumption_rows().end(),
                   by_opt.end() - kAssumptionCount, assumption_option);
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

}  // namespace

std::span<const OptionRow> option_rows() { return options().by_group; }
const OptionRow& row_of(Opt opt) { return options().by_opt[static_cast<std::size_t>(opt)]; }

bool takes(Command command, const OptionRow& row) { return (row.commands & bit(command)) != 0; }

}  // namespace tpsim::cli
