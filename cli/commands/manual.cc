#include "cli/commands/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "core/base/shipped_data.h"
#include "core/base/text.h"
#include "core/scenario/catalogue.h"
#include "frameworks/launch/launch_files.h"
#include "generated/tpsim_config.h"

namespace tpsim::cli {
namespace {

std::string spaced(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// Returns the fixed words that an option accepts; empty if any text is valid.
std::vector<std::string> words_of(const OptionRow& row) {
  std::vector<std::string> words;
  std::string_view rest = row.value;
  if (row.opt == "--to" || row.opt == "--from") {
    return {kEnumNames<LaunchStack>.begin(), kEnumNames<LaunchStack>.end()};
  }
  if (rest.find('|') == std::string_view::npos) return words;
  while (!rest.empty()) {
    const std::string_view choice = cut_off(rest, "|");
    const std::string_view word = choice.substr(0, choice.find('['));
    const bool is_word =
        std::none_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (is_word) words.emplace_back(word);  // "N" and "FILE.svg" are placeholders
  }
  return words;
}

std::vector<std::string> words_of(const CommandRow& row) {
  switch (row.command) {
    case Command::kList: return {"models", "clusters", "profiles", "stacks", "assumptions"};
    case Command::kShow:
      return {"model", "cluster", "profile", "stack", "schema", "formats", "families"};
    case Command::kCompletion: return {"bash", "zsh", "fish"};
    default: return {};
  }
}

std::string option_names(Command command) {
  std::vector<std::string> names = {"--help"};
  for (const OptionRow& row : options_of(command)) names.push_back(row.name);
  return spaced(names);
}

std::string command_names() {
  std::vector<std::string> names;
  for (const CommandRow& row : command_rows()) names.emplace_back(row.name);
  names.emplace_back("help");
  return spaced(names);
}

// Returns the bash completion script. Suggests values after an option that has fixed values.
// Otherwise suggests options and commands, or files if nothing matches.
std::string bash_script() {
  std::string values;
  for (const OptionRow& row : option_rows()) {
    const std::vector<std::string> words = words_of(row);
    if (!words.empty()) {
      values += fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n",
                            row.name, spaced(words));
    }
  }
  std::string commands;
  for (const CommandRow& row : command_rows()) {
    commands += fmt::format("    {}) words=\"{}\"; options=\"{}\" ;;\n", row.name,
                            spaced(words_of(row)), option_names(row.command));
  }
  return fmt::format(
      R"(# Completion of tpsim in bash: source this file, or save it for bash-completion.
_tpsim() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words= options=
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{}" -- "$word"))
    return
  fi
  case $before in
{}  esac
  case ${{COMP_WORDS[1]}} in
{}    help) words="{}" ;;
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _tpsim tpsim
)",
      command_names(), values, commands, command_names());
}

std::string zsh_quoted(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\'') quoted += c == '\'' ? "'\\'" : "\\";
    quoted += c;
  }
  return quoted;
}

std::string zsh_script() {
  std::string cases;
  std::string names;
  for (const CommandRow& row : command_rows()) {
    names += fmt::format("    '{}:{}'\n", row.name, zsh_quoted(row.summary));
    cases += fmt::format("    {})\n      _arguments \\\n", row.name);
    for (const OptionRow& option : options_of(row.command)) {
      const std::string value =
          option.value.empty()
              ? ""
              : fmt::format(
                    ":{}:{}", zsh_quoted(option.value),
                    words_of(option).empty() ? "_files" : "(" + spaced(words_of(option)) + ")");
      cases += fmt::format("        '{}[{}]{}' \\\n", option.name, zsh_quoted(option.help), value);
    }
    const std::vector<std::string> words = words_of(row);
    cases += fmt::format("        '*:file:{}' ;;\n",
                         words.empty() ? "_files" : "(" + spaced(words) + ")");
  }
  return fmt::format(R"(#compdef tpsim
# Completion of tpsim in zsh: save this file as _tpsim in a folder of $fpath.
_tpsim() {{
  local -a commands
  commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
_tpsim "$@"
)",
                     names, cases);
}

std::string fish_script() {
  std::string text = "# Completion of tpsim in fish.\n";
  for (const CommandRow& row : command_rows()) {
    text += fmt::format("complete -c tpsim -n __fish_use_subcommand -a {} -d {}\n", row.name,
                        shell_quoted(row.summary));
  }
  for (const CommandRow& row : command_rows()) {
    const std::string seen = fmt::format("'__fish_seen_subcommand_from {}'", row.name);
    const std::vector<std::string> words = words_of(row);
    if (!words.empty()) {
      text += fmt::format("complete -c tpsim -n {} -a {}\n", seen, shell_quoted(spaced(words)));
    }
    for (const OptionRow& option : options_of(row.command)) {
      const bool is_long = option.name.starts_with("--");
      text += fmt::format(
          "complete -c tpsim -n {} {} {}{}{} -d {}\n", seen, is_long ? "-l" : "-s",
          option.name.substr(is_long ? 2 : 1), option.value.empty() ? "" : " -r",
          words_of(option).empty() ? "" : " -fa " + shell_quoted(spaced(words_of(option))),
          shell_quoted(option.help));
    }
  }
  return text;
}

// Escapes characters that roff interprets: '-', '\\', and '.' at the start of a line.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '.' && (escaped.empty() || escaped.back() == '\n')) {
      escaped += "\\&.";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

Result<std::string> completion_script(const std::string& shell) {
  constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};
  if (shell.empty())
    return bad_input("the name of the shell is missing", "completion",
                     "choose from bash, zsh and fish");
  TPSIM_TRY(const std::size_t index, choose("shell", shell, kShells));
  return index == 0 ? bash_script() : index == 1 ? zsh_script() : fish_script();
}

std::string manual_page() {
  std::string text = fmt::format(
      ".TH TPSIM 1 \"\" \"tpsim {}\"\n.SH NAME\n"
      "tpsim \\- plans the training of large language models\n.SH SYNOPSIS\n"
      ".B tpsim\n.I COMMAND\n[OPTIONS]\n.SH COMMANDS\n",
      kVersion);
  for (const CommandRow& row : command_rows()) {
    text += fmt::format(".SS {}\n{}.\n", row.name, roff(row.summary));
    if (row.positional != nullptr) {
      text += fmt::format(".TP\n.I {}\n{}\n", roff(row.positional), roff(row.positional_help));
    }
    for (const OptionRow& option : options_of(row.command)) {
      text += fmt::format(".TP\n\\fB{}\\fR {}\n{}\n", roff(option.name), roff(option.value),
                          roff(option.help));
    }
    text += fmt::format(".PP\nExamples:\n.nf\n{}\n.fi\n", roff(row.examples));
  }
  return text +
         ".SH ENVIRONMENT\n.TP\n.B TPSIM_DATA\nanother catalogue of models, clusters, profiles and "
         "stacks\n.TP\n.B NO_COLOR\nno colors\n.SH EXIT STATUS\n0 done, 2 bad arguments or file, "
         "3 "
         "no plan fits, 4 something is missing on this machine, 1 a bug.\n";
}

Result<Answer> run_completion(const Arguments& arguments, const Terminal&) {
  Answer answer{.is_prose = false};
  TPSIM_TRY(answer.text, completion_script(arguments.positional));
  return answer;
}

std::string version_text() {
  std::string text = fmt::format("tpsim {} ({}, {})\n", kVersion, kBuildType, kCompiler);
  for (const BuiltFeature& feature : kBuiltFeatures) {
    text += fmt::format("  {:<7} {}\n", fmt::format("{}:", feature.name), feature.state);
  }
  const auto catalogue = Catalogue::open();
  if (!catalogue.ok()) return text;
  const bool inside = is_shipped(catalogue->directory());
  text += fmt::format("  {:<7} {}\n",
                      "data:", inside ? "part of the program" : catalogue->directory().string());
  return text;
}

}  // namespace tpsim::cli
