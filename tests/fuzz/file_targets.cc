// Targets for binary files: the input is the header, where damage matters.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/files.h"
#include "core/json/safetensors.h"
#include "reference_model/state/state_folder.h"
#include "reference_model/state/tensor_store.h"
#include "reference_model/training/tokens.h"
#include "tests/fuzz/fuzz_target.h"

namespace tpsim::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kData = 64;  // bytes after a header

// A file with a header of correct length, and data.
std::string file_of(std::string_view header) {
  const std::uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof size);
  file += header;
  for (std::size_t i = 0; i < kData; ++i) file += static_cast<char>(i % 3);
  return file;
}

// A file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    demand(::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
           "memory for a file");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  fs::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// One folder per process; its files are overwritten.
const fs::path& work_folder() {
  static const Result<PrivateFolder> folder = PrivateFolder::create();
  demand(folder.ok(), "a folder to work in");
  return folder->path();
}

void write(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void check_file(const fs::path& path) {
  const auto file = SafetensorsFile::open(path);
  if (!file.ok()) return;
  const auto size = static_cast<std::int64_t>(fs::file_size(path));
  for (const auto& [name, entry] : file->entries()) {
    demand(entry.begin >= 8 && entry.begin <= entry.end && entry.end <= size,
           "a tensor lies inside its file");
    const std::int64_t width = bytes_of_dtype(entry.dtype);
    if (width == 0) continue;
    const std::int64_t count = (entry.end - entry.begin) / width;
    static_cast<void>(file->read_floats(name, 0, count));
    static_cast<void>(file->read_integers(name));
  }
}

}  // namespace

void read_safetensors(std::string_view bytes) {
  check_file(MemoryFile(bytes).path());  // the length field is part of the input
  const MemoryFile whole(file_of(bytes));
  check_file(whole.path());
}

void read_tokens(std::string_view bytes) {
  const MemoryFile file(file_of(bytes));
  const auto tokens = TokenSource::open(file.path());
  if (!tokens.ok()) return;
  demand(tokens->seq() >= 1 && tokens->batch() >= 1, "tokens that were taken are some");
  for (const std::int64_t step : {0, 1, 1'000'000}) {
    demand(tokens->sample(step, tokens->batch() - 1).size() ==
               static_cast<std::size_t>(tokens->seq() + 1),
           "a sample has the length of a sequence and one");
  }
}

// Two files of a checkpoint, separated by a zero byte.
void read_checkpoint(std::string_view bytes) {
  const std::size_t middle = std::min(bytes.find('\0'), bytes.size());
  const fs::path& folder = work_folder();
  write(folder / "a.safetensors", file_of(bytes.substr(0, middle)));
  write(folder / "b.safetensors", file_of(bytes.substr(std::min(middle + 1, bytes.size()))));
  const auto reader = BlockReader::open(folder);
  if (!reader.ok()) return;
  for (const std::string& name : reader->names()) {
    const auto whole = reader->read_whole(name);
    if (!whole.ok()) continue;
    demand(whole->values.size() <= 2 * kData / 2, "no tensor holds more than its files");
  }
}

void read_manifest(std::string_view bytes) {
  const fs::path state = saved_state(work_folder(), 7);
  std::error_code ignored;
  fs::create_directories(state, ignored);
  write(state / "rank-00000.safetensors", "data");
  write(state / "manifest.json", bytes);
  const auto found = newest_whole_state(work_folder());
  if (!found.ok()) return;
  demand(found->step == 7 && bytes.find("rank-00000") != std::string_view::npos,
         "a whole state names its file");
}

}  // namespace tpsim::fuzz
