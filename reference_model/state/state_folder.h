// Saved training states on disk: one folder step-NNNNNNNN for each.
//
// A state is written into a hidden folder, its manifest last, and renamed when all of it has
// reached the disk; so a folder step-* is whole unless somebody damaged it, and the manifest tells
// that too: it holds the size and a checksum of each file. It says what the state belongs to as
// well.
//
// The two newest whole states are kept, the one just written among them. A state is removed only
// when two whole ones are newer: one that is damaged never takes the place of one that is not.
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
  std::uint64_t checksum = 0;  // detects damage, not malice
};
// As the file is now on disk.
Result<StateFile> describe_state_file(const std::filesystem::path& path);

// Folder of a complete state of a step.
std::filesystem::path saved_state(const std::filesystem::path& folder, std::int64_t step);

// Folder of the files of a state that is being written.
std::filesystem::path unfinished_state(const std::filesystem::path& folder, std::int64_t step);
// Makes that folder, empty. What an earlier run left unfinished is removed.
Status begin_state(const std::filesystem::path& folder, std::int64_t step);
// All files are in it: makes it the state of that step and forgets older ones. Reads the state
// before it, to know that it is whole. `run` is what it belongs to.
Status complete_state(const std::filesystem::path& folder, std::int64_t step,
                      const std::vector<StateFile>& files, const RunFacts& run);
// Removes what there is of unfinished states.
void discard_unfinished_states(const std::filesystem::path& folder);

struct SavedState {
  std::filesystem::path path;  // empty: nothing has been saved
  std::int64_t step = 0;
  RunFacts run;                          // what it belongs to; empty: an older tpsim did not say
  std::vector<std::string> passed_over;  // newer ones that are damaged: which file, and how
};
// The newest state whose files are all as they were written. An error when states were saved but
// none is whole: a run must not start over in silence.
Result<SavedState> newest_whole_state(const std::filesystem::path& folder);

// One run at a time saves into a folder; the system releases the lock however the process ends.
class StateLock {
 public:
  // Makes the folder where it is missing. Waits a few seconds for a run that is just ending.
  static Result<StateLock> acquire(const std::filesystem::path& folder);
  ~StateLock();
  StateLock(StateLock&& other) noexcept;
  StateLock& operator=(StateLock&&) = delete;

 private:
  explicit StateLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace tpsim
