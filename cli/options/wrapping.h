// Wraps text to the width of a terminal, and makes text safe to print.
#pragma once

#include <string>
#include <string_view>

namespace tpsim::cli {

// Returns foreign text, such as file names, with control characters replaced by '?'. The result is
// one line without escape sequences.
std::string printable(std::string_view text);

// Returns the number of terminal columns of a text: its code points, excluding color sequences.
std::size_t display_width(std::string_view text);

// Wraps text at spaces to lines of at most `width` columns. Lines after the first are indented by
// `indent` spaces.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

// Wraps prose lines longer than `columns` at spaces. Continuation lines align with the text after
// the line's label. Leaves table rows and commands unchanged. 0 columns: no wrapping.
std::string fitted(std::string_view text, std::size_t columns);

// Breaks a shell command between its words into lines of at most `columns` that end with '\\'.
std::string continued(std::string_view command, std::size_t columns);

}  // namespace tpsim::cli
