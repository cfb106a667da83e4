// Interprets a script from top to bottom: blocks, conditions, loops, functions and command lists.
#include "formats/shell_interpreter.h"

#include <algorithm>

#include "core/base/leading_number.h"
#include "core/base/text.h"

namespace tpsim {
namespace {

bool is_separator(const ShellToken& token, std::string_view text) {
  return token.kind == ShellTokenKind::kSeparator && token.text == text;
}
bool is_word(const ShellToken& token, std::string_view text) {
  return token.kind == ShellTokenKind::kWord && !token.is_array && token.text == text;
}

// Whether the text matches a pattern such as "*.sh". The only wildcard is *, and at most three are
// supported.
bool matches_glob(std::string_view pattern, std::string_view text) {
  constexpr std::ptrdiff_t kMostStars = 3;
  if (std::count(pattern.begin(), pattern.end(), '*') > kMostStars) return false;
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (matches_glob(pattern, text.substr(i))) return true;
    if (pattern.empty()) return true;
  }
  return false;
}

// Sets the variables "$1", "$@" and "$#" from the arguments in `given`.
void set_arguments(const std::map<std::string, std::string>& given, ShellVariables& variables) {
  std::vector<std::string> arguments;
  const auto all = given.find(std::string(kArguments));
  if (all != given.end()) arguments = words_in(all->second);
  for (const auto& [name, value] : given) {
    const auto number = parse_number<std::size_t>(name);
    constexpr std::size_t kMost = 1000;
    if (!number || *number < 1 || *number > kMost) continue;
    if (arguments.size() < *number) arguments.resize(*number);
    arguments[*number - 1] = value;
  }
  if (arguments.empty()) return;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    variables.set(std::to_string(i + 1), {arguments[i]});
  }
  variables.set("#", {std::to_string(arguments.size())});
  for (const char* name : {"@", "*"}) variables.set(name, arguments);
}

}  // namespace

Status ShellInterpreter::run_text(std::string_view text, int depth) {
  if (depth > kDeepestCommand || !afford(text.size())) return Ok{};
  TPSIM_TRY(ShellTokens tokens, shell_tokens(text, file_));
  kept_.push_back(std::make_unique<ShellTokens>(std::move(tokens)));
  return elsewhere(*kept_.back(), 0, [&] { return run_block({}, true, depth); });
}

bool ShellInterpreter::afford(std::size_t bytes) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  spent_ += bytes + 1;
  exited_ |= spent_ > kMostBytes;
  return !exited_;
}

bool ShellInterpreter::at_any(const std::vector<std::string_view>& words) const {
  if (done()) return false;
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return is_word(token(), word); });
}

void ShellInterpreter::skip_separators() {
  while (!done() && token().kind == ShellTokenKind::kSeparator && !is_separator(token(), ";;") &&
         !is_separator(token(), ")")) {
    ++at_;
  }
}

Status ShellInterpreter::run_block(const std::vector<std::string_view>& ends, bool active,
                                   int depth) {
  for (;;) {
    skip_separators();
    if (done() || at_any(ends)) return Ok{};
    const std::size_t before = at_;
    TPSIM_TRY_STATUS(run_statement(active && !exited_, depth));
    if (at_ == before) ++at_;  // an unmatched ")" or ";;"
  }
}

Status ShellInterpreter::run_statement(bool active, int depth) {
  if (depth > kDeepestCommand) return ++at_, Ok{};
  if (is_word(token(), "do") || is_word(token(), "then")) return ++at_, Ok{};
  if (is_word(token(), "if")) return run_if(active, depth + 1);
  if (is_word(token(), "for")) return run_for(active, depth + 1);
  if (is_word(token(), "while") || is_word(token(), "until")) {
    return in_doubt(active, [&] { return run_body("done", false, depth + 1); });
  }
  if (is_word(token(), "case")) return run_case(active, depth + 1);
  if (is_word(token(), "{")) return run_body("}", active, depth + 1);
  if (is_function()) return keep_function(depth + 1);
  return run_list(active, depth);
}

Status ShellInterpreter::run_body(std::string_view end, bool active, int depth) {
  ++at_;
  TPSIM_TRY_STATUS(run_block({end}, active, depth));
  if (!done()) ++at_;
  return Ok{};
}

Status ShellInterpreter::run_if(bool active, int depth) {
  ++at_;
  bool taken = false;
  bool known = true;   // false after an unknown condition: run no later branch
  bool doubt = false;  // another environment may take another branch
  for (;;) {
    const int before = script_.variables.taken_from_outside();
    const std::optional<bool> condition = take_condition("then");
    doubt |= !condition || script_.variables.taken_from_outside() > before;
    if (!done()) ++at_;  // "then"
    const bool here = active && known && !taken && condition.value_or(false);
    TPSIM_TRY_STATUS(in_doubt(active && doubt, [&] {
      return run_block({"elif", "else", "fi"}, here, depth);
    }));
    taken |= here;
    known &= condition.has_value();
    if (done() || !is_word(token(), "elif")) break;
    ++at_;
  }
  if (!done() && is_word(token(), "else")) {
    ++at_;
    const bool here = active && known && !taken;
    TPSIM_TRY_STATUS(in_doubt(active && doubt, [&] { return run_block({"fi"}, here, depth); }));
  }
  if (!done()) ++at_;  // "fi"
  return Ok{};
}

std::optional<bool> ShellInterpreter::take_condition(std::string_view end) {
  std::optional<bool> result;
  std::string joint;
  bool first = true;
  bool open = false;  // after "[[ a", before "&& b ]]"
  script_.variables.forget_missing();
  while (!done() && !is_word(token(), end)) {
    std::vector<std::string> words;
    if (open) words.emplace_back("[[");
    while (!done() && token().kind != ShellTokenKind::kSeparator && !is_word(token(), end)) {
      if (token().kind == ShellTokenKind::kWord) words.push_back(token().text);
      ++at_;
    }
    if (words.size() > (open ? 1U : 0U)) {
      open = words.front() == "[[" && words.back() != "]]";
      const std::optional<bool> value = shell_condition(words, script_.variables);
      if (first) {
        result = value;
      } else if (joint == "&&") {
        result = shell_and(result, value);
      } else if (joint == "||") {
        result = shell_or(result, value);
      }
      first = false;
    }
    if (!done() && token().kind == ShellTokenKind::kSeparator) {
      if (token().text == "&&" || token().text == "||") joint = token().text;
      // The value of an arithmetic condition "(( a > b ))" is unknown: the rest of the condition is
      // skipped.
      if (token().text == "(") return skip_to(end), std::nullopt;
      ++at_;
    }
  }
  return result;
}

void ShellInterpreter::skip_to(std::string_view end) {
  while (!done() && !is_word(token(), end)) ++at_;
}

Status ShellInterpreter::run_for(bool active, int depth) {
  ++at_;
  std::vector<std::string> values;
  std::string name;
  if (!done() && token().kind == ShellTokenKind::kWord) name = token().text;
  while (!done() && !is_word(token(), "do")) {
    if (is_word(token(), "in")) {
      for (++at_; !done() && token().kind == ShellTokenKind::kWord; ++at_) {
        const auto fields = script_.variables.expanded(token().text);
        values.insert(values.end(), fields.begin(), fields.end());
      }
    } else {
      ++at_;
    }
  }
  const bool turns = active && !values.empty();
  if (turns && !script_.variables.is_pinned(name)) {
    script_.variables.set(name, {values.front()});
  }
  return run_body("done", turns, depth);
}

Status ShellInterpreter::run_case(bool active, int depth) {
  ++at_;
  std::string value;
  if (!done() && token().kind == ShellTokenKind::kWord) {
    value = script_.variables.expanded_text(token().text);
  }
  while (!done() && !is_word(token(), "in")) ++at_;
  if (!done()) ++at_;
  bool taken = false;
  for (;;) {
    while (!done() && token().kind == ShellTokenKind::kSeparator) ++at_;
    if (done() || is_word(token(), "esac")) break;
    bool matches = false;
    while (!done() && !is_separator(token(), ")")) {
      if (token().kind == ShellTokenKind::kWord) {
        matches |= matches_glob(script_.variables.expanded_text(token().text), value);
      }
      ++at_;
    }
    if (!done()) ++at_;
    const bool here = active && !taken && matches;
    taken |= here;
    while (!done() && !is_separator(token(), ";;") && !is_word(token(), "esac")) {
      skip_separators();
      if (done() || is_separator(token(), ";;") || is_word(token(), "esac")) break;
      const std::size_t before = at_;
      TPSIM_TRY_STATUS(in_doubt(active && unset_name(value).has_value(),
                                [&] { return run_statement(here && !exited_, depth); }));
      if (at_ == before) ++at_;
    }
  }
  if (!done()) ++at_;
  return Ok{};
}

bool ShellInterpreter::is_function() const {
  const auto follows = [&](std::size_t n, std::string_view text) {
    return at_ + n < tokens_->size() && is_separator((*tokens_)[at_ + n], text);
  };
  if (token().kind != ShellTokenKind::kWord) return false;
  return token().text == "function" || (follows(1, "(") && follows(2, ")"));
}

Status ShellInterpreter::keep_function(int depth) {
  if (is_word(token(), "function")) ++at_;
  const std::string name = done() ? "" : token().text;
  while (!done() && !is_word(token(), "{")) ++at_;
  if (done()) return Ok{};
  functions_[name] = {tokens_, at_};
  return in_doubt(true, [&] { return run_body("}", false, depth); });
}

Status ShellInterpreter::run_list(bool active, int depth) {
  std::optional<bool> last = true;
  bool runs = active;
  bool doubt = false;  // in another environment the command may run or not
  for (;;) {
    const int before = script_.variables.taken_from_outside();
    TPSIM_TRY_STATUS(in_doubt(active && doubt, [&]() -> Status {
      std::optional<bool> value;
      TPSIM_TRY(value, run_command(runs, depth));
      if (runs) last = value;
      return Ok{};
    }));
    doubt |= !last || script_.variables.taken_from_outside() > before;
    if (done() || token().kind != ShellTokenKind::kSeparator) return Ok{};
    const std::string joint = token().text;
    if (joint != "&&" && joint != "||") return Ok{};
    ++at_;
    while (!done() && is_separator(token(), "\n")) ++at_;
    runs = active && last == (joint == "&&");
    if (done()) return Ok{};
    if (!is_word(token(), "{") && token().kind == ShellTokenKind::kWord) continue;
    return in_doubt(active && doubt, [&] { return run_statement(runs, depth + 1); });
  }
}

Result<ShellScript> read_shell_script(std::string_view text, const std::string& file,
                                      const std::map<std::string, std::string>& given,
                                      const ShellFileReader& open) {
  ShellScript script;
  read_batch_lines(text, script);
  set_slurm_variables(script);
  // The script is assumed to run in its own folder.
  const std::string own = file.substr(file.find_last_of('/') + 1);
  for (const char* name : {"0", "BASH_SOURCE"}) script.variables.set(name, {own});
  for (const char* name : {"PWD", "SLURM_SUBMIT_DIR"}) script.variables.set(name, {"."});
  for (const auto& [name, value] : given) {
    if (name != kArguments) script.variables.pin(name, value);
  }
  set_arguments(given, script.variables);
  TPSIM_TRY_STATUS(ShellInterpreter(file, script, open).run_text(text, 0));
  return script;
}

}  // namespace tpsim
