#include "core/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "core/base/shipped_data.h"

namespace tpsim {
namespace {

Error file_error(const std::filesystem::path& path, std::string_view verb, int code) {
  return bad_input(fmt::format("cannot {} the file: {}", verb, std::strerror(code)), path.string());
}

// A file that is deleted unless it is renamed to its final name. The temporary name is random
// because processes in different containers may share a process id.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& folder) {
    constexpr int kDraws = 100;
    for (int i = 0; i < kDraws; ++i) {
      // std::random_device needs glibc 2.36 when libstdc++ is linked statically.
      std::uint64_t name = 0;
      if (::getentropy(&name, sizeof name) != 0) return;
      path_ = folder / fmt::format(".tpsim-{:016x}.tmp", name);
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ >= 0 || errno != EEXIST) return;
    }
  }
  ~TemporaryFile() {
    const bool created = descriptor_ >= 0 || closed_;
    if (descriptor_ >= 0) ::close(descriptor_);
    if (created && !renamed_) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool is_open() const { return descriptor_ >= 0; }

  bool write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(descriptor_, text.data(), text.size());
      // A signal handler interrupted the write: try again.
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  bool sync() { return ::fsync(descriptor_) == 0; }

  bool rename_to(const std::filesystem::path& target) {
    closed_ = true;
    // Some file systems report a full disk only here.
    if (::close(std::exchange(descriptor_, -1)) != 0) return false;
    renamed_ = ::rename(path_.c_str(), target.c_str()) == 0;
    return renamed_;
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  bool closed_ = false;
  bool renamed_ = false;
};

}  // namespace

Result<PrivateFolder> PrivateFolder::create() {
  std::error_code code;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(code);
  if (code) return file_error(parent, "find a folder (TMPDIR) for", code.value());
  std::string name = (parent / "tpsim-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return file_error(name, "make", errno);
  return PrivateFolder(name);
}

PrivateFolder::PrivateFolder(PrivateFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t most_bytes) {
  if (is_shipped(path)) return read_shipped(path);
  const bool is_input = path == "-";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      is_input ? stdin : std::fopen(path.c_str(), "rb"),
      is_input ? [](std::FILE*) { return 0; } : &std::fclose);
  if (file == nullptr) return file_error(path, "open", errno);
  std::string text;
  char block[1 << 16];
  while (const std::size_t got = std::fread(block, 1, sizeof block, file.get())) {
    text.append(block, got);
    if (text.size() > most_bytes) {
      return bad_input(fmt::format("the file is larger than {} MiB", most_bytes >> 20),
                       path.string());
    }
  }
  if (std::ferror(file.get()) != 0) return file_error(path, "read", errno);
  return text;
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  return write_file_atomically(path, std::span(&text, 1));
}

Status write_file_atomically(const std::filesystem::path& path,
                             std::span<const std::string_view> pieces) {
  std::error_code code;
  std::filesystem::path target = std::filesystem::weakly_canonical(path, code);
  if (code) return file_error(path, "write", code.value());
  if (std::filesystem::exists(target, code) && !std::filesystem::is_regular_file(target, code)) {
    return bad_input("cannot write: it is not a regular file", path.string());
  }
  TemporaryFile file(target.parent_path());
  const auto written = [&] {
    return std::all_of(pieces.begin(), pieces.end(), [&](auto piece) { return file.write(piece); });
  };
  // Synced before the rename: after a crash the name must not refer to an empty file.
  if (!file.is_open() || !written() || !file.sync() || !file.rename_to(target)) {
    return file_error(path, "write", errno);
  }
  // Makes the rename durable: the file name is stored in the folder.
  sync_folder(target.parent_path());
  return Ok{};
}

}  // namespace tpsim
