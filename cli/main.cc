// tpsim. Ranks are looked after by a parent that says what became of them: threads of a child
// process, or, under mpirun, a child that becomes the program that is one of them.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "cli/mpi_launch.h"
#include "cli/program.h"
#include "cli/supervisor.h"
#include "ranks/launcher.h"

namespace {

bool has_word(int argc, char** argv, std::string_view option, std::string_view value) {
  const std::string joined = std::string(option) + "=" + std::string(value);
  for (int i = 1; i < argc; ++i) {
    const bool apart = argv[i] == option && i + 1 < argc && argv[i + 1] == value;
    if (apart || argv[i] == joined) return true;
  }
  return false;
}

// validate --runs only predicts.
bool has_ranks(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  const bool reads_runs = std::any_of(argv, argv + argc, [](std::string_view word) {
    return word == "--runs" || word.starts_with("--runs=");
  });
  return command == "run" || command == "profile" || (command == "validate" && !reads_runs);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tpsim;
  using namespace tpsim::cli;
  if (!has_ranks(argc, argv)) return run_and_report(argc, argv);
  const bool on_gpus = has_word(argc, argv, "--device", "cuda");
  if (started_by_mpi_launcher() && (!on_gpus || mpi_program_is_here())) {
    return supervised(fmt::format("the process of rank {}", rank_given_by_launcher()),
                      [&] { return run_as_mpi_rank(argv); });
  }
  // NCCL's ranks find each other by what any launcher says.
  const auto task = lone_task(process_environment);
  if (task && !on_gpus) return refuse_lone_task(*task);
  if (std::string_view(argv[1]) != "run") return run_and_report(argc, argv);
  return supervised("the process of the ranks", [&] { return run_and_report(argc, argv); });
}
