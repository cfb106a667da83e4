#include "tests/emulated_gpu/shared_comm.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "tests/emulated_gpu/thread_block.h"

namespace tpsim::emulated {
namespace {

constexpr std::size_t kHeader = 64;  // bytes before the first mailbox

}  // namespace

struct Comm::Header {
  std::atomic<int> joined;
};

Comm::Header& Comm::header() const { return *reinterpret_cast<Header*>(memory_); }
Mailbox& Comm::mailbox(std::size_t i) { return reinterpret_cast<Mailbox*>(memory_ + kHeader)[i]; }
bool Comm::is_complete() const { return header().joined >= size_; }

// New memory is zero. The last rank to join unlinks the name.
Comm::Comm(std::string name, int rank, int size)
    : name_(std::move(name)), rank_(rank), size_(size) {
  const auto ranks = static_cast<std::size_t>(size);
  bytes_ = kHeader + (ranks + ranks * ranks) * sizeof(Mailbox);
  const int file = shm_open(name_.c_str(), O_CREAT | O_RDWR, 0600);
  void* memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes_)) == 0) {
    memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) end_with("no shared memory for a communicator");
  memory_ = static_cast<std::byte*>(memory);
  if (++header().joined == size_) shm_unlink(name_.c_str());
}

Comm::~Comm() {
  if (!is_complete()) shm_unlink(name_.c_str());
  munmap(memory_, bytes_);
}

}  // namespace tpsim::emulated
