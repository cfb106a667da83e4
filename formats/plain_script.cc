// Reads shell files of plain words: assignments, arrays and one command.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/base/text.h"
#include "formats/shell_script.h"

namespace tpsim {
namespace {

// Words that start something else than a program, or another script.
constexpr std::string_view kOfShells =
    "! . : [ [[ { } alias bash break builtin case cd command continue coproc dash declare do done "
    "elif else enable env esac eval exec exit export false fi for function getopts hash if let "
    "local mapfile module popd printf pushd pwd qsub read readarray readonly return sbatch select "
    "set sh shift shopt source srun test then time timeout times trap true type typeset ulimit "
    "umask unalias unset until wait while xargs zsh";
constexpr std::string_view kSpecial = "$`;&|<>(){}*?[]~!#";

class PlainScript {
 public:
  explicit PlainScript(std::string_view text) : text_(text) {}

  std::optional<ShellScript> read() {
    while (at_ < text_.size()) {
      if (!take_line()) return std::nullopt;
    }
    return std::move(script_);
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }
  bool at_end_of_line() const { return peek() == '\n'; }
  void skip_blanks(std::string_view blanks = " \t") {
    for (;;) {
      if (blanks.find(peek()) != std::string_view::npos && at_ < text_.size()) {
        ++at_;
      } else if (text_.substr(at_).starts_with("\\\n")) {
        at_ += 2;
      } else {
        return;
      }
    }
  }
  void skip_comment() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  // Reads a word without expansions. Nothing if the word needs bash.
  std::optional<std::string> word() {
    std::string out;
    for (; std::string_view(" \t\n").find(peek()) == std::string_view::npos; ++at_) {
      const char c = peek();
      if (c == '\'' || c == '"') {
        const std::size_t end = text_.find(c, at_ + 1);
        if (end == std::string_view::npos) return std::nullopt;
        const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
        if (c == '"' && inside.find_first_of("$`\\") != std::string_view::npos) return std::nullopt;
        out += inside;
        at_ = end;
      } else if (c == '\\' || c == '\r' ||
                 (kSpecial.find(c) != std::string_view::npos && (c != '#' || out.empty()))) {
        if (is_in_array_ && c == ')') break;
        return std::nullopt;
      } else {
        out += c;
      }
    }
    return out;
  }

  // Returns the length of "NAME=" at the position; 0 if there is none.
  std::size_t name_length() const {
    std::size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_')) {
      ++end;
    }
    const bool is_name = end > at_ && end < text_.size() && text_[end] == '=' &&
                         std::isdigit(static_cast<unsigned char>(text_[at_])) == 0;
    return is_name ? end - at_ + 1 : 0;
  }

  bool take_array(std::vector<std::string>& values) {
    is_in_array_ = true;
    for (++at_;;) {
      skip_blanks(" \t\n");
      if (at_ >= text_.size()) return false;
      if (peek() == ')') break;
      if (peek() == '#') {
        skip_comment();
        continue;
      }
      auto value = word();
      if (!value) return false;
      values.push_back(*std::move(value));
    }
    is_in_array_ = false;
    ++at_;
    return true;
  }

  void assign(const std::string& name, std::vector<std::string> values) {
    std::erase_if(script_.variables, [&](const ShellVariable& one) { return one.name == name; });
    script_.variables.push_back({name, std::move(values)});
  }

  bool take_line() {
    skip_blanks(" \t\n");
    if (at_ >= text_.size()) return true;
    if (peek() == '#') return skip_comment(), !text_.substr(at_).starts_with("#SBATCH");
    const bool exports = text_.substr(at_).starts_with("export ");
    if (exports) at_ += 7;
    ShellCommand command;
    while (!at_end_of_line()) {
      skip_blanks();
      if (peek() == '#') skip_comment();
      if (at_end_of_line()) break;
      const std::size_t length = command.words.empty() ? name_length() : 0;
      if (exports && length == 0) return false;
      if (length > 0) {
        const std::string name(text_.substr(at_, length - 1));
        at_ += length;
        std::vector<std::string> values;
        if (peek() == '(') {
          if (!take_array(values)) return false;
        } else {
          auto value = word();
          if (!value) return false;
          command.environment[name] = *value;
          values.push_back(*std::move(value));
        }
        assign(name, std::move(values));
      } else {
        auto next = word();
        if (!next) return false;
        command.words.push_back(*std::move(next));
      }
      skip_blanks();
    }
    if (command.words.empty()) return true;
    const bool is_of_shell =
        matches_any(command.words.front(), kOfShells) || command.words.front().ends_with(".sh");
    if (is_of_shell || !script_.commands.empty()) return false;
    script_.commands.push_back(std::move(command));
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool is_in_array_ = false;
  ShellScript script_;
};

}  // namespace

std::optional<ShellScript> read_plain_script(std::string_view text) {
  if (text.starts_with("#SBATCH") || text.find("\n#SBATCH") != std::string_view::npos) return {};
  return PlainScript(text).read();
}

Result<ShellScript> read_shell_script(const LaunchFile& file, const ShellInputs& inputs) {
  auto plain = read_plain_script(file.text);
  if (!plain) return run_script(file, inputs);
  for (const auto& [name, value] : inputs.given) {
    for (ShellVariable& one : plain->variables) {
      if (one.name == name) one.values = {value};
    }
  }
  return *std::move(plain);
}

std::string plain_path(std::string_view path) {
  std::string plain = std::filesystem::path(path).lexically_normal().generic_string();
  if (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return plain;
}

}  // namespace tpsim
