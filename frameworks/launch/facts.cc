#include "frameworks/launch/facts.h"

#include <algorithm>
#include <span>
#include <string>

#include "core/base/check.h"
#include "core/base/text.h"
#include "core/software/optimizer_kinds.h"

namespace tpsim {

extern const std::span<const unsigned char> kFacts;  // frameworks/*/*.txt

namespace {

std::string_view with_names(std::string_view text) {
  if (text == "$all_weights") return kAllWeights;
  if (text == "$adam_state") return kAdamState;
  return text == "$adam_names" ? std::string_view(kAdamNames) : text;
}

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

void read_line(std::string_view line, FactBlock& block) {
  std::string_view rest = line;
  const std::string_view word = cut_off(rest, " ");
  const std::size_t equals = line.find(" = ");
  if (word == "ignore") {
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
  std::string_view text{reinterpret_cast<const char*>(kFacts.data()), kFacts.size()};
  while (!text.empty()) {
    std::string_view line = cut_off(text, "\n");
    const bool is_inside = line.starts_with(' ');
    line = trimmed(line);
    if (line.empty() || line.starts_with('#')) continue;
    if (is_inside) {
      read_line(line, blocks.back());
    } else {
      const std::string_view kind = cut_off(line, " ");
      blocks.push_back({kind, line});
    }
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

const FactTable& fact_table(std::string_view name) {
  return block_called(fact_blocks(), name).facts;
}

}  // namespace tpsim
