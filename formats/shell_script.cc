#include "formats/shell_script.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>

#include "core/base/text.h"
#include "formats/shell_words.h"

namespace tpsim {
namespace {

constexpr int kDeepestCommand = 16;
constexpr std::size_t kMostCommands = 20000;

using Tokens = std::vector<ShellToken>;

bool is_separator(const ShellToken& token, std::string_view text) {
  return token.kind == ShellTokenKind::kSeparator && token.text == text;
}
bool is_word(const ShellToken& token, std::string_view text) {
  return token.kind == ShellTokenKind::kWord && !token.is_array && token.text == text;
}

// "NAME=rest" and "NAME+=rest" at the start of a command.
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

// Whether "*.sh" matches, with * alone as a wildcard; of many stars none does.
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

class Interpreter {
 public:
  Interpreter(std::string file, ShellScript& script) : file_(std::move(file)), script_(script) {}

  Status run_text(std::string_view text, int depth) {
    if (depth > kDeepestCommand || !afford(text.size())) return Ok{};
    TPSIM_TRY(Tokens tokens, shell_tokens(text, file_));
    kept_.push_back(std::make_unique<Tokens>(std::move(tokens)));
    return elsewhere(*kept_.back(), 0, [&] { return run_block({}, true, depth); });
  }

 private:
  // Runs from another place, and comes back.
  template <class Work>
  Status elsewhere(const Tokens& tokens, std::size_t at, const Work& work) {
    const Tokens* const outer = std::exchange(tokens_, &tokens);
    const std::size_t outer_at = std::exchange(at_, at);
    Status status = work();
    tokens_ = outer;
    at_ = outer_at;
    return status;
  }

  // Scripts that grow by themselves end where no honest one gets to.
  bool afford(std::size_t bytes) {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20;
    spent_ += bytes + 1;
    exited_ |= spent_ > kMostBytes;
    return !exited_;
  }

  bool done() const { return at_ >= tokens_->size(); }
  const ShellToken& token() const { return (*tokens_)[at_]; }
  bool at_any(const std::vector<std::string_view>& words) const {
    if (done()) return false;
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return is_word(token(), word); });
  }
  void skip_separators() {
    while (!done() && token().kind == ShellTokenKind::kSeparator && !is_separator(token(), ";;") &&
           !is_separator(token(), ")")) {
      ++at_;
    }
  }

  // Up to a word that ends the block, which is left for the caller.
  Status run_block(const std::vector<std::string_view>& ends, bool active, int depth) {
    for (;;) {
      skip_separators();
      if (done() || at_any(ends)) return Ok{};
      const std::size_t before = at_;
      TPSIM_TRY_STATUS(run_statement(active && !exited_, depth));
      if (at_ == before) ++at_;  // a ")" or ";;" that nothing opened
    }
  }

  Status run_statement(bool active, int depth) {
    if (depth > kDeepestCommand) return ++at_, Ok{};
    if (is_word(token(), "do") || is_word(token(), "then")) return ++at_, Ok{};
    if (is_word(token(), "if")) return run_if(active, depth + 1);
    if (is_word(token(), "for")) return run_for(active, depth + 1);
    if (is_word(token(), "while") || is_word(token(), "until")) {
      return run_body("done", false, depth + 1);
    }
    if (is_word(token(), "case")) return run_case(active, depth + 1);
    if (is_word(token(), "{")) return run_body("}", active, depth + 1);
    if (is_function()) return keep_function(depth + 1);
    return run_list(active, depth);
  }

  Status run_body(std::string_view end, bool active, int depth) {
    ++at_;
    TPSIM_TRY_STATUS(run_block({end}, active, depth));
    if (!done()) ++at_;
    return Ok{};
  }

  Status run_if(bool active, int depth) {
    ++at_;
    bool taken = false;
    bool known = true;  // what depends on files or programs: no branch is known to run
    for (;;) {
      const std::optional<bool> condition = take_condition("then");
      if (!done()) ++at_;  // "then"
      const bool here = active && known && !taken && condition.value_or(false);
      TPSIM_TRY_STATUS(run_block({"elif", "else", "fi"}, here, depth));
      taken |= here;
      known &= condition.has_value();
      if (done() || !is_word(token(), "elif")) break;
      ++at_;
    }
    if (!done() && is_word(token(), "else")) {
      ++at_;
      TPSIM_TRY_STATUS(run_block({"fi"}, active && known && !taken, depth));
    }
    if (!done()) ++at_;  // "fi"
    return Ok{};
  }

  // The tests between "if" and "then", with && and ||.
  std::optional<bool> take_condition(std::string_view end) {
    std::optional<bool> result;
    std::string joint;
    bool first = true;
    bool open = false;  // "[[ a" before the "&& b ]]"
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
        // "(( a > b ))" outside of [ ]
        if (token().text == "(") return skip_to(end), std::nullopt;
        ++at_;
      }
    }
    return result;
  }
  void skip_to(std::string_view end) {
    while (!done() && !is_word(token(), end)) ++at_;
  }

  Status run_for(bool active, int depth) {
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
    if (turns) script_.variables.set(name, {values.front()});
    return run_body("done", turns, depth);
  }

  Status run_case(bool active, int depth) {
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
        TPSIM_TRY_STATUS(run_statement(here && !exited_, depth));
        if (at_ == before) ++at_;
      }
    }
    if (!done()) ++at_;
    return Ok{};
  }

  bool is_function() const {
    const auto follows = [&](std::size_t n, std::string_view text) {
      return at_ + n < tokens_->size() && is_separator((*tokens_)[at_ + n], text);
    };
    if (token().kind != ShellTokenKind::kWord) return false;
    return token().text == "function" || (follows(1, "(") && follows(2, ")"));
  }

  // Its body runs when it is called.
  Status keep_function(int depth) {
    if (is_word(token(), "function")) ++at_;
    const std::string name = done() ? "" : token().text;
    while (!done() && !is_word(token(), "{")) ++at_;
    if (done()) return Ok{};
    functions_[name] = {tokens_, at_};
    return run_body("}", false, depth);
  }

  Status call(const ShellCommand& command, int depth) {
    const auto [tokens, start] = functions_.at(command.words.front());
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      script_.variables.set(std::to_string(i), {command.words[i]});
    }
    Status status = elsewhere(*tokens, start, [&] { return run_body("}", true, depth); });
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      script_.variables.erase(std::to_string(i));
    }
    return status;
  }

  // Commands joined by && and ||: the next one runs if the one before is known to let it.
  Status run_list(bool active, int depth) {
    std::optional<bool> last = true;
    bool runs = active;
    for (;;) {
      std::optional<bool> value;
      TPSIM_TRY(value, run_command(runs, depth));
      if (runs) last = value;
      if (done() || token().kind != ShellTokenKind::kSeparator) return Ok{};
      const std::string joint = token().text;
      if (joint != "&&" && joint != "||") return Ok{};
      ++at_;
      while (!done() && is_separator(token(), "\n")) ++at_;
      runs = active && last == (joint == "&&");
      if (done()) return Ok{};
      if (!is_word(token(), "{") && token().kind == ShellTokenKind::kWord) continue;
      return run_statement(runs, depth + 1);
    }
  }

  Result<std::optional<bool>> run_command(bool active, int depth) {
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
    TPSIM_TRY_STATUS(issue(std::move(command), depth));
    return std::optional(true);
  }

  void assign(const ShellToken& word) {
    const auto assignment = assignment_of(word.text);
    if (!assignment) return;
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

  // cat <<EOF > config.json, read -r -d '' command <<EOF
  void write_document(const ShellCommand& command, std::string text, const std::string& target) {
    if (command.words.empty()) return;
    if (command.words.front() == "read" && command.words.size() > 1) {
      script_.variables.set(command.words.back(), {std::move(text)});
    } else if (!target.empty()) {
      script_.files[without_marks(target)] = std::move(text);
    } else if (command.words.front() == "tee" && command.words.size() > 1) {
      script_.files[without_marks(command.words.back())] = std::move(text);
    }
  }

  Status issue(ShellCommand command, int depth) {
    if (command.words.empty() || script_.commands.size() >= kMostCommands) return Ok{};
    const std::string& name = command.words.front();
    if (name == "exit") return exited_ = script_.exits = true, Ok{};
    if (name == "return") return Ok{};
    if (functions_.contains(name) && depth < kDeepestCommand) return call(command, depth + 1);
    const auto shell = std::find(command.words.begin(), command.words.end(), "-c");
    const bool nested = shell != command.words.begin() && shell != command.words.end() &&
                        shell + 1 != command.words.end() && shell[-1].ends_with("sh");
    if (nested) return run_text(shell[1], depth + 1);
    if (name == "eval") {
      std::string text;
      for (std::size_t i = 1; i < command.words.size(); ++i) text += command.words[i] + " ";
      return run_text(text, depth + 1);
    }
    script_.commands.push_back(std::move(command));
    return Ok{};
  }

  std::string file_;
  ShellScript& script_;
  std::vector<std::unique_ptr<Tokens>> kept_;  // functions point into them
  std::map<std::string, std::pair<const Tokens*, std::size_t>> functions_;
  const Tokens* tokens_ = nullptr;
  std::size_t at_ = 0;
  std::size_t spent_ = 0;
  bool exited_ = false;
};

}  // namespace

Result<ShellScript> read_shell_script(std::string_view text, const std::string& file,
                                      const std::map<std::string, std::string>& given) {
  ShellScript script;
  read_batch_lines(text, script);
  set_slurm_variables(script);
  for (const auto& [name, value] : given) script.variables.set(name, {value});
  TPSIM_TRY_STATUS(Interpreter(file, script).run_text(text, 0));
  return script;
}

}  // namespace tpsim
