#include <array>

#include "app/documents/key_meanings.h"

namespace tpsim::app {
namespace {

constexpr std::array kPlanMeanings = {
    KeyMeaning{"plan.model", "complete contents of a model file"},
    KeyMeaning{"plan.cluster plan.profile plan.stack", "catalogue name or path"},
    KeyMeaning{"plan.parts", "software options that replace those of the stack"},
    KeyMeaning{"plan.network", "network between nodes, if it replaces that of the cluster"},
    KeyMeaning{"plan.network.node_gbps",
               "bandwidth per node in Gb/s, all NICs together, in one direction"},
    KeyMeaning{"plan.assumed",
               "inputs that were assumed when the plan was made; they widen the intervals"},
    KeyMeaning{"plan.assumed.stack", "the default stack of the cluster was assumed [false]"},
    KeyMeaning{"plan.assumed.network",
               "the network of the model's default cluster was assumed [false]"},
    KeyMeaning{"plan.assumed.settings",
               "unknown settings of the launch file, which are assumed to have no effect"},
    KeyMeaning{"plan.contents",
               "hashes of the named entries when the plan was saved; tpsim warns if an entry has "
               "changed since"},
    KeyMeaning{"plan.contents.cluster", "hash of the cluster file; empty: none was used"},
    KeyMeaning{"plan.contents.profile", "hash of the profile file"},
    KeyMeaning{"plan.contents.stack", "hash of the stack file"},
    KeyMeaning{"plan.plan", "settings of the plan"},
};

}  // namespace

std::span<const KeyMeaning> plan_key_meanings() { return kPlanMeanings; }

}  // namespace tpsim::app
