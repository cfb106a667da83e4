// The scenario with the networks and PCIe links of other clusters of the catalogue.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/scenario/catalogue.h"
#include "core/scenario/scenario.h"

namespace tpsim {

// Whether the rate of the link is an open input: PCIe.
bool is_open(const LinkSpec& link);

// Returns the scenario with the network of every other cluster with the same GPU and as many GPUs
// per node. `own`: name of the scenario's cluster.
Result<std::vector<Scenario>> other_networks(const Catalogue& catalogue, const Scenario& scenario,
                                             const std::string& own);
// Returns the scenario with the link of every other PCIe cluster, as efficient as there.
Result<std::vector<Scenario>> other_links(const Catalogue& catalogue, const Scenario& scenario);

}  // namespace tpsim
