// Entries of the catalogue by what tables of runs call them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tpsim {

class KnownNames {
 public:
  // Words with commas between them. "NeMo until 2025-01" is the word NeMo in rows of no later
  // month: what software did before it changed. "FSDP+Trainer" are two words that both occur,
  // "Trainer ZeRO-3" a word in rows of that stage (evidence/runs/framework_name.h).
  void add(const std::string& aliases, const std::string& entry);

  // The entry whose words occur in the text, "" where none do. Capitals do not count. The longest
  // word decides: "Megatron-DeepSpeed" is not "DeepSpeed". Of one word's entries the one with more
  // words, then the one with the row's ZeRO stage, then the one of the row's time: with the next
  // month that has not passed, else, and for rows without a month, the one without.
  const std::string& called(const std::string& text, const std::string& month,
                            std::optional<int> zero = {}) const;

 private:
  struct Name {
    std::vector<std::string> words;  // the longest first
    std::optional<int> zero;
    std::string until, entry;
  };
  std::vector<Name> names_;
};

// The month of a row, "2024-12": of its date ("2024-12-31"; the last one of a year), else of the
// release that its software is named by ("NeMo 24.12"). "" where neither is stated.
std::string month_of(const std::string& date, const std::string& software);

}  // namespace tpsim
