// Runs single commands of a script: assignments, redirections, here-documents, function calls, eval
// and bash -c.
#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/leading_number.h"
#include "core/base/text.h"
#include "formats/shell_interpreter.h"

namespace tpsim {
namespace {

constexpr std::size_t kMostCommands = 20000;

// An assignment "NAME=value" or "NAME+=value" at the start of a command.
struct Assignment {
  std::string name;
  std::string_view value;
  bool appends = false;
};
std::optional<Assignment> assignment_of(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
    ++end;
  }
  const bool appends = end + 1 < text.size() && text[end] == '+' && text[end + 1] == '=';
  const bool digit = !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) != 0;
  if (end == 0 || digit || end >= text.size() || (text[end] != '=' && !appends)) {
    return std::nullopt;
  }
  return Assignment{std::string(text.substr(0, end)), text.substr(end + (appends ? 2 : 1)),
                    appends};
}

constexpr std::string_view kDeclarations[] = {"export", "local", "declare", "readonly", "typeset"};
bool is_declaration(std::string_view word) {
  return std::find(std::begin(kDeclarations), std::end(kDeclarations), word) !=
         std::end(kDeclarations);
}

// Whether the sourced file only sets up software, like the startup files of a machine or a virtual
// environment. Such a file does not affect a plan.
bool sets_up_software(std::string_view name) {
  constexpr std::string_view kNames[] = {"activate", ".bashrc",  ".bash_profile", ".profile",
                                         "profile",  "conda.sh", "setvars.sh",    "deactivate"};
  const std::string_view own = name.substr(name.find_last_of('/') + 1);
  return name.starts_with("/etc/") || name.starts_with("~") ||
         std::find(std::begin(kNames), std::end(kNames), own) != std::end(kNames);
}

}  // namespace

Status ShellInterpreter::call(const ShellCommand& command, int depth) {
  const auto [tokens, start] = functions_.at(command.words.front());
  std::map<std::string, std::vector<std::string>> outer;  // the caller's, restored below
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string name = std::to_string(i);
    const std::vector<std::string>* before = script_.variables.find(name);
    if (before != nullptr) outer[name] = *before;
    script_.variables.set(name, {command.words[i]});
  }
  Status status = elsewhere(*tokens, start, [&] { return run_body("}", true, depth); });
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    script_.variables.erase(std::to_string(i));
  }
  for (auto& [name, values] : outer) script_.variables.set(name, std::move(values));
  return status;
}

Result<std::optional<bool>> ShellInterpreter::run_command(bool active, int depth) {
  ShellCommand command;
  std::vector<std::string> raw;
  std::string target;
  const std::string* document = nullptr;
  bool document_expands = true;
  bool assigns = true;  // only assignments so far
  while (!done() && token().kind != ShellTokenKind::kSeparator) {
    const ShellToken& word = token();
    ++at_;
    if (word.kind == ShellTokenKind::kRedirect) {
      if (word.is_document) {
        document = &word.text;
        document_expands = word.is_expanded;
      } else {
        target = active ? script_.variables.expanded_text(word.text) : "";
      }
      continue;
    }
    if (!active && assigns) {
      assigns = word.is_array || assignment_of(word.text) || is_declaration(word.text);
      leave_empty(word);
    }
    if (!active) continue;
    if (word.is_array || (assigns && assignment_of(word.text))) {
      assign(word);
      continue;
    }
    const bool declares = assigns && raw.empty() && is_declaration(word.text);
    if (declares) continue;
    assigns = assigns && raw.empty() && word.text.starts_with('-');  // declare -a X=...
    raw.push_back(word.text);
  }
  if (!active) return std::optional<bool>();
  if (!raw.empty() && (raw.front() == "[" || raw.front() == "[[" || raw.front() == "test")) {
    script_.variables.forget_missing();
    return shell_condition(raw, script_.variables);
  }
  for (const std::string& word : raw) {
    for (std::string& field : script_.variables.expanded(word)) {
      if (!afford(field.size())) return std::optional<bool>();
      command.words.push_back(std::move(field));
    }
  }
  if (document != nullptr) {
    write_document(command,
                   document_expands ? script_.variables.expanded_document(*document) : *document,
                   target);
  }
  if (!target.empty()) write_printed(command, target);
  const bool pipes_on =
      !done() && token().kind == ShellTokenKind::kSeparator && token().text == "|";
  TPSIM_TRY_STATUS(issue(std::move(command), depth));
  if (!piped_.empty() && !pipes_on) {
    if (!target.empty()) script_.files[plain_path(without_marks(target))] = piped_;
    piped_.clear();
  }
  return std::optional(true);
}

void ShellInterpreter::assign(const ShellToken& word) {
  const auto assignment = assignment_of(word.text);
  if (!assignment || script_.variables.is_pinned(assignment->name)) return;
  std::vector<std::string> values;
  if (word.is_array) {
    for (const std::string& element : word.elements) {
      for (std::string& field : script_.variables.expanded(element)) {
        if (!afford(field.size())) return;
        values.push_back(std::move(field));
      }
    }
  } else {
    values.push_back(script_.variables.expanded_text(assignment->value));
    if (!afford(values.back().size())) return;
  }
  if (assignment->appends) {
    script_.variables.append(assignment->name, values, word.is_array);
  } else {
    script_.variables.set(assignment->name, std::move(values));
  }
}

void ShellInterpreter::leave_empty(const ShellToken& word) {
  const auto assignment = assignment_of(word.text);
  if (assignment && !is_in_doubt_) script_.variables.leave_empty(assignment->name);
}

void ShellInterpreter::write_document(const ShellCommand& command, std::string text,
                                      const std::string& target) {
  if (command.words.empty()) return;
  if (command.words.front() == "read" && command.words.size() > 1) {
    script_.variables.set(command.words.back(), {std::move(text)});
  } else if (!target.empty()) {
    script_.files[plain_path(without_marks(target))] = std::move(text);
  } else if (command.words.front() == "tee" && command.words.size() > 1) {
    script_.files[plain_path(without_marks(command.words.back()))] = std::move(text);
  }
}

void ShellInterpreter::write_printed(const ShellCommand& command, const std::string& target) {
  if (command.words.empty() || command.words.front() != "echo") return;
  const std::string text = echoed(command.words) + "\n";
  if (afford(text.size())) script_.files[plain_path(without_marks(target))] += text;
}

// Runs a file that the script has written, for "torchrun --no-python bash FILE". The words before
// it become part of its commands.
Status ShellInterpreter::run_written(const ShellCommand& command, std::size_t shell, int depth) {
  const std::string text = script_.files.at(plain_path(command.words[shell + 1]));
  std::vector<std::string> outer = launcher_;
  launcher_.insert(launcher_.end(), command.words.begin(),
                   command.words.begin() + static_cast<std::ptrdiff_t>(shell));
  Status status = run_text(text, depth);
  launcher_ = std::move(outer);
  return status;
}

void ShellInterpreter::shift_arguments(const ShellCommand& command) {
  const std::vector<std::string>* const all = script_.variables.find("@");
  if (all == nullptr) return;
  std::vector<std::string> left = *all;
  const auto by = command.words.size() > 1 ? parse_number<std::size_t>(command.words[1]) : 1;
  left.erase(left.begin(),
             left.begin() + static_cast<std::ptrdiff_t>(std::min(by.value_or(1), left.size())));
  for (std::size_t i = 0; i < all->size(); ++i) {
    const std::string name = std::to_string(i + 1);
    if (i < left.size()) {
      script_.variables.set(name, {left[i]});
    } else {
      script_.variables.erase(name);
    }
  }
  script_.variables.set("#", {std::to_string(left.size())});
  for (const char* name : {"@", "*"}) script_.variables.set(name, left);
}

// Runs sed with "s/NAME/value/", as scripts do to fill in a template. The pattern is literal text,
// and the first match of each line is replaced.
void ShellInterpreter::rewrite(const ShellCommand& command) {
  std::string text = std::exchange(piped_, "");
  std::vector<std::pair<std::string, std::string>> changes;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const std::string& word = command.words[i];
    const char mark = word.size() > 3 && word[0] == 's' ? word[1] : '\0';
    const bool changes_text = mark == '/' || mark == '|' || mark == '#' || mark == ',';
    const std::size_t middle = changes_text ? word.find(mark, 2) : std::string::npos;
    const std::size_t end = middle == std::string::npos ? middle : word.find(mark, middle + 1);
    if (end != std::string::npos) {
      changes.emplace_back(word.substr(2, middle - 2), word.substr(middle + 1, end - middle - 1));
    } else if (!word.starts_with('-')) {
      const auto written = script_.files.find(plain_path(word));
      if (written != script_.files.end()) {
        text = written->second;
      } else if (open_ && !unset_name(word)) {
        if (auto opened = open_(word); opened.ok()) text = *std::move(opened);
      }
    }
  }
  std::string changed;
  std::string_view rest = text;
  while (!rest.empty() && afford(rest.size() / 64)) {
    std::string line(cut_off(rest, "\n"));
    for (const auto& [from, to] : changes) {
      const std::size_t at = from.empty() ? std::string::npos : line.find(from);
      if (at != std::string::npos) line.replace(at, from.size(), to);
    }
    changed += line + "\n";
    if (changed.size() > kMostShellBytes) break;
  }
  piped_ = std::move(changed);
}

Status ShellInterpreter::read_sourced(const ShellCommand& command, int depth) {
  const std::string name = without_marks(command.words[1]);
  if (sets_up_software(name)) return Ok{};
  const auto written = script_.files.find(plain_path(name));
  Result<std::string> text = bad_input("the file does not exist", name);
  if (written != script_.files.end()) {
    text = written->second;
  } else if (open_ && !unset_name(command.words[1])) {
    text = open_(name);
  }
  if (!text.ok()) {
    script_.missing.push_back(name);
    return Ok{};
  }
  constexpr const char* kOwnName = "BASH_SOURCE";
  const std::vector<std::string>* found = script_.variables.find(kOwnName);
  const std::vector<std::string> outer = found == nullptr ? std::vector<std::string>() : *found;
  const std::string outer_file = std::exchange(file_, name);
  script_.variables.set(kOwnName, {name});
  Status status = run_text(*text, depth);
  script_.variables.set(kOwnName, outer);
  file_ = outer_file;
  return status;
}

Status ShellInterpreter::issue(ShellCommand command, int depth) {
  if (command.words.empty() || script_.commands.size() >= kMostCommands) return Ok{};
  const std::string& name = command.words.front();
  if (name == "exit") {
    if (!script_.exits) script_.exit_asks = script_.variables.missing();
    return exited_ = script_.exits = true, Ok{};
  }
  if (name == "return") return Ok{};
  if (name == "shift") return shift_arguments(command), Ok{};
  if (name == "sed") return rewrite(command), Ok{};
  if ((name == "source" || name == ".") && command.words.size() > 1) {
    return read_sourced(command, depth + 1);
  }
  if (functions_.contains(name) && depth < kDeepestCommand) return call(command, depth + 1);
  const auto shell = std::find(command.words.begin(), command.words.end(), "-c");
  const bool nested = shell != command.words.begin() && shell != command.words.end() &&
                      shell + 1 != command.words.end() && shell[-1].ends_with("sh");
  if (nested) return run_text(shell[1], depth + 1);
  for (std::size_t i = 0; i + 1 < command.words.size(); ++i) {
    const bool is_shell = matches_any(command.words[i], "bash sh /bin/bash /bin/sh");
    const bool is_written = is_shell && script_.files.contains(plain_path(command.words[i + 1]));
    if (is_written) return run_written(command, i, depth + 1);
  }
  if (name == "eval") {
    std::string text;
    for (std::size_t i = 1; i < command.words.size(); ++i) text += command.words[i] + " ";
    return run_text(text, depth + 1);
  }
  command.words.insert(command.words.begin(), launcher_.begin(), launcher_.end());
  script_.commands.push_back(std::move(command));
  return Ok{};
}

}  // namespace tpsim
