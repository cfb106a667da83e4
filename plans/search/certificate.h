// What a search vouches for: a hash of everything that its answer depends on.
#pragma once

#include <cstdint>
#include <string>

#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim {

// The space as JSON, every list as it was asked for: what was searched, apart from the machines.
std::string to_json(const SearchSpace& space);

// FNV-1a, 64 bits, over the canonical JSON of model, cluster, stack, profile and space, in this
// order. Equal on every machine; another number means another question.
std::uint64_t inputs_hash(const Scenario& scenario, const SearchSpace& space);

}  // namespace tpsim
