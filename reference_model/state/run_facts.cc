#include "reference_model/state/run_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tpsim {
namespace {

const RunFact* find(const RunFacts& facts, const std::string& name) {
  const auto found = std::find_if(facts.begin(), facts.end(),
                                  [&](const RunFact& fact) { return fact.name == name; });
  return found == facts.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> differences(const RunFacts& saved, const RunFacts& now) {
  std::vector<std::string> all;
  for (const RunFact& fact : now) {
    const RunFact* before = find(saved, fact.name);
    if (before != nullptr && *before == fact) continue;
    const std::string value = before == nullptr ? "not stated" : before->value;
    all.push_back(fmt::format("{} was {} and is now {}", fact.name, value, fact.value));
  }
  return all;
}

Status check_model(const RunFacts& saved, const RunFacts& now) {
  for (const RunFact& fact : now) {
    const RunFact* before = find(saved, fact.name);
    if (!fact.name.starts_with(kModelFact) || before == nullptr || *before == fact) continue;
    return bad_input(fmt::format("the saved state is of another model: {} was {} and is now {}",
                                 fact.name, before->value, fact.value),
                     "", "give another folder with --state");
  }
  return Ok{};
}

}  // namespace tpsim
