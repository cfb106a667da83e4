// What the ranks of a world tell each other beside their tensors: results, names of machines.
#pragma once

#include <string>
#include <vector>

#include "ranks/world.h"

namespace tpsim {

// What each rank says, by rank; the same on all of them. Every rank calls this.
std::vector<std::string> gathered(World& world, Device& device, const std::string& mine);

}  // namespace tpsim
