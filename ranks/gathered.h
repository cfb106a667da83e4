// Exchange of strings between the ranks of a world, such as results and host names.
#pragma once

#include <string>
#include <vector>

#include "ranks/world.h"

namespace tpsim {

// All-gathers one string per rank. Collective.
std::vector<std::string> gathered(World& world, Device& device, const std::string& mine);

}  // namespace tpsim
