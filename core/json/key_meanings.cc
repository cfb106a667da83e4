#include "core/json/key_meanings.h"

#include <map>
#include <span>
#include <string>

#include "core/base/check.h"
#include "core/base/text_table.h"

namespace tpsim {

extern const std::span<const unsigned char> kKeyMeanings;  // key_meanings.txt

std::string_view meaning_of(std::string_view meaning) {
  static const std::map<std::string_view, std::string_view> kMeanings = [] {
    std::map<std::string_view, std::string_view> all;
    for (const TableBlock& line : read_table(kKeyMeanings)) all[line.kind] = line.name;
    return all;
  }();
  const auto found = kMeanings.find(meaning);
  if (found != kMeanings.end()) return found->second;
  const bool is_path = meaning.find('/') != meaning.npos && meaning.find(' ') == meaning.npos;
  TPSIM_CHECK(!is_path, "key_meanings.txt lacks the key " + std::string(meaning));
  return meaning;
}

}  // namespace tpsim
