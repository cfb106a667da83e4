// The descriptions of settings and parts: core/plan/settings.txt and core/software/parts.txt.
#pragma once

#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/text_table.h"
#include "core/plan/field.h"

namespace tpsim {

// Returns the description of a field, which must exist.
const TableBlock& field_text(std::string_view key);

// Sets all of `facts` that the description of its key states. The words of `facts` must contain
// those of the description.
void describe(FieldFacts& facts);

// Returns the word's number, or the number that the text is.
std::int64_t value_in(const FieldFacts& facts, std::string_view text);

// Returns values that live as long as the program.
template <class Value>
std::span<const Value> kept(std::vector<Value> values) {
  static std::mutex mutex;
  static std::deque<std::vector<Value>> all;
  const std::lock_guard lock(mutex);
  return all.emplace_back(std::move(values));
}

}  // namespace tpsim
