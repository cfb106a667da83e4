// Certificate of a search: a hash of all inputs of its answer.
#pragma once

#include <cstdint>
#include <string>

#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim {

// Returns the space as JSON, with every list as requested. The machines are not included.
std::string to_json(const SearchSpace& space);

// FNV-1a, 64 bits, over the canonical JSON of model, cluster, stack, profile and space, in this
// order. Equal on every machine. Different hashes mean different inputs.
std::uint64_t inputs_hash(const Scenario& scenario, const SearchSpace& space);

}  // namespace tpsim
