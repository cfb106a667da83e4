// The best plan of BLOOM-176B on 384 GPUs, as a minimal program that links tpsim.
#include <tpsim/tpsim.h>

#include <iostream>

int main() {
  const auto answer = tpsim::app::plan_answer(
      {.scenario = {.model = "bloom-176b", .cluster = "jean-zay-a100"}, .search = {.gpus = 384}});
  if (!answer.ok()) return std::cerr << to_string(answer.error()) << '\n', 2;
  if (answer->found.plans.empty()) return std::cerr << "no plan fits\n", 3;
  std::cout << short_name(answer->found.plans.front().plan) << '\n';
}
