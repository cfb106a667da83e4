// The data in the program compared with the folder it was packed from.
#include "core/base/shipped_data.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "core/base/files.h"
#include "core/scenario/catalogue.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMost = std::size_t{64} << 20;
const fs::path kData = fs::path(TPSIM_SOURCE_DIR) / "data";

TEST_CASE("every file that commands read is part of the program, byte for byte") {
  int files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kData)) {
    const fs::path name = entry.path().lexically_relative(kData);
    const bool is_read = entry.is_regular_file() && *name.begin() != "microbench" &&
                         *name.begin() != "left_out" && *name.begin() != "offers" &&
                         name.extension() != ".md";
    if (!is_read) continue;
    CAPTURE(name);
    const fs::path shipped = fs::path(kShippedRoot) / name;
    REQUIRE(file_is_there(shipped));
    CHECK(*read_file(shipped, kMost) == *read_file(entry.path(), kMost));
    ++files;
  }
  CHECK(files > 150);
}

TEST_CASE("folders in the program and on disk list the same names") {
  for (const char* folder : {"models", "clusters", "profiles", "stacks", "campaigns"}) {
    CAPTURE(folder);
    const auto names = stems_in(kData / folder, ".json");
    CHECK_FALSE(names.empty());
    CHECK(stems_in(fs::path(kShippedRoot) / folder, ".json") == names);
  }
  CHECK(stems_in("shipped:/model", ".json").empty());
  CHECK(stems_in(kData / "nowhere", ".json").empty());
}

TEST_CASE("a file that is not in the program is an error with its name") {
  const auto missing = read_file("shipped:/models/bloom-177b.json", kMost);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().where == "shipped:/models/bloom-177b.json");
  CHECK_FALSE(file_is_there("shipped:/models"));
}

TEST_CASE("the program's own data gives the same answers as the folder") {
  ::setenv("TPSIM_DATA", "shipped:", 1);
  const auto shipped = Catalogue::open();
  ::unsetenv("TPSIM_DATA");
  REQUIRE(shipped.ok());
  const Catalogue folder(kData);
  CHECK(shipped->load_model("bloom-176b")->name == "bloom-176b");
  CHECK(*shipped->contents_hash(CatalogueKind::kClusters, "jean-zay-a100") ==
        *folder.contents_hash(CatalogueKind::kClusters, "jean-zay-a100"));
  const auto runs = shipped->find_runs("bloom_jean_zay");
  REQUIRE(runs.ok());
  CHECK(*read_file(*runs, kMost) == *read_file(*folder.find_runs("bloom_jean_zay"), kMost));
}

}  // namespace
}  // namespace tpsim
