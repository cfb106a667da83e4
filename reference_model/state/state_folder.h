// Saved training states on disk: one folder step-NNNNNNNN for each.
//
// A state is written into a hidden folder, with the manifest last. The files are synced, and then
// the folder is renamed. A folder step-* is therefore complete. The manifest has the size and a
// checksum of each file, which detect later damage, and the run's settings (run_facts.h).
//
// The two newest intact states are kept. A state is removed only if two intact states are newer, so
// that a damaged state never replaces an intact one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "reference_model/state/run_facts.h"

namespace tpsim {

struct StateFile {
  std::string name;
  std::int64_t bytes = 0;
  std::uint64_t checksum = 0;  // detects damage, not tampering
};
// Reads a file and returns its name, size and checksum.
Result<StateFile> describe_state_file(const std::filesystem::path& path);

// Returns the folder of a complete state of a step.
std::filesystem::path saved_state(const std::filesystem::path& folder, std::int64_t step);

// Returns the folder for the files of a state that is being written.
std::filesystem::path unfinished_state(const std::filesystem::path& folder, std::int64_t step);
// Creates the empty folder unfinished_state(). Removes unfinished states of earlier runs.
Status begin_state(const std::filesystem::path& folder, std::int64_t step);
// Call after all files of the state are written. Writes the manifest, renames the folder to
// saved_state(), and removes older states. Reads the previous state to check that it is intact.
Status complete_state(const std::filesystem::path& folder, std::int64_t step,
                      const std::vector<StateFile>& files, const RunFacts& run);
// Removes unfinished states.
void discard_unfinished_states(const std::filesystem::path& folder);

struct SavedState {
  std::filesystem::path path;  // empty if there is no saved state
  std::int64_t step = 0;
  RunFacts run;                          // settings of its run; empty in states of older versions
  std::vector<std::string> passed_over;  // one message for each newer, damaged state
};
// Returns the newest intact state. Error if there are saved states but all are damaged, so that a
// run does not silently start from step 0.
Result<SavedState> newest_whole_state(const std::filesystem::path& folder);

// Lock of a folder for one run. The operating system releases the lock when the process ends.
class StateLock {
 public:
  // Creates the folder if it is missing. Waits up to ten seconds for another run to end.
  static Result<StateLock> acquire(const std::filesystem::path& folder);
  ~StateLock();
  StateLock(StateLock&& other) noexcept;
  StateLock& operator=(StateLock&&) = delete;

 private:
  explicit StateLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace tpsim
