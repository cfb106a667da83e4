// The programs of the tables in this folder, with their functions.
#include <algorithm>
#include <map>
#include <variant>

#include "core/base/text.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

using Code = std::variant<ExpandProgram*, DeriveProgram*>;

const std::map<std::string_view, Code>& code_by_name() {
  static const std::map<std::string_view, Code> kCode = {{"expand_primus", expand_primus},
                                                         {"expand_tune", expand_tune},
                                                         {"expand_flagscale", expand_flagscale},
                                                         {"expand_aws", expand_aws},
                                                         {"derive_titan", derive_titan}};
  return kCode;
}

void add_code(std::string_view names, TrainingProgram& program) {
  while (!names.empty()) {
    const Code code = code_by_name().at(cut_off(names, " "));
    if (const auto* expand = std::get_if<ExpandProgram*>(&code)) program.expand = *expand;
    if (const auto* derive = std::get_if<DeriveProgram*>(&code)) program.derive = *derive;
  }
}

SettingsOf reader_called(std::string_view name) {
  const auto& names = kEnumNames<SettingsOf>;
  return static_cast<SettingsOf>(std::find(names.begin(), names.end(), name) - names.begin());
}

TrainingProgram program_in(const FactBlock& block) {
  TrainingProgram program{.name = block.name, .commands = {}, .marks = {}, .facts = block.facts};
  program.rules = block.rules;
  for (const auto& [word, rest] : block.others) {
    const auto append = [words = rest](std::string& text) {
      text += (text.empty() ? "" : " ") + std::string(words);
    };
    if (word == "commands") append(program.commands);
    if (word == "marks") append(program.marks);
    if (word == "defaults") append(program.defaults);
    if (word == "keys") program.file_keys = rest;
    if (word == "reads") program.settings = reader_called(rest);
    if (word == "stack") program.stack = rest;
    if (word == "keeps_rest") program.keeps_rest = true;
    if (word == "base") program.base = rest;
    if (word == "note") program.note = rest;
    if (word == "code") add_code(rest, program);
  }
  return program;
}

}  // namespace

const std::vector<TrainingProgram>& all_programs() {
  static const std::vector<TrainingProgram> kAll = [] {
    check_rules(fact_blocks());
    std::vector<TrainingProgram> all;
    for (const FactBlock& block : fact_blocks()) {
      if (block.kind == "program") all.push_back(program_in(block));
    }
    return all;
  }();
  return kAll;
}

}  // namespace tpsim
