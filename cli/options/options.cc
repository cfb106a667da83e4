#include "cli/options/options.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/text.h"
#include "core/base/text_table.h"

namespace tpsim::cli {

extern const std::span<const unsigned char> kOptionTexts;  // options.txt

namespace {

using namespace option_table;  // NOLINT(google-build-using-namespace)

void check(bool holds, std::string_view text) {
  TPSIM_CHECK(holds, "options.txt: cannot read " + std::string(text));
}

struct CommandSetName {
  std::string_view name;
  CommandSet set;
};
constexpr CommandSetName kSets[] = {{"every", kEvery},       {"searches", kSearches},
                                    {"measures", kMeasures}, {"single", kSingle},
                                    {"all", kAll},           {"predicting", kPredicting}};

CommandSet commands_called(std::string_view names) {
  CommandSet set = kNone;
  while (!names.empty()) {
    const std::string_view name = cut_off(names, " ");
    const auto* const one =
        std::find_if(std::begin(kSets), std::end(kSets),
                     [&](const CommandSetName& row) { return row.name == name; });
    if (one != std::end(kSets)) {
      set = set | one->set;
      continue;
    }
    const auto command = choose("command", name, kEnumNames<Command>);
    check(command.ok(), name);
    set = set | static_cast<Command>(*command);
  }
  return set;
}

std::string_view group_called(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kGroups[] = {
      {"inputs", kInputs},     {"search", kSearch},      {"cut", kCut},
      {"software", kSoftware}, {"whole_run", kWholeRun}, {"assumed", kAssumed},
      {"training", kTraining}, {"output", kOutput}};
  for (const auto& [word, title] : kGroups) {
    if (word == name) return title;
  }
  check(false, name);
  return "";
}

// Returns the option that a block of options.txt describes.
OptionRow plain_option(const TableBlock& block) {
  const std::string_view repeats = block.rest_of("repeats");
  return {Opt::called(block.name),
          std::string(block.name),
          std::string(block.rest_of("value")),
          std::string(block.rest_of("help")),
          group_called(block.rest_of("group")),
          commands_called(block.rest_of("in")),
          false,
          repeats == "last_wins" ? Repeats::kLastWins
          : repeats == "joins"   ? Repeats::kJoins
          : repeats == "each"    ? Repeats::kEach
                                 : Repeats::kNever};
}

OptionRow setting_option(const SettingRow& row) {
  const bool is_given = row.role == SettingRole::kGiven;
  OptionRow option{opt_of(row.setting),
                   std::string(option_of(row.setting)),
                   placeholder_of(row),
                   std::string(row.help),
                   is_given ? kInputs : kLayout,
                   kAll | kGui | kProfile,
                   !is_given};
  if (row.is_list()) {  // accepted only where there is a single plan
    option.group = kCut;
    option.commands = kSingle;
  }
  if (row.setting == Setting::kMicroBatch || row.setting == Setting::kGlobalBatch) {
    option.commands = option.commands | kImport;  // for launch files that do not state them
  }
  if (row.counts_for != nullptr) option.commands = kNone;
  return option;
}

// `run` accepts the parts that the reference model executes. check_overlap() refuses overlaps that
// cannot be executed.
OptionRow part_option(const PartRow& row) {
  return {opt_of(row.part),    std::string(option_of(row.part)),
          placeholder_of(row), std::string(row.help),
          kSoftware,           kPredicting | kGui | (row.is_executed ? kRun : kNone)};
}

OptionRow assumption_option(const AssumptionRow& row) {
  std::string help = row.meaning;
  if (*row.example != '\0') help += std::string(", e.g. ") + row.example;
  return {opt_of(row.assumption),
          option_of(row.assumption),
          row.placeholder,
          std::move(help),
          kAssumed,
          kCampaign};
}

// Changes the texts of an option to those for one command.
OptionRow row_for(Command command, OptionRow row) {
  const bool is_single = command == kSimulate || command == kRun;
  row.many = row.many && !is_single;
  if (row.group == kLayout) {
    row.group = is_single ? "Layout (default: all 1, ZeRO 1, no recompute)"
                          : "Layout (default: every legal value)";
  }
  if (row.opt == opt_of(Setting::kGlobalBatch)) {
    row.help = command == kRun      ? "sequences per step [dp x micro-batch]"
               : command == kImport ? "sequences per step, if the file does not state it"
                                    : "sequences per step [the model's, or about 4 M tokens]";
  }
  return row;
}

struct Options {
  std::vector<OptionRow> all;  // by Opt; further rows of an option follow its first one
  std::vector<OptionRow> rows;
  std::array<std::vector<OptionRow>, kCommandCount> by_command;

  Options() {
    for (const TableBlock& block : read_table(kOptionTexts)) {
      check(all.size() < kNames.size() && block.name == kNames[all.size()], block.name);
      all.push_back(plain_option(block));
    }
    check(all.size() == kNames.size(), "options.txt");
    std::transform(setting_rows().begin(), setting_rows().end(), std::back_inserter(all),
                   setting_option);
    std::transform(part_rows().begin(), part_rows().end(), std::back_inserter(all), part_option);
    std::transform(assumption_rows().begin(), assumption_rows().end(), std::back_inserter(all),
                   assumption_option);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].opt.index() == i) rows.push_back(all[i]);
    }
    for (const std::string_view group :
         {kInputs, kSearch, kLayout, kCut, kSoftware, kWholeRun, kAssumed, kTraining, kOutput}) {
      for (const OptionRow& row : all) {
        if (row.group == group) add(row);
      }
    }
  }
  void add(const OptionRow& row) {
    for (std::size_t i = 0; i < by_command.size(); ++i) {
      const auto command = static_cast<Command>(i);
      if (row.commands.contains(command)) by_command[i].push_back(row_for(command, row));
    }
  }
};
const Options& options() {
  static const Options all;
  return all;
}

}  // namespace

std::span<const OptionRow> option_rows() { return options().rows; }
const OptionRow& row_of(Opt opt) { return options().all[opt.index()]; }
std::span<const OptionRow> options_of(Command command) {
  return options().by_command[static_cast<std::size_t>(command)];
}

bool takes(Command command, Opt opt) {
  const std::span<const OptionRow> rows = options_of(command);
  return std::any_of(rows.begin(), rows.end(),
                     [&](const OptionRow& row) { return row.opt == opt; });
}

}  // namespace tpsim::cli
