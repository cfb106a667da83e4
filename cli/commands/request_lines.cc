#include "cli/commands/request_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/json/json_document.h"

namespace tpsim::cli {
namespace {

Result<int> moved_stream(int descriptor, int flags) {
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int nothing = ::open("/dev/null", flags | O_CLOEXEC);
  if (moved < 0 || nothing < 0 || ::dup2(nothing, descriptor) < 0) {
    return Error{ErrorKind::kMissing, std::strerror(errno), "standard streams", ""};
  }
  ::close(nothing);
  return moved;
}

}  // namespace

Result<std::optional<std::string>> LineReader::next() {
  std::string line;
  bool has_begun = false;
  while (true) {
    if (at_ == filled_) TPSIM_TRY_STATUS(fill());
    if (filled_ == 0) return has_begun ? std::optional(std::move(line)) : std::nullopt;
    has_begun = true;
    const char* begin = buffer_.data() + at_;
    const auto* end = static_cast<const char*>(std::memchr(begin, '\n', filled_ - at_));
    const std::size_t length = end != nullptr ? end - begin : filled_ - at_;
    line.append(begin, std::min(length, kMostJsonBytes + 1 - line.size()));
    at_ += length + (end != nullptr ? 1 : 0);
    if (end != nullptr) return std::optional(std::move(line));
  }
}

Status LineReader::fill() {
  ssize_t count = 0;
  do {
    count = ::read(descriptor_, buffer_.data(), buffer_.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return bad_input(fmt::format("cannot read: {}", std::strerror(errno)), name_);
  at_ = 0;
  filled_ = static_cast<std::size_t>(count);
  return Ok{};
}

Status write_stream(int descriptor, std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return bad_input(fmt::format("cannot write: {}", std::strerror(errno)), std::string(name));
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return Ok{};
}

Result<ProgramStreams> move_standard_streams() {
  ProgramStreams streams;
  TPSIM_TRY(streams.requests, moved_stream(STDIN_FILENO, O_RDONLY));
  TPSIM_TRY(streams.answers, moved_stream(STDOUT_FILENO, O_WRONLY));
  return streams;
}

bool is_closed(int descriptor) {
  pollfd reader_side{.fd = descriptor, .events = 0, .revents = 0};
  return ::poll(&reader_side, 1, 0) > 0;
}

}  // namespace tpsim::cli
