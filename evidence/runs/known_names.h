// Catalogue entries by their aliases in tables of runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tpsim {

class KnownNames {
 public:
  // Adds an entry with comma-separated aliases.
  //
  // "NeMo until 2025-01" is the word NeMo in rows up to this month, for an older state of the
  // software. "FSDP+Trainer" requires both words. "Trainer ZeRO-3" is a word in rows with this
  // stage (evidence/runs/framework_name.h).
  void add(const std::string& aliases, const std::string& entry);

  // Returns the entry whose words occur in the text, ignoring case; "" if there is none.
  //
  // The longest word decides: "Megatron-DeepSpeed" is not "DeepSpeed". Then, in this order: more
  // words, the row's ZeRO stage, the nearest "until" month that has not passed. Rows without a
  // month only match aliases without one.
  const std::string& called(const std::string& text, const std::string& month,
                            std::optional<int> zero = {}) const;

 private:
  struct Name {
    std::vector<std::string> words;  // longest first
    std::optional<int> zero;
    std::string until, entry;
  };
  std::vector<Name> names_;
};

// Returns the month of a row ("2024-12"): of its date ("2024-12-31"; December for a year), else of
// its software's release ("NeMo 24.12"). "" if neither is stated.
std::string month_of(const std::string& date, const std::string& software);

}  // namespace tpsim
