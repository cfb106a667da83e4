// Facts of other programs' settings, read from tables: frameworks/*/*.txt.
//
//   program NAME           a training program; the lines below belong to it
//   table NAME             lines that several programs or a reader in C++ use
//     commands A, B        console commands and Python modules that start it: "swift sft". A script
//                          file is compared as a module
//     marks SETTING=VALUE  patterns of settings, one of which must match. Absent: no condition
//     keys KEY...          keys that a configuration file of this program has, all of them
//     reads READER         megatron, trainer or torchtitan
//     stack NAME           of the catalogue. Absent: as the reader determines
//     tables NAME...       adds the lines of these tables behind the program's own
//     defaults NAME=VALUE  of the program, under the reader's names
//     base PATH            a configuration in the program's sources with its defaults, which count
//                          if a folder above the file has it
//     keeps_rest           passes other settings to the reader. Absent: they are unknown
//     note TEXT            the part of the program's work that the plan does not include
//     code FUNCTION...     of frameworks/programs/program_code.h
//     then STATEMENT       a rule of core/json/statements.h, which runs after the rows, in order.
//     Names
//                          are settings of the reader, "gpus", "replicas" (data-parallel ranks),
//                          "program" (the command) and "file" (its path). NAME = EXPRESSION sets a
//                          setting, "clear NAME..." removes settings, "note: TEXT" adds a note,
//                          "ask: WHAT -> ANSWER" a question, "refuse KEY EXPRESSION: WHY" a
//                          refusal; "like NAME" runs the rules of a table. has(NAME); is(NAME,
//                          'PATTERN...'), in lower case; number(NAME, ELSE), a count, which a bare
//                          name is too, with 0 if absent; real(NAME, ELSE); WORD in TEXT;
//                          packed(TOKENS), the sequences of a micro-batch that fit; after(TEXT, C),
//                          after_last(TEXT, C), the text behind a character; own_moments(NAME),
//                          whether an optimizer has a format of its own; targets(TEXT), the linear
//                          layers with adapters of these modules
//     KEY... [VALUE...] = NAME AS
//                          translates a setting to the reader's NAME with the value AS. VALUE:
//                          lower-case patterns, one of which must match. Every row that matches key
//                          and value applies; one without VALUE only if no other row of that key
//                          does. "*" as NAME inserts the text that a '*' of KEY matched, or
//                          else the last part of KEY; NAME* gathers the values of several keys.
//                          Names that start with '@' are intermediate values for the code, or read
//                          by the import itself: @model (a name or path), @config, @nodes,
//                          @gpus-per-node, @gpus, @length (the sum of all settings that map to
//                          it), @global-batch, @part.KEY (a part of the software)
//     refuse KEY... [VALUE...]: WHY
//                          a setting that changes the plan and is not modelled, unless it is VALUE
//     ignore KEY...        settings that do not affect a plan
//     names LIST NAME...   a list of names that a reader in C++ uses
//
// Keys may end in '*' and have '_' instead of '-'. $all_weights, $adam_state and $adam_names stand
// for the reasons below and the names of AdamW.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json/statements.h"

namespace tpsim {

// Why other methods of fine-tuning are refused.
inline constexpr const char* kAllWeights =
    "tpsim models training of all weights, of chosen layers and modules, and of LoRA adapters";
// Why other optimizers are refused.
inline constexpr const char* kAdamState =
    "tpsim models AdamW, also with moments in 16, 8 or 4 bits, Muon, Adafactor, Lion and SGD";

// Translates one setting of a program to a setting of the reader.
struct ProgramSetting {
  std::string_view key;         // names, or prefixes that end in '*'
  std::string_view becomes;     // name for the reader
  std::string_view value = {};  // empty: any
  std::string_view as = {};     // the new value; empty: unchanged
};

// Rule for settings that no reader has read: they are ignored, or refused with a reason. Settings
// without a rule are unknown.
struct LeftOver {
  std::string_view patterns;       // keys, or prefixes that end in '*', separated by spaces
  std::string_view why = {};       // reason for refusal; empty: does not affect a plan
  std::string_view harmless = {};  // values that are accepted although `why` is set
};

struct FactTable {
  std::vector<ProgramSetting> rows;
  std::vector<LeftOver> left;  // the first that matches applies
};
// Returns a table by its name; the name must exist.
const FactTable& fact_table(std::string_view name);

// A program or table, and its lines that are not part of a FactTable: a word and the rest.
struct FactBlock {
  std::string_view kind, name;
  std::vector<std::pair<std::string_view, std::string_view>> others = {};
  FactTable facts = {};  // with the tables that the block adds
  std::vector<std::pair<std::string_view, std::string>> lists = {};  // of the lines "names"
  std::vector<Statement> rules = {};                                 // of the lines "then"
};
const std::vector<FactBlock>& fact_blocks();
// Returns a table, or one of its lists: names that spaces separate. Both must exist.
const FactBlock& fact_block(std::string_view name);
const std::string& fact_names(std::string_view table, std::string_view list);
// Returns the reason or the names for "$all_weights", "$adam_state" and "$adam_names"; other texts
// unchanged.
std::string_view with_names(std::string_view text);
// Returns the first row for the key and value; null if there is none.
const ProgramSetting* fact_row(std::string_view table, std::string_view key,
                               std::string_view value = {});

}  // namespace tpsim
