// The best plan of BLOOM-176B on 384 GPUs, as a minimal program that links tpsim.
#include <tpsim/tpsim.h>

#include <iostream>

int main() {
  const auto scenario = tpsim::load_scenario({.model = "bloom-176b", .cluster = "jean-zay-a100"});
  if (!scenario.ok()) return std::cerr << to_string(scenario.error()) << '\n', 2;
  const auto found = tpsim::search(*scenario, {.gpus = 384, .global_batch = 2048}, 1, {});
  if (!found.ok()) return std::cerr << to_string(found.error()) << '\n', 3;
  std::cout << short_name(found->plans.front().plan) << '\n';
}
