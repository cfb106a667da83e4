// Exchange of texts between the ranks of a world: results, names of machines.
#pragma once

#include <string>
#include <vector>

#include "ranks/world.h"

namespace tpsim {

// All-gathers one string per rank. Collective.
std::vector<std::string> gathered(World& world, Device& device, const std::string& mine);

}  // namespace tpsim
