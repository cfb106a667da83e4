// Table of all options with their names, values, help texts and commands. Used by the parser,
// --help, error messages and suggestions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "campaigns/assumptions.h"
#include "core/plan/plan_settings.h"
#include "core/software/stack_parts.h"

namespace tpsim {
namespace app {}
namespace cli {
using namespace app;  // commands fill the requests of app/ and print its answers
}
}  // namespace tpsim

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
  const char* positional;  // name in --help; null if the command has none
  const char* positional_help;
  const char* examples;        // one command per line
  const char* more = nullptr;  // name in --help of further arguments after the positional one
  const char* more_help = nullptr;
};
std::span<const CommandRow> command_rows();
const CommandRow& row_of(Command command);

// Options except those of plan settings, software parts and assumptions of campaigns. The numbers
// of these follow: opt_of(Setting::kTp), opt_of(StackPart::kNormKernel), opt_of(Assumption::kPue).
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
  kMemory,
  kSnapshot,
  kSaveSnapshot,
  kProgram,
  kAfter,
  kDiff,
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
  kSteps,
  kRank,
  kDevice,
  kCheckpoint,
  kRate,
  kBetas,
  kMomentum,
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
inline constexpr int kOptCount =
    kPlainOptCount + kSettingCount + kStackPartCount + kAssumptionCount;

// Returns the option of a plan setting. A setting that counts layers for a value of another setting
// (the 2 of --recompute blocks:2) does not have an option.
constexpr Opt opt_of(Setting setting) {
  return static_cast<Opt>(kPlainOptCount + static_cast<int>(setting));
}

// Returns the option of a software part.
constexpr Opt opt_of(StackPart part) {
  return static_cast<Opt>(kPlainOptCount + kSettingCount + static_cast<int>(part));
}

// Returns the option that replaces an assumption of a campaign.
constexpr Opt opt_of(Assumption assumption) {
  return static_cast<Opt>(kPlainOptCount + kSettingCount + kStackPartCount +
                          static_cast<int>(assumption));
}

inline constexpr std::string_view kLayoutGroup = "Layout";

// How `import` treats a repeated option. All other commands refuse repetitions.
enum class Repeats : std::uint8_t {
  kNever,  // an error, since the intended value is unclear
  kLastWins,
  kJoins,  // all values form one list, in which later ones override
};

struct OptionRow {
  Opt opt;
  std::string name;   // "--tp"
  std::string value;  // placeholder in --help; empty for a switch
  std::string help;
  const char* group;
  std::uint32_t commands;  // bit set of the commands that accept the option: 1 << Command
  bool many = false;       // a search accepts a list of values
  Repeats repeats = Repeats::kNever;
};
// Returns all rows in the order of --help, group by group.
std::span<const OptionRow> option_rows();
const OptionRow& row_of(Opt opt);
bool takes(Command command, const OptionRow& row);
// Returns the option that other programs call by this name ("--mbs",
// "--tensor-model-parallel-size"); null if unknown.
const OptionRow* option_called(std::string_view name);
// Returns the tpsim option with its value for a switch of other programs: "--dtype bf16" for
// "--bf16". Empty if unknown.
std::string_view written_instead(std::string_view name);
// Returns what to use instead of a value that plans do not support, such as an offloaded optimizer
// for --offload params. Empty for other values.
std::string_view possible_instead(std::string_view option, std::string_view value);

// One value of an option: a text of the command line, or a text, number or switch of a program.
using OptionValue = std::variant<std::string, double, bool>;
std::string text_of(const OptionValue& value);  // for messages

// Parsed command line, with one text per option. The text of a switch is empty. Requests of
// programs state values.
class Arguments {
 public:
  Command command{};
  // First argument that is not an option, such as a plan file; empty if missing.
  std::string positional;
  std::vector<std::string> more;  // arguments after the positional
  std::string program;            // path of tpsim as typed, quoted for a shell
  std::string command_line;       // whole command line as typed, quoted for a shell

  // Returns all arguments that are not options: the positional one, if any, and the following ones.
  std::vector<std::string> words() const {
    std::vector<std::string> all = more;
    if (!positional.empty()) all.insert(all.begin(), positional);
    return all;
  }
  bool has(Opt opt) const { return texts_[static_cast<std::size_t>(opt)].has_value(); }
  const std::optional<std::string>& operator[](Opt opt) const {
    return texts_[static_cast<std::size_t>(opt)];
  }
  // Returns the values of an option that was set by values; null if it was set by a text.
  const std::vector<OptionValue>* values(Opt opt) const {
    const auto found = values_.find(opt);
    return found == values_.end() ? nullptr : &found->second;
  }
  void set(Opt opt, std::string text) { texts_[static_cast<std::size_t>(opt)] = std::move(text); }
  void set(Opt opt, std::vector<OptionValue> values);

 private:
  std::array<std::optional<std::string>, kOptCount> texts_;
  std::map<Opt, std::vector<OptionValue>> values_;
};

}  // namespace tpsim::cli
