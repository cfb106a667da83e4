#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "cli/commands/manual.h"
#include "cli/commands/program.h"
#include "core/base/text.h"

namespace tpsim::cli {
namespace {

// Returns the placeholder of an option's value in --help: "none|full" for a single value,
// "none,full" if the command accepts a list.
std::string placeholder(const OptionRow& row) {
  constexpr std::size_t kWidth = 96;
  std::string text = row.value;
  if (row.many && text == "N") return "N,N-N";
  if (row.many) std::replace(text.begin(), text.end(), '|', ',');
  const std::size_t begin = std::string_view(row.name).size() + 3;
  if (begin + text.size() <= kWidth) return text;
  const std::size_t cut = text.find_last_of("|,", kWidth - begin);  // goes on in a second line
  return text.substr(0, cut + 1) + "\n      " + text.substr(cut + 1);
}

// Converts repeated values, which CLI11 joins with line breaks, to a comma-separated list.
std::string as_list(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ',');
  return text;
}

void add_options(CLI::App& app, Command command, Arguments& arguments) {
  for (const OptionRow& row : options_of(command)) {
    if (row.value.empty()) {
      app.add_flag_callback(
             row.name, [&] { arguments.set(row.opt, ""); }, row.help)
          ->group(std::string(row.group));
    } else {
      app.add_option_function<std::string>(
             row.name,
             [&](const std::string& text) {
               arguments.set(row.opt, row.repeats == Repeats::kEach ? text : as_list(text));
             },
             row.help)
          ->type_name(placeholder(row))
          ->group(std::string(row.group))
          ->multi_option_policy(row.repeats >= Repeats::kJoins
                                    ? CLI::MultiOptionPolicy::Join
                                    : CLI::MultiOptionPolicy::TakeLast);  // see check_once()
    }
  }
}

std::string examples_text(const CommandRow& row) {
  std::string text = "Examples:\n  ";
  for (const char* c = row.examples; *c != '\0'; ++c) {
    text += *c;
    if (*c == '\n') text += "  ";
  }
  return text;
}

CLI::App* add_command(CLI::App& app, const CommandRow& row, Arguments& arguments) {
  CLI::App* sub = app.add_subcommand(row.name, row.summary);
  if (row.positional != nullptr) {
    sub->add_option(row.positional, arguments.positional, row.positional_help)->type_name("");
  }
  if (row.more != nullptr) {
    sub->add_option(row.more, arguments.more, row.more_help)->type_name("")->expected(0, -1);
  }
  add_options(*sub, row.command, arguments);
  sub->footer(examples_text(row));
  sub->allow_extras();  // so that check_extras() can report the likely meaning
  sub->set_help_flag("-h,--help", "show this help");
  sub->get_formatter()->column_width(38);
  return sub;
}

// Returns the option of this command that starts with `text`, or else the most similar one.
std::string nearest_option(Command command, std::string_view text) {
  const std::vector<std::string_view> names = texts_of(options_of(command), &OptionRow::name);
  const auto begun = [&](std::string_view name) { return name.starts_with(text); };
  if (text.size() > 3 && std::count_if(names.begin(), names.end(), begun) == 1) {
    return std::string(*std::find_if(names.begin(), names.end(), begun));
  }
  return nearest(text, names);
}

const OptionRow* find_option(std::string_view name) {
  for (const OptionRow& row : option_rows()) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

// Returns the commands that accept the option, for the error of a command that does not.
std::string takers(const OptionRow& row) {
  std::vector<std::string_view> names;
  for (const CommandRow& command : command_rows()) {
    if (takes(command.command, row.opt)) names.emplace_back(command.name);
  }
  return names.size() < 2
             ? fmt::format("{}", fmt::join(names, ""))
             : fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "),
                           names.back());
}

Error unexpected(Command command, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  const char* where = row_of(command).name;
  const std::string help = fmt::format("see tpsim {} --help", where);
  if (!argument.starts_with("-")) {
    return bad_input(fmt::format("unexpected argument '{}'", argument), where, help);
  }
  if (const OptionRow* row = find_option(name)) {
    const bool sized = row->opt == "--gpus" && takes(command, opt_of(Setting::kDp));
    return bad_input(fmt::format("does not accept {}", name), where,
                     sized ? "give --dp instead: the number of GPUs is tp x pp x dp x cp"
                           : fmt::format("it is an option of {}", takers(*row)));
  }
  if (const std::string_view instead = written_instead(name); !instead.empty()) {
    return bad_input(fmt::format("unknown option '{}'", name), where, std::string(instead));
  }
  return bad_input(fmt::format("unknown option '{}'", name), where,
                   meant(nearest_option(command, name), help));
}

// Error for an argument before the command, as in `tpsim --model x plan`.
Error unexpected_before_command(const std::string& argument) {
  const bool known = find_option(argument.substr(0, argument.find('='))) != nullptr;
  return bad_input(known ? fmt::format("{} must follow the command", argument)
                         : fmt::format("unexpected argument '{}'", argument),
                   "", "write tpsim COMMAND [OPTIONS]; see tpsim --help");
}

// Checks that the first argument names a command. The error for `tpsim plna` suggests the nearest
// one.
Status check_command(int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return Ok{};
  std::vector<std::string_view> names;
  for (const CommandRow& row : command_rows()) names.emplace_back(row.name);
  names.emplace_back("help");
  TPSIM_TRY_STATUS(choose("command", argv[1], names));
  return Ok{};
}

std::string command_line_text(int argc, const char* const* argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) text += (i > 0 ? " " : "") + shell_quoted(argv[i]);
  return text;
}

// Returns an error for a repeated option, since the intended value is unclear. `import` accepts
// repetitions of some options.
Status check_once(Command which, const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() < 2 || option->get_positional()) continue;
    const OptionRow* const row = find_option(option->get_name());
    const bool repeats = which == Command::kImport && row != nullptr;
    if (repeats && row->repeats != Repeats::kNever) continue;
    return bad_input(fmt::format("is given {} times", option->count()), option->get_name(),
                     "give it once");
  }
  return Ok{};
}

struct Parser {
  CLI::App app{
      "tpsim plans the training of large language models over many GPUs and predicts time,\n"
      "memory and speed of each layout.",
      "tpsim"};
  Arguments arguments;
  std::vector<CLI::App*> commands;

  Parser() {
    app.set_version_flag("-V,--version", version_text(), "show version and built-in parts");
    for (const CommandRow& row : command_rows()) {
      commands.push_back(add_command(app, row, arguments));
    }
    app.require_subcommand(0, 1);
    app.set_help_flag("-h,--help", "show this help");
    app.allow_extras();
    app.footer(
        "Example:\n  tpsim plan --model bloom-176b --gpus 384\n\n"
        "tpsim help COMMAND shows the options and examples of a command. tpsim help man prints "
        "the\n"
        "manual page of all commands. The catalogue is part of the program; the environment "
        "variable\n"
        "TPSIM_DATA names another folder. tpsim --version shows the catalogue in use.\n"
        "A plan, log or launch file named - is standard input.");
  }

  Status parse(int argc, const char* const* argv) {
    app.parse(argc, argv);
    if (app.remaining_size() > 0) return unexpected_before_command(app.remaining().front());
    for (const CommandRow& row : command_rows()) {
      const CLI::App& sub = *commands[static_cast<std::size_t>(row.command)];
      if (!sub.parsed()) continue;
      arguments.command = row.command;
      if (sub.remaining_size() > 0) return unexpected(row.command, sub.remaining().front());
      return check_once(row.command, sub);
    }
    return Ok{};
  }
};

CommandLine help_of(const CLI::App& app) {
  std::string text = app.help();
  if (!text.ends_with('\n')) text += '\n';
  return Answer{.text = std::move(text)};
}

// Rewrites arguments before parsing: `tpsim help plan` to `tpsim plan --help`, and option names of
// other programs to tpsim's.
std::vector<std::string> settled_words(int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (argc > 1 && words[1] == "help") {
    if (argc > 2) words = {words[0], words[2], "--help"};
    if (argc == 2) words = {words[0], "--help"};
    return words;
  }
  const CommandRow* command = nullptr;
  for (const CommandRow& row : command_rows()) {
    if (argc > 1 && words[1] == row.name) command = &row;
  }
  for (std::size_t i = 2; i < words.size() && command != nullptr; ++i) {
    const std::size_t equals = words[i].find('=');
    const OptionRow* option = option_called(words[i].substr(0, equals));
    if (option == nullptr || !takes(command->command, option->opt)) continue;
    words[i] = option->name + (equals == std::string::npos ? "" : words[i].substr(equals));
  }
  return words;
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, const char* const* argv) {
  TPSIM_TRY_STATUS(check_command(argc, argv));
  const std::vector<std::string> words = settled_words(argc, argv);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  if (words.size() > 1 && words[1] == "man" && words.back() == "--help") {
    return CommandLine(Answer{.text = manual_page(), .is_prose = false});
  }
  TPSIM_TRY_STATUS(check_command(static_cast<int>(pointers.size()), pointers.data()));
  Parser parser;
  try {
    TPSIM_TRY_STATUS(parser.parse(static_cast<int>(pointers.size()), pointers.data()));
  } catch (const CLI::CallForVersion&) {
    return CommandLine(Answer{.text = version_text()});
  } catch (const CLI::CallForHelp&) {
    return help_of(parser.app);
  } catch (const CLI::ArgumentMismatch&) {
    // An option takes any following word, so only the last option can lack its value.
    return bad_input("needs a value", argv[argc - 1]);
  } catch (const CLI::ParseError& error) {
    return bad_input(error.what(), "", "see tpsim --help");
  }
  if (parser.app.get_subcommands().empty()) return help_of(parser.app);
  parser.arguments.program = shell_quoted(argv[0]);
  parser.arguments.command_line = command_line_text(argc, argv);
  return CommandLine(std::move(parser.arguments));
}

}  // namespace tpsim::cli
