#include "cli/options/text_report.h"

namespace tpsim::cli {

void TextReport::heading(std::string_view title, std::string_view note) {
  if (!text_.empty()) blank();
  text_ += bold(title);
  if (!note.empty()) text_ += "   " + paint(note, Ink::kDim);
  blank();
}

std::string TextReport::start_of(const Label& label) const {
  return std::string(label.indent, ' ') +
         paint(fmt::format("{:<{}}", label.text, label.width), Ink::kDim);
}

void TextReport::prose_row(const Label& label, std::string_view text) {
  const std::size_t start = label.indent + label.width;
  text_ += start_of(label) + wrapped(text, terminal_.room(start, kColumns - start), start) + '\n';
}

void TextReport::prose(std::string_view text, Ink ink, std::size_t indent) {
  const std::string lines = wrapped(text, terminal_.room(indent, kColumns - indent), indent);
  text_ += std::string(indent, ' ') + paint(lines, ink) + '\n';
}

void TextReport::note(std::string_view text) {
  text_ += wrapped(text, terminal_.room(2, kColumns), 2) + '\n';
}

}  // namespace tpsim::cli
