// Files are written atomically.
#include "core/base/files.h"

#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>

#include "tests/temporary_folder.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

using Folder = test::TemporaryFolder;

std::ptrdiff_t entries(const Folder& folder) {
  return std::distance(fs::directory_iterator(folder.path()), {});
}

// Simulates a disk that is full after a number of bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_CASE("a written file is read back, and no other file is left") {
  const Folder folder;
  REQUIRE(write_file_atomically(folder / "plan.json", "first").ok());
  REQUIRE(write_file_atomically(folder / "plan.json", "second").ok());
  CHECK(*read_file(folder / "plan.json", 100) == "second");
  CHECK(entries(folder) == 1);
}

TEST_CASE("a full disk is an error that leaves only the old file") {
  const Folder folder;
  REQUIRE(write_file_atomically(folder / "plan.json", "old").ok());
  Status status = Ok{};
  {
    const FileSizeLimit limit(1000);
    status = write_file_atomically(folder / "plan.json", std::string(100'000, 'x'));
  }
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().kind == ErrorKind::kBadInput);
  CHECK_THAT(status.error().message, Catch::Contains("cannot write"));
  CHECK(*read_file(folder / "plan.json", 100) == "old");
  CHECK(entries(folder) == 1);
}

TEST_CASE("a missing folder, a folder and a device cannot be written") {
  const Folder folder;
  const Status missing = write_file_atomically(folder / "no" / "plan.json", "x");
  REQUIRE_FALSE(missing.ok());
  CHECK_THAT(missing.error().message, Catch::Contains("No such file"));
  fs::create_directory(folder / "sub");
  CHECK_FALSE(write_file_atomically(folder / "sub", "x").ok());
  CHECK_FALSE(write_file_atomically("/dev/null", "x").ok());
  CHECK_FALSE(fs::is_regular_file("/dev/null"));
}

TEST_CASE("a link is followed and stays a link") {
  const Folder folder;
  REQUIRE(write_file_atomically(folder / "real.json", "old").ok());
  fs::create_symlink(folder / "real.json", folder / "link.json");
  REQUIRE(write_file_atomically(folder / "link.json", "new").ok());
  CHECK(fs::is_symlink(folder / "link.json"));
  CHECK(*read_file(folder / "real.json", 100) == "new");
}

TEST_CASE("a file beyond the size limit is not read") {
  const Folder folder;
  REQUIRE(write_file_atomically(folder / "big", std::string(101, 'x')).ok());
  CHECK_FALSE(read_file(folder / "big", 100).ok());
  CHECK(read_file(folder / "big", 101).ok());
  CHECK_FALSE(read_file("/dev/zero", 1 << 20).ok());
}

TEST_CASE("a temporary file of a killed process with the same pid is overwritten") {
  const Folder folder;
  const std::string name = ".plan.json." + std::to_string(::getpid()) + ".tmp";
  std::ofstream(folder / name) << "half";
  CHECK(write_file_atomically(folder / "plan.json", "x").ok());
}

TEST_CASE("a file may have the longest name that its folder allows") {
  const Folder folder;
  const std::string name(255, 'n');
  REQUIRE(write_file_atomically(folder / name, "x").ok());
  CHECK(*read_file(folder / name, 10) == "x");
}

TEST_CASE("a private folder is new, accessible to its owner only, and removed with its files") {
  fs::path path;
  {
    const auto one = PrivateFolder::create(), other = PrivateFolder::create();
    REQUIRE(one.ok());
    REQUIRE(other.ok());
    path = one->path();
    CHECK(path != other->path());
    CHECK(fs::status(path).permissions() == fs::perms::owner_all);
    std::ofstream(path / "file.json") << "{}";
  }
  CHECK_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace tpsim
