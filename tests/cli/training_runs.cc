#include "tests/cli/training_runs.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

#include "tests/temporary_folder.h"

namespace tpsim::test {
namespace {

double number_after(const std::string& text, std::size_t from, const std::string& key) {
  const std::size_t at = text.find("\"" + key + "\": ", from);
  REQUIRE(at != std::string::npos);
  return std::strtod(text.c_str() + at + key.size() + 4, nullptr);
}

}  // namespace

std::string golden_arguments(const std::string& name, const std::string& device,
                             const std::string& dtype) {
  const std::string folder = std::string(TPSIM_SOURCE_DIR) + "/tests/golden/" + name;
  return " --checkpoint " + folder + " --tokens " + folder + "/tokens.safetensors --dtype " +
         dtype +
         " --lr 1e-3 --betas 0.9,0.95 --eps 1e-8 --weight-decay 0.1 --clip-grad 1.0 --device " +
         device + " --json ";
}

std::string tpsim_run(const std::string& arguments) {
  return std::string("exec ") + TPSIM_BINARY_DIR + "/tpsim run " + arguments;
}

// Open MPI leaks memory, which the leak check would report.
std::string tpsim_under_mpirun(int ranks, const std::string& arguments) {
  // Open MPI's session files: processes of mpirun that start at once fail to create one folder.
  static const TemporaryFolder sessions;
  return "exec env ASAN_OPTIONS=detect_leaks=0 OMPI_MCA_orte_tmpdir_base=" +
         sessions.path().string() + " mpirun --oversubscribe --allow-run-as-root -n " +
         std::to_string(ranks) + " " + TPSIM_BINARY_DIR + "/tpsim " + arguments;
}

std::string under_mpirun(int ranks, const std::string& arguments) {
  return tpsim_under_mpirun(ranks, "run " + arguments);
}

std::vector<Step> steps_of(const std::string& json) {
  std::vector<Step> steps;
  // A step is complete if its closing brace is printed.
  for (std::size_t at = 0; (at = json.find("\"step\": ", at)) != std::string::npos; ++at) {
    if (json.find('}', at) == std::string::npos) break;
    steps.push_back({static_cast<std::int64_t>(number_after(json, at, "step")),
                     number_after(json, at, "loss")});
  }
  return steps;
}

std::vector<Step> trained(const std::string& command) {
  const Finished finished = run(command);
  INFO(command << "\n" << finished.err);
  REQUIRE(finished.code == 0);
  return steps_of(finished.out);
}

bool trains_alike(int ranks, const std::string& arguments,
                  const std::array<std::string, 2>& options, const std::string& before) {
  std::vector<std::pair<std::vector<Step>, std::string>> runs;
  for (const std::string& option : options) {
    const Folder folder;
    const auto gradients = folder / "gradients.safetensors";
    const std::vector<Step> steps =
        trained(before + under_mpirun(ranks, arguments + " --steps 2 " + option +
                                                 " --dump-gradients " + gradients.string()));
    std::ifstream file(gradients, std::ios::binary);
    runs.emplace_back(steps, std::string(std::istreambuf_iterator<char>(file), {}));
  }
  return runs[0] == runs[1] && runs[0].first.size() == 2 && !runs[0].second.empty();
}

bool reduces_alike(int ranks, const std::string& arguments, const std::string& before) {
  return trains_alike(ranks, arguments,
                      {"--overlap-gradient-reduction off", "--overlap-gradient-reduction on"},
                      before);
}

}  // namespace tpsim::test
