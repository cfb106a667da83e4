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
constexpr const char* kAssumed = "Assumptions, in place of the file's";
constexpr const char* kSoftware = "Software, in place of the stack's own";
constexpr const char* kOutput = "Output";

// But for the settings of plans, which setting_option() makes from their table.
const std::array<OptionRow, kPlainOptCount> kPlain = {{
    {Opt::kModel, "--model", "NAME|FILE", "catalogue name, tpsim model or Hugging Face config.json",
     kWhat, kAll | kImports | kProfiles | kExplores | kLogChecks, false, Repeats::kLastWins},
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
     kOutput, kImports, false, Repeats::kJoins},
    {Opt::kAssumeHarmless, "--assume-harmless", "",
     "leave out unknown settings; the interval widens", kOutput, kImports},
    {Opt::kRunCode, "--run", "",
     "run a recipe or script in Python, and read the configuration it makes", kOutput, kImports},
    {Opt::kCheckout, "--checkout", "DIR,...", "sources of the frameworks that --run needs", kOutput,
     kImports | kExports, false, Repeats::kJoins},
    {Opt::kJudge, "--check", "DIR", "let the framework in this checkout judge the files", kOutput,
     kExports},
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
    {Opt::kAllowLoss, "--allow-loss", "", "write files that lose settings of the plan", kOutput,
     kExports},
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
    {Opt::kVerbose, "--verbose", "", "list the settings that change no plan", kOutput, kImports},
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

}  // namespace

std::span<const OptionRow> option_rows() { return options().by_group; }
const OptionRow& row_of(Opt opt) { return options().by_opt[static_cast<std::size_t>(opt)]; }

bool takes(Command command, const OptionRow& row) { return (row.commands & bit(command)) != 0; }

}  // namespace tpsim::cli
