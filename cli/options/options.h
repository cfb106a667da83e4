// Every option of tpsim, described once: what it is called, what it takes, what it does and which
// commands take it. The parser, --help, the messages and "did you mean" all read this table.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/plan_settings.h"
#include "core/software/stack_parts.h"

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
};

struct CommandRow {
  Command command;
  const char* name;
  const char* summary;
  const char* positional;  // its name in --help; null when the command takes none
  const char* positional_help;
  const char* examples;        // one command to a line
  const char* more = nullptr;  // what may follow the positional, any number of times
  const char* more_help = nullptr;
};
std::span<const CommandRow> command_rows();
const CommandRow& row_of(Command command);

// Options that are no settings of a plan and no parts of software; those come after them:
// opt_of(Setting::kTp), opt_of(StackPart::kNormKernel).
enum class Opt : std::uint8_t {
  kModel,
  kCluster,
  kStack,
  kProfile,
  kNodeGbps,
  kSeq,
  kGpus,
  kTop,
  kObjective,
  kMaxMemory,
  kMaxOom,
  kExclude,
  kUnevenEnds,
  kThreads,
  kPareto,
  kWhyNot,
  kWhatIf,
  kProgram,
  kCountEmbedding,
  kNoCountEmbedding,
  kRuns,
  kRow,
  kMarkdown,
  kPlanFile,
  kTokens,
  kRamp,
  kStepTime,
  kCheckpointEvery,
  kLostNodes,
  kReplays,
  kSeed,
  kAssumptions,
  kGpuPower,
  kOtherPower,
  kPue,
  kCarbon,
  kPrice,
  kNodeMtbf,
  kStorageBandwidth,
  kRestartTime,
  kRepairTime,
  kDowntime,
  kSpareNodes,
  kSteps,
  kRank,
  kDevice,
  kCheckpoint,
  kRate,
  kBetas,
  kEpsilon,
  kWeightDecay,
  kClipGrad,
  kAuxiliaryLoss,
  kBiasRate,
  kStateFolder,
  kSaveEvery,
  kDumpGradients,
  kCudaGraphs,
  kQuick,
  kCollectives,
  kFromDatasheet,
  kTo,
  kFrom,
  kSet,
  kAssumeHarmless,
  kRunCode,
  kCheckout,
  kJudge,
  kOutputFolder,
  kJson,
  kSave,
  kTrace,
  kAllowOom,
  kAllowLoss,
  kNoLimits,
  kIgnoreStackLimits,
  kPlot,
  kHtml,
  kScreenshot,
  kScript,
  kWindowSize,
  kTheme,
  kMeasured,
  kQuiet,
  kVerbose,
  kColor,
  kScaling,
  kMaxGap,
  kDeadline,
  kBudget,
  kAttentionDropout,
  kSaveStack,
  kSaveCluster,
};
inline constexpr int kPlainOptCount = static_cast<int>(Opt::kSaveCluster) + 1;
inline constexpr int kOptCount = kPlainOptCount + kSettingCount + kStackPartCount;

// The option of a plan's setting. A number that only counts something stands behind another's value
// and has none.
constexpr Opt opt_of(Setting setting) {
  return static_cast<Opt>(kPlainOptCount + static_cast<int>(setting));
}

// The option of a part of the software.
constexpr Opt opt_of(StackPart part) {
  return static_cast<Opt>(kPlainOptCount + kSettingCount + static_cast<int>(part));
}

inline constexpr std::string_view kLayoutGroup = "Layout";

// How import reads an option that is given twice. Other commands refuse it.
enum class Repeats : std::uint8_t {
  kNever,  // an error, since it is open which value is meant
  kLastWins,
  kJoins,  // all values are one list, in which a later one wins
};

struct OptionRow {
  Opt opt;
  std::string name;   // "--tp"
  std::string value;  // what it takes, for --help; empty for a switch that is only there or not
  std::string help;
  const char* group;
  std::uint32_t commands;  // bit (1 << Command) set: that command takes it
  bool many = false;       // a search takes a list of values, a single plan takes one
  Repeats repeats = Repeats::kNever;
};
// As --help shows them, group by group.
std::span<const OptionRow> option_rows();
const OptionRow& row_of(Opt opt);
bool takes(Command command, const OptionRow& row);
// The option that other programs call so: "--mbs" and "--tensor-model-parallel-size"; null for any
// other name.
const OptionRow* option_called(std::string_view name);
// What to write in place of an option that there is under no name: "--bf16" is "--dtype bf16".
// Empty for any other.
std::string_view written_instead(std::string_view name);
// What comes nearest to a value that no plan can have: of --offload params, an offloaded optimizer.
// Empty for any other.
std::string_view possible_instead(std::string_view option, std::string_view value);

// What the user typed: one text per option. A switch that was given holds an empty text.
class Arguments {
 public:
  Command command{};
  std::string positional;         // plan file or kind of list; empty when there was none
  std::vector<std::string> more;  // what follows it
  std::string program;            // tpsim as it was called, quoted for a shell
  std::string command_line;       // all of it as typed, quoted likewise

  // All words that are no options: the positional, if there is one, and what follows it.
  std::vector<std::string> words() const {
    std::vector<std::string> all = more;
    if (!positional.empty()) all.insert(all.begin(), positional);
    return all;
  }
  bool has(Opt opt) const { return texts_[static_cast<std::size_t>(opt)].has_value(); }
  const std::optional<std::string>& operator[](Opt opt) const {
    return texts_[static_cast<std::size_t>(opt)];
  }
  void set(Opt opt, std::string text) { texts_[static_cast<std::size_t>(opt)] = std::move(text); }

 private:
  std::array<std::optional<std::string>, kOptCount> texts_;
};

}  // namespace tpsim::cli
