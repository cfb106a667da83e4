// Names of tpsim's options and commands. options.txt describes the options.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/enum_words.h"

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

}  // namespace tpsim::cli

namespace tpsim {
template <>
inline constexpr auto kEnumNames<cli::Command> = words<20>(
    "plan simulate explain profile run validate campaign export import check-log list gui report "
    "show compare completion calibrate call batch mcp");
}  // namespace tpsim

namespace tpsim::cli {

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

namespace option_table {
using enum Command;
using namespace option_group;  // NOLINT(google-build-using-namespace)

inline constexpr CommandSet kNone{0}, kEvery{~std::uint32_t{0}};
inline constexpr CommandSet kSearches = kPlan | kExplain | kCampaign;
inline constexpr CommandSet kMeasures = kProfile | kRun | kValidate;
inline constexpr CommandSet kSingle = kSimulate | kExplain | kRun | kCampaign;
inline constexpr CommandSet kAll = kPlan | kSingle;
inline constexpr CommandSet kPredicting = kPlan | kSimulate | kExplain | kCampaign;

// Names of the options, in the order of options.txt. The compiler checks them.
inline constexpr auto kNames = words<111>(
    "--model --cluster --stack --profile --node-gbps --nodes --seq --gpus --gpus --gpus --gpus "
    "--top "
    "--group --objective --max-memory --max-oom --exclude --uneven-ends --threads --threads "
    "--within --pareto "
    "--why-not --what-if --memory --snapshot --save-snapshot --program --program --ranks "
    "--accumulation --after --without "
    "--diff --count-embedding --no-count-embedding --runs --row --markdown --plan --tokens "
    "--tokens --ramp --step-time --checkpoint-every --lost-nodes --replays --seed --assumptions "
    "--steps --steps --rank --device --checkpoint --lr --betas --momentum --eps --weight-decay "
    "--clip-grad --aux-loss-coeff --bias-update-rate --state --save-every --dump-gradients "
    "--cuda-graphs --quick --collectives --from-datasheet --to --from --set --answer --command "
    "--trust --assume-harmless --run --checkout --check -o -o -o --json --brief --brief --save "
    "--rank-file --trace --allow-oom "
    "--allow-loss --no-limits --ignore-stack-limits --plot --plot --html --screenshot --script "
    "--size --theme --measured --quiet --verbose --color --scaling --max-gap --deadline --budget "
    "--checkpoint --attention-dropout --save-stack --save-cluster");
}  // namespace option_table

}  // namespace tpsim::cli
