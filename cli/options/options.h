// Table of all options with their names, values, help texts and commands. Used by the parser,
// --help, error messages and suggestions.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "campaigns/assumptions.h"
#include "cli/options/option_table.h"
#include "core/base/result.h"
#include "core/plan/plan_settings.h"
#include "core/scenario/plan_file.h"
#include "core/software/stack_parts.h"

namespace tpsim {
namespace app {}
namespace cli {
using namespace app;  // commands fill the requests of app/ and print its answers
}
}  // namespace tpsim

namespace tpsim::cli {

class Arguments;
struct Answer;
struct Terminal;

struct CommandRow {
  Command command{};
  Result<Answer> (*run)(const Arguments& arguments, const Terminal& terminal) = nullptr;
  const char* name = nullptr;
  const char* summary = nullptr;
  const char* positional = nullptr;  // name in --help; null if the command has none
  const char* positional_help = nullptr;
  const char* examples = nullptr;  // one command per line
  const char* more = nullptr;      // name in --help of further arguments after the positional one
  const char* more_help = nullptr;
};
std::span<const CommandRow> command_rows();
const CommandRow& row_of(Command command);

inline constexpr int kPlainOptCount = static_cast<int>(std::size(option_table::kNames));
inline constexpr int kOptCount =
    kPlainOptCount + kSettingCount + kStackPartCount + kAssumptionCount;

// An option: one of option_table, of a plan setting, software part or assumption. The compiler
// checks the names of the table: Opt("--json").
class Opt {
 public:
  consteval Opt(const char* name)  // NOLINT(google-explicit-constructor)
      : index_(index_of(name)) {}
  // A setting that counts layers for a value of another setting (the 2 of --recompute blocks:2)
  // does not have an option.
  constexpr explicit Opt(Setting setting) : index_(kPlainOptCount + static_cast<int>(setting)) {}
  constexpr explicit Opt(StackPart part)
      : index_(kPlainOptCount + kSettingCount + static_cast<int>(part)) {}
  constexpr explicit Opt(Assumption assumption)
      : index_(kPlainOptCount + kSettingCount + kStackPartCount + static_cast<int>(assumption)) {}

  static constexpr Opt called(std::string_view name) { return Opt(index_of(name)); }
  // Returns the index of the option in the table of all options.
  constexpr std::size_t index() const { return static_cast<std::size_t>(index_); }
  friend constexpr bool operator==(Opt, Opt) = default;
  friend constexpr auto operator<=>(Opt, Opt) = default;

 private:
  constexpr explicit Opt(int index) : index_(index) {}
  static constexpr int index_of(std::string_view name) {
    for (int i = 0; i < kPlainOptCount; ++i) {
      if (option_table::kNames[i] == name) return i;
    }
    throw std::invalid_argument("the table has no option of this name");
  }

  int index_;
};

template <class Row>
constexpr Opt opt_of(Row row) {
  return Opt(row);
}

struct OptionRow {
  Opt opt;
  std::string name;   // "--tp"
  std::string value;  // placeholder in --help; empty for a switch
  std::string help;
  std::string_view group;
  CommandSet commands;
  bool many = false;  // the command accepts a list of values
  Repeats repeats = Repeats::kNever;
};
// Returns one row for each option.
std::span<const OptionRow> option_rows();
const OptionRow& row_of(Opt opt);
// Returns the options of a command, with the texts for this command, in the order of --help.
std::span<const OptionRow> options_of(Command command);
bool takes(Command command, Opt opt);
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
  std::optional<PlanFile> plan;   // plan of a program's request, instead of that of a file

  // Returns all arguments that are not options: the positional one, if any, and the following ones.
  std::vector<std::string> words() const {
    std::vector<std::string> all = more;
    if (!positional.empty()) all.insert(all.begin(), positional);
    return all;
  }
  bool has(Opt opt) const { return texts_[opt.index()].has_value(); }
  const std::optional<std::string>& operator[](Opt opt) const { return texts_[opt.index()]; }
  // Returns the values of an option that was set by values; null if it was set by a text.
  const std::vector<OptionValue>* values(Opt opt) const {
    const auto found = values_.find(opt);
    return found == values_.end() ? nullptr : &found->second;
  }
  void set(Opt opt, std::string text) { texts_[opt.index()] = std::move(text); }
  void set(Opt opt, std::vector<OptionValue> values);

 private:
  std::array<std::optional<std::string>, kOptCount> texts_;
  std::map<Opt, std::vector<OptionValue>> values_;
};

}  // namespace tpsim::cli
