// Words of bash: cut out of a script's text, and expanded as bash would.
//
// Expansion knows variables and arrays, ${X:-y} and its kin, arithmetic, and quotes. What a script
// takes from outside (its arguments, the environment, other programs) is not known: it expands to
// kUnset followed by its name, so that whoever reads the word can say what is missing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tpsim {

inline constexpr char kUnset = '\x01';  // stands in no text that people write
// "$MBS" where a value is unknown, empty where a program prints it; nothing in a word that is known
// in full.
std::optional<std::string> unset_name(std::string_view word);
// Without the marks: "$MBS" and "runs/$NAME" as people wrote them.
std::string without_marks(std::string_view word);

enum class ShellTokenKind { kWord, kSeparator, kRedirect };
struct ShellToken {
  ShellTokenKind kind = ShellTokenKind::kWord;
  // With its quotes; a separator is "\n", ";", "&&", "||", "|", "&", ";;", "(" or ")".
  std::string text = {};
  int line = 0;
  bool is_array = false;                   // NAME=( ... ): text is "NAME=" or "NAME+="
  std::vector<std::string> elements = {};  // of an array, with their quotes
  // Of a redirection: where to, or the text of a here-document and whether it is expanded.
  bool is_document = false;
  bool is_expanded = true;
};

// An error names the line of an unclosed quote, array or here-document.
Result<std::vector<ShellToken>> shell_tokens(std::string_view text, const std::string& file);

class ShellVariables {
 public:
  void set(const std::string& name, std::vector<std::string> values);
  // Sets it for good: no assignment of the script changes it.
  void pin(const std::string& name, std::string value);
  bool is_pinned(const std::string& name) const { return pinned_.contains(name); }
  void append(const std::string& name, const std::vector<std::string>& values, bool as_array);
  void erase(const std::string& name);
  // A branch that is not taken alone sets it: it expands to nothing, as in a shell, until set.
  void leave_empty(const std::string& name);
  // Null where nothing set it.
  const std::vector<std::string>* find(const std::string& name) const;
  // Of all that were set, in the order of their first setting; those that no word has used.
  std::vector<std::string> unused() const;
  const std::vector<std::string>& names() const { return order_; }  // of all that were set

  // The fields that a word becomes; bytes beyond `kMostShellBytes` are cut.
  std::vector<std::string> expanded(std::string_view word);
  // As one text, as between double quotes.
  std::string expanded_text(std::string_view word);
  // Of a here-document, where quotes are plain characters.
  std::string expanded_document(std::string_view text);
  // Notes that a test took a value from outside; how many did.
  void take_from_outside() { ++taken_from_outside_; }
  int taken_from_outside() const { return taken_from_outside_; }
  // Names without a value that were looked at since the last forget_missing().
  void note_missing(std::string name) { missing_.insert(std::move(name)); }
  void forget_missing() { missing_.clear(); }
  const std::set<std::string>& missing() const { return missing_; }
  // "TP * PP + 1"; nothing where a name in it is unknown.
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

// "./conf/../ds.json" as "ds.json": one name for a file under every spelling of its path. "." for
// the folder itself.
std::string plain_path(std::string_view path);

inline constexpr std::size_t kMostShellBytes = std::size_t{1} << 20;

// Tests of strings and numbers: [ ... ], [[ ... ]], test. The words with their quotes, "[" and "]"
// included; nothing for what depends on more than variables: files, other programs.
std::optional<bool> shell_condition(const std::vector<std::string>& all, ShellVariables& variables);
// Of truths that may be unknown.
std::optional<bool> shell_and(std::optional<bool> a, std::optional<bool> b);
std::optional<bool> shell_or(std::optional<bool> a, std::optional<bool> b);

}  // namespace tpsim
