#include "core/model/huggingface_tables.h"

#include <span>

#include "core/base/text.h"

namespace tpsim {

extern const std::span<const unsigned char> kFamilyTables;  // huggingface_*.txt

FamilyTables parse_family_tables() {
  FamilyTables tables;
  std::string_view text = as_text(kFamilyTables);
  std::vector<std::vector<Statement>*> open;  // where the next indented line belongs
  while (!text.empty()) {
    const std::string_view whole = cut_off(text, "\n");
    if (whole.empty() || whole.starts_with('#')) continue;
    if (whole.starts_with(' ')) {
      for (std::vector<Statement>* statements : open) statements->push_back(parse_statement(whole));
      continue;
    }
    LineParser line(whole);
    const std::string kind = line.word();
    open.clear();
    if (kind == "section") {
      TableSection& section = tables.sections[line.word()];
      section.parameters = line.assignments();
      open.push_back(&section.statements);
    } else if (kind == "family") {
      for (const std::string& name : words_in(line.text())) {
        open.push_back(&tables.families[name].statements);
      }
    } else if (kind == "encoder") {
      EncoderTable& encoder = tables.encoders.emplace_back();
      encoder.key = line.word();
      encoder.condition = line.expression();
      open.push_back(&encoder.statements);
    } else if (kind == "number" || kind == "flag") {
      const std::string_view rest = line.rest();
      const std::size_t equals = rest.find(" = ");
      tables.known_values.push_back({std::string(rest.substr(0, equals)), kind == "flag",
                                     parse_expression(rest.substr(equals + 3))});
    } else if (kind == "differs") {
      const std::string type = line.word(":");
      line.expect(":");
      tables.unplanned[type] = line.text();
    } else {
      std::string& list = kind == "shaping" ? tables.shaping_keys
                          : kind == "other" ? tables.other_keys
                                            : tables.shorter_families;
      list += ' ' + line.text();
    }
  }
  return tables;
}

}  // namespace tpsim
