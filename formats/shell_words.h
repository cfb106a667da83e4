// Words of bash: tokenization of a script, and expansion.
//
// Expansion supports variables, arrays, ${X:-y} and similar forms, arithmetic, and quotes. Values
// from outside the script are unknown: arguments, environment, output of programs. An unknown value
// expands to kUnset and its name, so that messages can name it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

inline constexpr char kUnset = '\x01';  // does not occur in ordinary text
// Returns the name of the first unknown value: "$MBS", or empty for a program's output. Nothing if
// the word is fully known.
std::optional<std::string> unset_name(std::string_view word);
// Returns the word without marks, as the script has it: "$MBS", "runs/$NAME".
std::string without_marks(std::string_view word);

enum class ShellTokenKind { kWord, kSeparator, kRedirect };
struct ShellToken {
  ShellTokenKind kind = ShellTokenKind::kWord;
  // With quotes. A separator is "\n", ";", "&&", "||", "|", "&", ";;", "(" or ")".
  std::string text = {};
  int line = 0;
  bool is_array = false;                   // NAME=( ... ): text is "NAME=" or "NAME+="
  std::vector<std::string> elements = {};  // of an array, with quotes
  // For a redirection: its target, or the text of a here-document and whether it is expanded.
  bool is_document = false;
  bool is_expanded = true;
};

// An unclosed quote, array or here-document is an error with its line.
Result<std::vector<ShellToken>> shell_tokens(std::string_view text, const std::string& file);

class ShellVariables {
 public:
  void set(const std::string& name, std::vector<std::string> values);
  // Sets a variable that the script's assignments cannot change.
  void pin(const std::string& name, std::string value);
  bool is_pinned(const std::string& name) const { return pinned_.contains(name); }
  void append(const std::string& name, const std::vector<std::string>& values, bool as_array);
  void erase(const std::string& name);
  // Makes a variable empty, as in a shell, until it is set. Used if only an untaken branch sets it.
  void leave_empty(const std::string& name);
  // Returns null if the variable is not set.
  const std::vector<std::string>* find(const std::string& name) const;
  // Returns the variables that no word has used, in the order of their first assignment.
  std::vector<std::string> unused() const;
  const std::vector<std::string>& names() const { return order_; }  // all, in this order

  // Returns the fields of a word. Bytes beyond `kMostShellBytes` are cut.
  std::vector<std::string> expanded(std::string_view word);
  // Returns one text, as between double quotes.
  std::string expanded_text(std::string_view word);
  // Expands a here-document, where quotes are plain characters.
  std::string expanded_document(std::string_view text);
  // Counts tests that used a value from outside the script.
  void take_from_outside() { ++taken_from_outside_; }
  int taken_from_outside() const { return taken_from_outside_; }
  // Names of unset variables that were read since the last forget_missing().
  void note_missing(std::string name) { missing_.insert(std::move(name)); }
  void forget_missing() { missing_.clear(); }
  const std::set<std::string>& missing() const { return missing_; }
  // Evaluates "TP * PP + 1". Nothing if a name in it is unknown.
  std::optional<long long> arithmetic(std::string_view text);

 private:
  struct Expansion;
  void expand_dollar(std::string_view word, std::size_t& at, bool quoted, Expansion& out);
  void expand_braces(std::string_view inside, bool quoted, Expansion& out);
  // Returns the output of a command inside $() if it names the script's own folder or files: pwd,
  // dirname, basename, realpath, readlink, and cd before pwd. Returns nothing for other commands.
  std::optional<std::string> printed_path(std::string_view inside);
  void put_backquoted(std::string_view word, std::size_t& at, bool quoted, Expansion& out);
  void put_variable(const std::string& name, bool quoted, Expansion& out);
  void expand_quoted(std::string_view word, std::size_t& at, Expansion& out);
  void expand_into(std::string_view word, bool quoted, Expansion& out);

  struct Entry {
    std::vector<std::string> values;
    bool used = false;
  };
  std::map<std::string, Entry> entries_;
  std::vector<std::string> order_;
  std::set<std::string> empty_;
  std::set<std::string> pinned_;
  std::set<std::string> missing_;
  int taken_from_outside_ = 0;
  int depth_ = 0;
};

// Normalizes a path, so that every spelling gives the same name: "./conf/../ds.json" gives
// "ds.json". "." is the folder itself.
std::string plain_path(std::string_view path);

inline constexpr std::size_t kMostShellBytes = std::size_t{1} << 20;

// Evaluates [ ... ], [[ ... ]] or test, on strings and numbers. The words include quotes, "[" and
// "]". Nothing if the result depends on files or programs.
std::optional<bool> shell_condition(const std::vector<std::string>& all, ShellVariables& variables);
// Logic of three values: true, false, unknown.
std::optional<bool> shell_and(std::optional<bool> a, std::optional<bool> b);
std::optional<bool> shell_or(std::optional<bool> a, std::optional<bool> b);

}  // namespace tpsim
