// Wraps text to the width of a terminal, and makes text safe to print.
#pragma once

#include <string>
#include <string_view>

namespace tpsim::cli {

// Replaces control characters in foreign text (names in files, arguments): one line without escape
// sequences.
std::string printable(std::string_view text);

// Returns the columns of a text on a terminal: its code points without colour sequences.
std::size_t display_width(std::string_view text);

// Wraps at spaces to lines of `width` columns. Lines after the first start with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

// Wraps prose lines longer than `columns` at spaces. Continuation lines align with the text after a
// line's label. Rows of tables and commands are unchanged. 0 columns: no wrapping.
std::string fitted(std::string_view text, std::size_t columns);

// Breaks a command between its words to lines of `columns`, with '\\' for the shell.
std::string continued(std::string_view command, std::size_t columns);

}  // namespace tpsim::cli
