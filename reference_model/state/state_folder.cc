#include "reference_model/state/state_folder.h"

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
#include <set>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/base/files.h"
#include "core/json/json_document.h"
#include "core/json/json_fields.h"

namespace tpsim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr std::string_view kWholePrefix = "step-";
constexpr std::string_view kUnfinishedPrefix = ".step-";
constexpr int kKeptStates = 2;
constexpr int kLockSeconds = 10;

struct Manifest {
  std::int64_t step = 0;
  std::vector<StateFile> files;
  RunFacts run;  // absent in states of older versions
};

Error bad(const fs::path& path, std::string message, std::string hint = "") {
  return bad_input(std::move(message), path.string(), std::move(hint));
}

std::string hex_of(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::uint64_t number_of(const std::string& hex) {
  std::uint64_t number = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), number, 16);
  return number;
}

template <class Io, class Spec>
void manifest_fields(Io& io, Spec& manifest) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  io.format("tpsim-state/1");
  io.integer("step", manifest.step, {1, kMost});
  const auto fact_fields = [](auto& inner, auto& fact) {
    inner.text("name", fact.name);
    inner.text("value", fact.value);
  };
  io.objects("run", manifest.run, fact_fields, kOptional);
  io.objects("files", manifest.files, [](auto& inner, auto& file) {
    inner.text("name", file.name);
    inner.integer("bytes", file.bytes, {0, kMost});
    std::string checksum = hex_of(file.checksum);
    inner.text("checksum", checksum);
    if constexpr (!std::is_const_v<Spec>) file.checksum = number_of(checksum);
  });
}

std::string text_of(const Manifest& manifest) {
  return to_text(json_from_spec(
      manifest, [](FieldWriter& out, const Manifest& written) { manifest_fields(out, written); }));
}

Result<Manifest> read_manifest(const fs::path& state) {
  TPSIM_TRY(const JsonValue root, read_json_file(state / kManifest));
  return spec_from_json<Manifest>(
      root, (state / kManifest).string(),
      [](FieldReader& in, Manifest& read) { manifest_fields(in, read); });
}

// Whether a name is a file in the state's own folder. Other names are refused, because a manifest
// may come from an untrusted source.
bool is_plain_name(const std::string& name) {
  return fs::path(name).filename() == name && name != "." && name != "..";
}

// Error if the path is not a regular file: a pipe would block the reader, and a device never ends.
Status check_is_regular(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (fs::exists(status) && !fs::is_regular_file(status)) return bad(path, "is not a regular file");
  return Ok{};
}

Status check_file(const fs::path& state, const StateFile& written) {
  if (!is_plain_name(written.name)) {
    return bad(state / kManifest,
               fmt::format("lists '{}', which is not a plain file name", written.name));
  }
  const fs::path path = state / written.name;
  TPSIM_TRY_STATUS(check_is_regular(path));
  std::error_code ignored;
  const std::uintmax_t bytes = fs::file_size(path, ignored);  // a missing file is reported below
  if (!ignored && bytes != static_cast<std::uintmax_t>(written.bytes)) {
    return bad(path, fmt::format("has {} bytes, but must have {}", bytes, written.bytes));
  }
  TPSIM_TRY(const StateFile found, describe_state_file(path));
  if (found.checksum != written.checksum) {
    return bad(path, "is damaged: its checksum differs from the manifest");
  }
  return Ok{};
}

// Loading reads all safetensors files of the folder, so each of them must be in the manifest.
Status check_names(const fs::path& state, const Manifest& manifest) {
  std::set<std::string> named;
  for (const StateFile& file : manifest.files) {
    if (!named.insert(file.name).second) {
      return bad(state / kManifest, fmt::format("lists '{}' twice", file.name));
    }
  }
  if (named.empty()) return bad(state / kManifest, "lists no files");
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(state, ignored)) {
    const fs::path name = entry.path().filename();
    if (name.extension() == ".safetensors" && named.count(name.string()) == 0) {
      return bad(entry.path(), "does not belong to this state: the manifest does not list it");
    }
  }
  return Ok{};
}

// Returns the manifest of an intact state, else an error.
Result<Manifest> check_state(const fs::path& folder, std::int64_t step) {
  const fs::path state = saved_state(folder, step);
  TPSIM_TRY_STATUS(check_is_regular(state / kManifest));
  TPSIM_TRY(const Manifest manifest, read_manifest(state));
  if (manifest.step != step) {
    return bad(
        state / kManifest,
        fmt::format("states step {}, but the folder name states another step", manifest.step));
  }
  TPSIM_TRY_STATUS(check_names(state, manifest));
  for (const StateFile& file : manifest.files) TPSIM_TRY_STATUS(check_file(state, file));
  return manifest;
}

// Returns the steps of the folder's states, newest first. Ignores folders whose names differ from
// those of saved_state().
std::vector<std::int64_t> saved_steps(const fs::path& folder) {
  std::vector<std::int64_t> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kWholePrefix)) continue;
    std::int64_t step = 0;
    const char* const end = name.data() + name.size();
    const auto read = std::from_chars(name.data() + kWholePrefix.size(), end, step);
    const bool is_number = read.ec == std::errc() && read.ptr == end;
    if (is_number && name == saved_state(folder, step).filename()) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

// Removes the manifest first: if the removal is interrupted, the remaining files are not a valid
// state.
void remove_state(const fs::path& state) {
  std::error_code ignored;
  fs::remove(state / kManifest, ignored);
  fs::remove_all(state, ignored);
}

// Keeps the intact state `newest` and the kKeptStates - 1 intact states before it, and removes the
// states before these. Damaged states do not count as kept. States of later steps are not touched.
void forget_older_states(const fs::path& folder, std::int64_t newest) {
  int whole = 1;
  for (const std::int64_t step : saved_steps(folder)) {
    if (step >= newest) continue;
    if (whole >= kKeptStates) {
      remove_state(saved_state(folder, step));
    } else if (check_state(folder, step).ok()) {
      ++whole;
    }
  }
}

// Renames an intact state to its final name. A previous state of that name is removed only after
// the rename succeeds.
Status put_in_place(const fs::path& from, const fs::path& to) {
  const fs::path before = from.string() + ".before";
  std::error_code failed;
  if (fs::exists(to, failed)) fs::rename(to, before, failed);
  fs::rename(from, to, failed);
  if (failed) {
    std::error_code ignored;
    if (fs::exists(before, ignored)) fs::rename(before, to, ignored);
    return bad(from, "cannot rename to " + to.string() + ": " + failed.message());
  }
  sync_folder(to.parent_path());
  remove_state(before);
  return Ok{};
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
      // The mixing step is invertible, so that one changed word always changes the checksum.
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
                      const std::vector<StateFile>& files, const RunFacts& run) {
  const fs::path from = unfinished_state(folder, step), to = saved_state(folder, step);
  TPSIM_TRY_STATUS(write_file_atomically(from / kManifest, text_of({step, files, run})));
  TPSIM_TRY_STATUS(put_in_place(from, to));
  forget_older_states(folder, step);
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
    Result<Manifest> whole = check_state(folder, step);
    if (whole.ok()) {
      state.run = std::move(whole->run);
      state.path = saved_state(folder, step);
      state.step = step;
      return state;
    }
    state.passed_over.push_back(to_string(whole.error()));
  }
  if (state.passed_over.empty()) return state;
  return bad(folder,
             fmt::format("no saved state is intact. The newest one: {}", state.passed_over.front()),
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
    if (errno != EWOULDBLOCK) break;  // the file system does not support locks
    if (std::chrono::steady_clock::now() > end) {
      return bad(folder, "another run saves its state in this folder",
                 "wait for that run to end, or give another folder with --state");
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
