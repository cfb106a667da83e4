// Saved states: which are kept, and which are complete.
#include "reference_model/state/state_folder.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "core/base/files.h"
#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;
using Folder = test::TemporaryFolder;

constexpr const char* kFile = "rank-00000.safetensors";
const RunFacts kRun = {{"model.hidden", "64"}, {"lr", "0.0001"}, {"seed", "1"}};

void save(const Folder& folder, std::int64_t step) {
  REQUIRE(begin_state(folder.path(), step).ok());
  const fs::path file = unfinished_state(folder.path(), step) / kFile;
  REQUIRE(write_file_atomically(file, "state of step " + std::to_string(step)).ok());
  REQUIRE(complete_state(folder.path(), step, {*describe_state_file(file)}, kRun).ok());
}

void damage(const Folder& folder, std::int64_t step) {
  std::fstream file(saved_state(folder.path(), step) / kFile,
                    std::ios::in | std::ios::out | std::ios::binary);
  file.put('X');
}

// Creates a state folder with a foreign manifest.
void plant(const Folder& folder, std::int64_t step, const std::string& manifest) {
  fs::create_directories(saved_state(folder.path(), step));
  std::ofstream(saved_state(folder.path(), step) / "manifest.json") << manifest;
}

std::string manifest_of(std::int64_t step, const std::string& files) {
  return R"({"format": "tpsim-state/1", "step": )" + std::to_string(step) + R"(, "files": [)" +
         files + "]}";
}

std::string hex_of(std::uint64_t number) {
  std::ostringstream text;
  text << std::hex << std::setw(16) << std::setfill('0') << number;
  return text.str();
}

std::int64_t newest(const Folder& folder) {
  const auto found = newest_whole_state(folder.path());
  return found.ok() ? found->step : -1;
}

bool is_there(const Folder& folder, std::int64_t step) {
  return fs::exists(saved_state(folder.path(), step) / "manifest.json");
}

}  // namespace

TEST_CASE("newer, damaged states do not displace complete ones") {
  const Folder folder;
  for (const std::int64_t step : {98, 99}) plant(folder, step, "{}");
  for (const std::int64_t step : {1, 2, 3}) {
    save(folder, step);
    CHECK(newest(folder) == step);
  }
  CHECK(is_there(folder, 2));
  CHECK_FALSE(is_there(folder, 1));
}

TEST_CASE("the newest complete state is kept by the next save, among any damaged states") {
  constexpr std::int64_t kOld = 6;
  for (int mask = 0; mask < 1 << kOld; ++mask) {
    const Folder folder;
    // Saved separately, so that no state is removed meanwhile.
    for (std::int64_t step = 1; step <= kOld; ++step) {
      const Folder elsewhere;
      save(elsewhere, step);
      fs::rename(saved_state(elsewhere.path(), step), saved_state(folder.path(), step));
      if ((mask >> (step - 1) & 1) != 0) damage(folder, step);
    }
    const std::int64_t before = newest(folder);
    save(folder, kOld + 1);
    INFO("mask " << mask);
    CHECK(newest(folder) == kOld + 1);
    if (before > 0) {
      damage(folder, kOld + 1);
      CHECK(newest(folder) == before);
    }
  }
}

TEST_CASE("a state that replaces another one exists before the other is removed") {
  const Folder folder;
  save(folder, 5);
  damage(folder, 5);
  save(folder, 5);
  CHECK(newest(folder) == 5);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a manifest lists exactly the files of its folder") {
  const Folder folder;
  save(folder, 1);
  const std::string row = R"({"name": "@", "bytes": 0, "checksum": "0"})";
  const auto named = [&](const std::string& name) {
    std::string text = row;
    return text.replace(text.find('@'), 1, name);
  };
  for (const char* name : {"/dev/zero", "../step-00000001/rank-00000.safetensors", "..", "."}) {
    plant(folder, 9, manifest_of(9, named(name)));
    CHECK(newest(folder) == 1);
  }
  plant(folder, 9, manifest_of(9, ""));
  CHECK(newest(folder) == 1);
  // A state of another step under this step's name.
  fs::remove_all(saved_state(folder.path(), 9));
  fs::copy(saved_state(folder.path(), 1), saved_state(folder.path(), 9));
  CHECK(newest(folder) == 1);
  // A file that the manifest does not list would be read too.
  save(folder, 9);
  CHECK(newest(folder) == 9);
  std::ofstream(saved_state(folder.path(), 9) / "stray.safetensors") << "x";
  CHECK(newest(folder) == 1);
}

TEST_CASE("a pipe in place of a state's file is skipped and not read") {
  for (const std::string name : {"manifest.json", kFile}) {
    const Folder folder;
    save(folder, 1);
    save(folder, 2);
    const fs::path file = saved_state(folder.path(), 2) / name;
    fs::remove(file);
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    CHECK(newest(folder) == 1);
  }
}

TEST_CASE("a state records its run, and a different run lists the differences") {
  const Folder folder;
  save(folder, 1);
  const RunFacts saved = newest_whole_state(folder.path())->run;
  CHECK(saved == kRun);
  CHECK(differences(saved, kRun).empty());
  const RunFacts other = {{"model.hidden", "64"}, {"lr", "5"}, {"seed", "1"}, {"eps", "1e-8"}};
  CHECK(
      differences(saved, other) ==
      std::vector<std::string>{"lr was 0.0001 and is now 5", "eps was not stated and is now 1e-8"});
  CHECK(check_model(saved, other).ok());
  CHECK_FALSE(check_model(saved, {{"model.hidden", "128"}}).ok());
}

TEST_CASE("a state of an older version, without a record of its run, is read") {
  const Folder folder;
  save(folder, 1);
  const fs::path state = saved_state(folder.path(), 1);
  const StateFile file = *describe_state_file(state / kFile);
  plant(folder, 1,
        manifest_of(1, R"({"name": ")" + std::string(kFile) + R"(", "bytes": )" +
                           std::to_string(file.bytes) + R"(, "checksum": ")" +
                           hex_of(file.checksum) + R"("})"));
  const auto found = newest_whole_state(folder.path());
  REQUIRE(found.ok());
  CHECK(found->step == 1);
  CHECK(found->run.empty());
}

}  // namespace tpsim
