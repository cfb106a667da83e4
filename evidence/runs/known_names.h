// Finds catalogue entries (stacks, clusters) by the names that run tables use for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tpsim {

class KnownNames {
 public:
  // Adds an entry with comma-separated aliases.
  //
  // "NeMo until 2025-01" matches rows with "NeMo" up to this month, for an older state of the
  // software. "FSDP+Trainer" requires both words. "Trainer ZeRO-3" matches rows with "Trainer" and
  // ZeRO stage 3 (evidence/runs/framework_name.h). "Composer on H100" matches rows with "Composer"
  // on this GPU. "torchtune with gradient_sync=every_micro_batch" is a program that differs from
  // the entry in these software parts; "/" separates several. The word "recompute=full" among them
  // is the program's recompute in rows that state none. "torchtitan of Llama-4" matches rows
  // whose model's name contains this, in any spelling. The order is: of, with, on, until.
  void add(const std::string& aliases, const std::string& entry);

  // An entry, and the software parts in which a program differs from it:
  // "compile=on/loss_head=eager".
  struct Found {
    std::string entry, parts;
  };

  // Returns the entry whose alias matches the text, ignoring case; empty if there is none.
  //
  // If several aliases match, the one with the longest word is chosen: "Megatron-DeepSpeed", not
  // "DeepSpeed". Ties are broken by more words, then a ZeRO stage, a model, a GPU, then the
  // earliest "until" month. Without a `month`, aliases with "until" do not match.
  const Found& called(const std::string& text, const std::string& month,
                      std::optional<int> zero = {}, const std::string& gpu = {},
                      const std::string& model = {}) const;

 private:
  struct Name {
    std::vector<std::string> words;  // longest first
    std::optional<int> zero;
    std::string until, gpu, model;
    Found found;
  };
  std::vector<Name> names_;
};

// Returns the month of a row, such as "2024-12": of its date (December if only a year is stated),
// else of its software's release ("NeMo 24.12"). Returns "" if neither is stated.
std::string month_of(const std::string& date, const std::string& software);

}  // namespace tpsim
