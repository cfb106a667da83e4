// Certificate of a search: a hash of all inputs that determine its result.
#pragma once

#include <cstdint>
#include <string>

#include "core/scenario/scenario.h"
#include "plans/search/search.h"

namespace tpsim {

// Returns the space as JSON, with the requested values of every setting. Does not include the
// cluster.
std::string to_json(const SearchSpace& space);

// FNV-1a, 64 bits, over the canonical JSON of model, cluster, stack, profile and space, in this
// order. Equal on every machine. Different hashes mean different inputs.
std::uint64_t inputs_hash(const Scenario& scenario, const SearchSpace& space);

}  // namespace tpsim
