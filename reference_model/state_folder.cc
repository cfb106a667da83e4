#include "reference_model/state_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include "core/files.h"
#include "core/json_document.h"
#include "core/json_fields.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr std::string_view kWholePrefix = "step-";
constexpr std::string_view kUnfinishedPrefix = ".step-";
constexpr std::size_t kKeptStates = 2;
constexpr int kLockSeconds = 10;

struct Manifest {
  std::int64_t step = 0;
  std::vector<StateFile> files;
};

Error bad(const fs::path& path, std::string message, std::string hint = "") {
  return Error{ErrorKind::kBadInput, std::move(message), path.string(), std::move(hint)};
}

std::string hex_of(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::uint64_t number_of(const std::string& hex) {
  std::uint64_t number = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), number, 16);
  return number;
}

std::string text_of(const Manifest& manifest) {
  const auto file_json = [](const StateFile& file) {
    return json_object(
        {{"name", file.name}, {"bytes", file.bytes}, {"checksum", hex_of(file.checksum)}});
  };
  return to_text(json_object({{"format", "tpsim-state/1"},
                              {"step", manifest.step},
                              {"files", json_array(manifest.files, file_json)}}));
}

Result<Manifest> read_manifest(const fs::path& state) {
  TPSIM_TRY(const JsonValue root, read_json_file(state / kManifest));
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  return spec_from_json<Manifest>(
      root, (state / kManifest).string(), [](FieldReader& in, Manifest& out) {
        in.format("tpsim-state/1");
        in.integer("step", out.step, {1, kMost});
        in.objects("files", out.files, [](FieldReader& row, StateFile& file) {
          row.text("name", file.name);
          row.integer("bytes", file.bytes, {0, kMost});
          std::string checksum;
          row.text("checksum", checksum);
          file.checksum = number_of(checksum);
        });
      });
}

Status check_file(const fs::path& state, const StateFile& written) {
  TPSIM_TRY(const StateFile found, describe_state_file(state / written.name));
  if (found.bytes != written.bytes) {
    return bad(state / written.name, fmt::format("has {} bytes of {}", found.bytes, written.bytes));
  }
  if (found.checksum != written.checksum) {
    return bad(state / written.name, "is damaged: its checksum is not the one it was written with");
  }
  return Ok{};
}

Status check_state(const fs::path& state) {
  TPSIM_TRY(const Manifest manifest, read_manifest(state));
  for (const StateFile& file : manifest.files) TPSIM_TRY_STATUS(check_file(state, file));
  return Ok{};
}

// Newest first.
std::vector<std::int64_t> saved_steps(const fs::path& folder) {
  std::vector<std::int64_t> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kWholePrefix)) continue;
    std::int64_t step = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kWholePrefix.size(), end, step);
    if (read.ec == std::errc() && read.ptr == end) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

// Without its manifest a state no longer counts, however far the removal gets.
void remove_state(const fs::path& state) {
  std::error_code ignored;
  fs::remove(state / kManifest, ignored);
  fs::remove_all(state, ignored);
}

Status create_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return bad(folder, "cannot create the folder: " + failed.message());
  return Ok{};
}

}  // namespace

Result<StateFile> describe_state_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return bad(path, fmt::format("cannot open the file: {}", std::strerror(errno)));
  StateFile file{path.filename().string(), 0, 0x9e3779b97f4a7c15ULL};
  std::vector<char> block(std::size_t{1} << 20);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0) {
    const auto got = static_cast<std::size_t>(in.gcount());
    std::fill(block.begin() + static_cast<std::ptrdiff_t>(got), block.end(), '\0');
    for (std::size_t i = 0; i < got; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, block.data() + i, 8);
      // One to one in the checksum so far: a change of one word is never lost.
      file.checksum = (file.checksum ^ word) * 0xff51afd7ed558ccdULL;
      file.checksum ^= file.checksum >> 32;
    }
    file.bytes += in.gcount();
  }
  if (in.bad()) return bad(path, "cannot read the file");
  return file;
}

fs::path saved_state(const fs::path& folder, std::int64_t step) {
  return folder / fmt::format("{}{:08}", kWholePrefix, step);
}

fs::path unfinished_state(const fs::path& folder, std::int64_t step) {
  return folder / fmt::format("{}{:08}", kUnfinishedPrefix, step);
}

Status begin_state(const fs::path& folder, std::int64_t step) {
  discard_unfinished_states(folder);
  return create_folder(unfinished_state(folder, step));
}

Status complete_state(const fs::path& folder, std::int64_t step,
                      const std::vector<StateFile>& files) {
  const fs::path from = unfinished_state(folder, step), to = saved_state(folder, step);
  TPSIM_TRY_STATUS(write_file_atomically(from / kManifest, text_of({step, files})));
  std::error_code failed;
  if (fs::exists(to, failed)) remove_state(to);  // it was damaged: the run went back before it
  fs::rename(from, to, failed);
  if (failed) return bad(from, "cannot rename to " + to.string() + ": " + failed.message());
  sync_folder(folder);
  const std::vector<std::int64_t> steps = saved_steps(folder);
  for (std::size_t i = kKeptStates; i < steps.size(); ++i) {
    remove_state(saved_state(folder, steps[i]));
  }
  return Ok{};
}

void discard_unfinished_states(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> unfinished;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(kUnfinishedPrefix)) {
      unfinished.push_back(entry.path());
    }
  }
  for (const fs::path& path : unfinished) fs::remove_all(path, ignored);
}

Result<SavedState> newest_whole_state(const fs::path& folder) {
  SavedState state;
  for (const std::int64_t step : saved_steps(folder)) {
    const fs::path path = saved_state(folder, step);
    const Status whole = check_state(path);
    if (whole.ok()) {
      state.path = path;
      state.step = step;
      return state;
    }
    state.passed_over.push_back(to_string(whole.error()));
  }
  if (state.passed_over.empty()) return state;
  return bad(folder, fmt::format("no saved state is whole: {}", state.passed_over.front()),
             "remove the step-* folders to start over");
}

Result<StateLock> StateLock::acquire(const fs::path& folder) {
  TPSIM_TRY_STATUS(create_folder(folder));
  const fs::path path = folder / ".lock";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return bad(path, fmt::format("cannot write: {}", std::strerror(errno)));
  StateLock lock(descriptor);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kLockSeconds);
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) break;  // a file system without locks
    if (std::chrono::steady_clock::now() > end) {
      return bad(folder, "another run saves its state here",
                 "wait for it, or give another --state");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return lock;
}

StateLock::StateLock(StateLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

StateLock::~StateLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace tpsim
