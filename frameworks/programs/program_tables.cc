// The programs of the tables in this folder, with their functions.
#include <algorithm>
#include <map>
#include <variant>

#include "core/base/text.h"
#include "frameworks/programs/program_code.h"

namespace tpsim {
namespace {

using Code = std::variant<ExpandProgram*, DeriveProgram*, FinishProgram*>;

const std::map<std::string_view, Code>& code_by_name() {
  static const std::map<std::string_view, Code> kCode = {
      {"expand_primus", expand_primus},
      {"expand_tune", expand_tune},
      {"expand_flagscale", expand_flagscale},
      {"expand_aws", expand_aws},
      {"expand_chat", expand_chat},
      {"derive_verl_fsdp", derive_verl_fsdp},
      {"derive_verl_megatron", derive_verl_megatron},
      {"derive_verl_sft", derive_verl_sft},
      {"derive_swift", derive_swift},
      {"derive_swift_megatron", derive_swift_megatron},
      {"derive_openrlhf", derive_openrlhf},
      {"derive_slime", derive_slime},
      {"derive_primus", derive_primus},
      {"derive_neox", derive_neox},
      {"derive_tune", derive_tune},
      {"derive_mlperf", derive_mlperf},
      {"derive_factory", derive_factory},
      {"derive_titan", derive_titan},
      {"derive_flagscale", derive_flagscale},
      {"derive_chat", derive_chat},
      {"derive_automodel", derive_automodel},
      {"derive_litgpt", derive_litgpt},
      {"derive_nemo_rl", derive_nemo_rl},
      {"finish_neox", finish_neox}};
  return kCode;
}

void add_code(std::string_view names, TrainingProgram& program) {
  while (!names.empty()) {
    const Code code = code_by_name().at(cut_off(names, " "));
    if (const auto* expand = std::get_if<ExpandProgram*>(&code)) program.expand = *expand;
    if (const auto* derive = std::get_if<DeriveProgram*>(&code)) program.derive = *derive;
    if (const auto* finish = std::get_if<FinishProgram*>(&code)) program.finish = *finish;
  }
}

SettingsOf reader_called(std::string_view name) {
  const auto& names = kEnumNames<SettingsOf>;
  return static_cast<SettingsOf>(std::find(names.begin(), names.end(), name) - names.begin());
}

TrainingProgram program_in(const FactBlock& block) {
  TrainingProgram program{.name = block.name, .commands = {}, .marks = {}, .facts = block.facts};
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
    std::vector<TrainingProgram> all;
    for (const FactBlock& block : fact_blocks()) {
      if (block.kind == "program") all.push_back(program_in(block));
    }
    return all;
  }();
  return kAll;
}

}  // namespace tpsim
