#include "frameworks/launch/facts.h"

#include <algorithm>
#include <span>
#include <string>

#include "core/base/check.h"
#include "core/base/text.h"
#include "core/base/text_table.h"
#include "core/software/optimizer_kinds.h"

namespace tpsim {

extern const std::span<const unsigned char> kFacts;  // frameworks/*/*.txt

namespace {

// Removes " [VALUES]" from the end of a text and returns the values.
std::string_view cut_values(std::string_view& text) {
  const std::size_t open = text.find('[');
  if (open == text.npos) return {};
  const std::string_view values = text.substr(open + 1, text.find(']') - open - 1);
  text = trimmed(text.substr(0, open));
  return with_names(values);
}

void add(const FactTable& more, FactTable& table) {
  table.rows.insert(table.rows.end(), more.rows.begin(), more.rows.end());
  table.left.insert(table.left.end(), more.left.begin(), more.left.end());
}

void read_line(std::string_view word, std::string_view rest, FactBlock& block) {
  const std::string_view line(word.data(), rest.data() + rest.size() - word.data());
  const std::size_t equals = line.find(" = ");
  if (word == "then") {
    block.rules.push_back(parse_statement(rest));
  } else if (word == "names") {
    const std::string_view list = cut_off(rest, " ");
    const auto known = std::find_if(block.lists.begin(), block.lists.end(),
                                    [&](const auto& one) { return one.first == list; });
    if (known == block.lists.end()) {
      block.lists.emplace_back(list, rest);
    } else {
      known->second += " " + std::string(rest);
    }
  } else if (word == "ignore") {
    block.facts.left.push_back({rest});
  } else if (word == "refuse") {
    const std::size_t colon = rest.find(": ");
    std::string_view keys = rest.substr(0, colon);
    const std::string_view harmless = cut_values(keys);
    block.facts.left.push_back({keys, with_names(rest.substr(colon + 2)), harmless});
  } else if (equals != line.npos && word != "note") {
    ProgramSetting row{.key = line.substr(0, equals), .becomes = {}};
    row.value = cut_values(row.key);
    row.as = line.substr(equals + 3);
    row.becomes = cut_off(row.as, " ");
    block.facts.rows.push_back(row);
  } else {
    block.others.emplace_back(word, rest);
  }
}

std::vector<FactBlock> read_blocks() {
  std::vector<FactBlock> blocks;
  for (const TableBlock& table : read_table(kFacts)) {
    FactBlock& block = blocks.emplace_back(FactBlock{table.kind, table.name});
    for (const auto& [word, rest] : table.lines) read_line(word, rest, block);
  }
  return blocks;
}

const FactBlock& block_called(const std::vector<FactBlock>& blocks, std::string_view name) {
  const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const FactBlock& one) {
    return one.kind == "table" && one.name == name;
  });
  TPSIM_CHECK(found != blocks.end(), "no table of facts is called " + std::string(name));
  return *found;
}

}  // namespace

std::string_view with_names(std::string_view text) {
  if (text == "$all_weights") return kAllWeights;
  if (text == "$adam_state") return kAdamState;
  return text == "$adam_names" ? std::string_view(kAdamNames) : text;
}

const std::vector<FactBlock>& fact_blocks() {
  static const std::vector<FactBlock> kBlocks = [] {
    std::vector<FactBlock> blocks = read_blocks();
    for (FactBlock& block : blocks) {
      for (const auto& [word, rest] : block.others) {
        if (word != "tables") continue;
        for (std::string_view names = rest; !names.empty();) {
          add(block_called(blocks, cut_off(names, " ")).facts, block.facts);
        }
      }
    }
    return blocks;
  }();
  return kBlocks;
}

const FactBlock& fact_block(std::string_view name) { return block_called(fact_blocks(), name); }

const FactTable& fact_table(std::string_view name) { return fact_block(name).facts; }

const std::string& fact_names(std::string_view table, std::string_view list) {
  const auto& lists = fact_block(table).lists;
  const auto found =
      std::find_if(lists.begin(), lists.end(), [&](const auto& one) { return one.first == list; });
  TPSIM_CHECK(found != lists.end(), "no list of facts is called " + std::string(list));
  return found->second;
}

const ProgramSetting* fact_row(std::string_view table, std::string_view key,
                               std::string_view value) {
  const std::vector<ProgramSetting>& rows = fact_table(table).rows;
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const ProgramSetting& row) {
    return matches_any(key, row.key) && (row.value.empty() || row.value == value);
  });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace tpsim
