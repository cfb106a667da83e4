// Entries of the catalogue by what tables of runs call them.
#pragma once

#include <string>
#include <vector>

namespace tpsim {

class KnownNames {
 public:
  // Words with commas between them. "NeMo until 2025-01" is the word NeMo in rows of no later
  // month: what software did before it changed.
  void add(const std::string& aliases, const std::string& entry);

  // The entry whose word occurs in the text, "" where none does. The longest word decides:
  // "Megatron-DeepSpeed" is not "DeepSpeed". Of one word's entries the one of the row's time: with
  // the next month that has not passed, else, and for rows without a month, the one without.
  const std::string& called(const std::string& text, const std::string& month) const;

 private:
  struct Name {
    std::string word, until, entry;
  };
  std::vector<Name> names_;
};

// The month of a row, "2024-12": of its date ("2024-12-31"; the last one of a year), else of the
// release that its software is named by ("NeMo 24.12"). "" where neither is stated.
std::string month_of(const std::string& date, const std::string& software);

}  // namespace tpsim
