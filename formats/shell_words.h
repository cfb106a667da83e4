// Splits a bash script into tokens and expands words.
//
// Expansion supports variables, arrays, ${X:-y} and similar forms, arithmetic, and quotes.
// Arguments, environment variables and outputs of programs are unknown. An unknown value expands to
// kUnset followed by its name, so that messages can state it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

inline constexpr char kUnset = '\x01';  // marks an unknown value; never occurs in text
// Returns the name of the first unknown value in the word: "$MBS", or an empty string for the
// output of a program. Nothing if the word is fully known.
std::optional<std::string> unset_name(std::string_view word);
// Returns the word with kUnset removed, which is the script's text: "$MBS", "runs/$NAME".
std::string without_marks(std::string_view word);

enum class ShellTokenKind { kWord, kSeparator, kRedirect };
struct ShellToken {
  ShellTokenKind kind = ShellTokenKind::kWord;
  // The text with quotes. The text of a separator is a line break or one of ; && || | & ;; ( and ).
  std::string text = {};
  int line = 0;
  bool is_array = false;                   // NAME=( ... ): text is "NAME=" or "NAME+="
  std::vector<std::string> elements = {};  // elements of the array, with quotes
  // For a redirection, `text` is the target file. If `is_document`, `text` is the content of a
  // here-document, and `is_expanded` means that its variables are expanded.
  bool is_document = false;
  bool is_expanded = true;
};

// Splits a script into tokens. An unclosed quote, array or here-document is an error with its line.
Result<std::vector<ShellToken>> shell_tokens(std::string_view text, const std::string& file);

class ShellVariables {
 public:
  void set(const std::string& name, std::vector<std::string> values);
  // Sets a variable to a given value. Assignments in the script do not change it.
  void pin(const std::string& name, std::string value);
  bool is_pinned(const std::string& name) const { return pinned_.contains(name); }
  void append(const std::string& name, const std::vector<std::string>& values, bool as_array);
  void erase(const std::string& name);
  // Marks an unset variable as empty instead of unknown, as if a shell had expanded it. Used if
  // only a branch that is not taken sets it.
  void leave_empty(const std::string& name);
  // Returns null if the variable is not set.
  const std::vector<std::string>* find(const std::string& name) const;
  // Returns the names of variables that no expanded word has used, in the order of their first
  // assignment.
  std::vector<std::string> unused() const;
  const std::vector<std::string>& names() const { return order_; }  // all names, in that order

  // Expands a word and returns its fields. Text beyond `kMostShellBytes` is dropped.
  std::vector<std::string> expanded(std::string_view word);
  // Expands a word to a single text, as within double quotes.
  std::string expanded_text(std::string_view word);
  // Expands the text of a here-document, in which quotes are ordinary characters.
  std::string expanded_document(std::string_view text);
  // Number of conditions that used a value from outside the script.
  void take_from_outside() { ++taken_from_outside_; }
  int taken_from_outside() const { return taken_from_outside_; }
  // Names of unset variables that conditions have read since the last forget_missing().
  void note_missing(std::string name) { missing_.insert(std::move(name)); }
  void forget_missing() { missing_.clear(); }
  const std::set<std::string>& missing() const { return missing_; }
  // Evaluates an arithmetic expression such as "TP * PP + 1". Nothing if a variable in it is
  // unknown.
  std::optional<long long> arithmetic(std::string_view text);

 private:
  struct Expansion;
  void expand_dollar(std::string_view word, std::size_t& at, bool quoted, Expansion& out);
  void expand_braces(std::string_view inside, bool quoted, Expansion& out);
  // Returns the output of a command in $() that prints the path of the script's own folder or
  // files (pwd, dirname, basename, realpath, readlink, and cd before pwd), of expr, of echo or of
  // "cat <<EOF". Nothing for other commands.
  std::optional<std::string> printed_text(std::string_view inside);
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

// Returns what "echo" prints, without the line break. `words` begins with the command.
std::string echoed(const std::vector<std::string>& words);

// Normalizes a path, so that all spellings of a path give the same text: "./conf/../ds.json" gives
// "ds.json". The folder itself is ".".
std::string plain_path(std::string_view path);

inline constexpr std::size_t kMostShellBytes = std::size_t{1} << 20;

// Evaluates a condition [ ... ], [[ ... ]] or test, on strings and numbers. `all` contains the
// words with quotes, including "[" and "]". Nothing if the result depends on files or programs.
std::optional<bool> shell_condition(const std::vector<std::string>& all, ShellVariables& variables);
// Three-valued "and" and "or": true, false, or nothing if the result is unknown.
std::optional<bool> shell_and(std::optional<bool> a, std::optional<bool> b);
std::optional<bool> shell_or(std::optional<bool> a, std::optional<bool> b);

}  // namespace tpsim
