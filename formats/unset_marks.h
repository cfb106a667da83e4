// Marks for values that a launch file takes from outside: an unset variable, or the output of a
// program.
//
// An unknown value is kUnset and its name: "$MBS", or "$(COMMAND)" up to kUnsetEnd. Messages state
// the name. Two kUnset mark an unquoted value, which may be several words or none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tpsim {

inline constexpr char kUnset = '\x01';  // never occurs in text
inline constexpr char kUnsetEnd =
    '\x02';  // ends the name of a program's output; optional after "$MBS"
// Returns the name of the first unknown value in the word: "$MBS", or "$(COMMAND)". Nothing if the
// word is fully known.
std::optional<std::string> unset_name(std::string_view word);
// Returns the word without marks, which is the script's text: "$MBS", "runs/$NAME".
std::string without_marks(std::string_view word);
// Whether the word is one unknown value and nothing else.
bool is_unset_word(std::string_view word);
// Whether the word may be several words: an unquoted value that is not that of a command which
// prints one word, such as hostname.
bool may_be_words(std::string_view word);
// Returns why the value with this name is unknown: "$MBS, which the script does not set".
std::string why_unset(std::string_view name);
// Returns the option that states the value: "--set MBS=VALUE", "--answer 'COMMAND=TEXT'".
std::string unset_remedy(std::string_view name);

}  // namespace tpsim
