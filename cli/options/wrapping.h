// Text cut to the width of a terminal, and made safe to print.
#pragma once

#include <string>
#include <string_view>

namespace tpsim::cli {

// Text of others (names in files, arguments) without control characters: one line, no escapes.
std::string printable(std::string_view text);

// Columns that a text takes on a terminal: its code points, colours left out.
std::size_t display_width(std::string_view text);

// Breaks at spaces into lines of `width` columns; those after the first start with `indent` spaces.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

// Lines of prose that are longer than `columns` broken at spaces; what follows stands below the
// text behind a line's label. Rows of tables and commands stay whole. 0 columns leave all as it is.
std::string fitted(std::string_view text, std::size_t columns);

// A command to copy on lines of `columns`, broken between its words with a '\\' that a shell takes.
std::string continued(std::string_view command, std::size_t columns);

}  // namespace tpsim::cli
