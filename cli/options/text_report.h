// A report as text, written line by line for a terminal.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "cli/options/table.h"
#include "cli/options/terminal.h"
#include "cli/options/wrapping.h"

namespace tpsim::cli {

// A dim label before a text, padded to `width` columns.
struct Label {
  std::string_view text;
  std::size_t width = 13;
  std::size_t indent = 2;
  Label(const char* label) : text(label) {}       // NOLINT(google-explicit-constructor)
  Label(std::string_view label) : text(label) {}  // NOLINT(google-explicit-constructor)
  Label(std::string_view label, std::size_t label_width, std::size_t label_indent = 2)
      : text(label), width(label_width), indent(label_indent) {}
};

class TextReport {
 public:
  static constexpr std::size_t kColumns = 100;  // width of prose if the terminal's is unknown

  explicit TextReport(Terminal terminal) : terminal_(std::move(terminal)) {}

  template <class... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    text_ += fmt::format(format, std::forward<Values>(values)...) + '\n';
  }
  void blank() { text_ += '\n'; }
  // Writes a title, after a blank line unless the report is empty.
  void heading(std::string_view title, std::string_view note = "");

  template <class... Values>
  void row(const Label& label, fmt::format_string<Values...> format, Values&&... values) {
    text_ += start_of(label) + fmt::format(format, std::forward<Values>(values)...) + '\n';
  }
  // Writes a row that is wrapped at the terminal's width.
  void prose_row(const Label& label, std::string_view text);
  // Writes indented text that is wrapped at the terminal's width.
  void prose(std::string_view text, Ink ink = Ink::kPlain, std::size_t indent = 2);
  // Writes wrapped text of which only the lines after the first are indented.
  void note(std::string_view text);
  void table(const Table& table) { text_ += table.text(terminal_); }

  std::string paint(std::string_view text, Ink ink) const { return terminal_.paint(text, ink); }
  std::string bold(std::string_view text) const { return paint(text, Ink::kBold); }
  const Terminal& terminal() const { return terminal_; }
  const std::string& text() const { return text_; }

 private:
  std::string start_of(const Label& label) const;

  Terminal terminal_;
  std::string text_;
};

}  // namespace tpsim::cli
