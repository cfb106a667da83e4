// Rules of single programs, written from their sources. Tests check exported files against the
// rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/frameworks/launch/stack_rules.h"

namespace tpsim::test {

struct Rule {
  bool holds;
  const char* objection;
};
// Returns the objection of the first broken rule; empty if all rules hold.
std::string first_broken(const std::vector<Rule>& rules);
std::int64_t world_of(const Script& script);

std::string objection_of_megatron(const Script& script);
std::string objection_of_nanotron(const Script& script, const std::string& yaml);
std::string objection_of_accelerate(const Script& script, const std::string& yaml);
std::string objection_of_kubernetes(const std::string& jobset);

}  // namespace tpsim::test
