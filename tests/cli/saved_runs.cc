#include "tests/cli/saved_runs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

namespace tpsim::test {

namespace fs = std::filesystem;

std::string saving(const Folder& folder) {
  return golden_arguments("bloom-tiny") + kLayout + "--save-every 3 --state " +
         (folder / "state").string() + " ";
}

std::string steps_up_to(std::int64_t last) { return "--steps " + std::to_string(last) + " "; }

std::vector<fs::path> states(const Folder& folder) {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder / "state", none)) {
    if (entry.path().filename().string().starts_with("step-")) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::int64_t step_of(const fs::path& state) {
  return std::stoll(state.filename().string().substr(5));
}

bool has_leftovers(const Folder& folder) {
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(folder / "state", none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(".step-") || name.ends_with(".tmp")) return true;
  }
  return false;
}

int count_of(const std::string& text, const std::string& piece) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(piece, at)) != std::string::npos; ++at) ++count;
  return count;
}

void check_goes_on(const Folder& folder, const std::vector<Step>& before) {
  const std::vector<fs::path> found = states(folder);
  const std::int64_t saved = found.empty() ? 0 : step_of(found.back());
  const std::int64_t last = std::max(saved, before.empty() ? 0 : before.back().number) + 2;
  const std::vector<Step> after = trained(tpsim_run(saving(folder) + steps_up_to(last)));
  const std::vector<Step> undisturbed =
      trained(tpsim_run(golden_arguments("bloom-tiny") + kLayout + steps_up_to(last)));
  REQUIRE(static_cast<std::int64_t>(undisturbed.size()) == last);
  REQUIRE(static_cast<std::int64_t>(after.size()) == last - saved);
  CHECK(std::equal(before.begin(), before.end(), undisturbed.begin()));
  CHECK(std::equal(after.begin(), after.end(), undisturbed.begin() + saved));
  CHECK_FALSE(has_leftovers(folder));
  CHECK(states(folder).size() <= 2);
}

}  // namespace tpsim::test
