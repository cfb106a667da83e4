// Requests of other programs as lines of a stream.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tpsim::cli {

// Reads lines from a file descriptor. A line above the size limit of JSON documents is truncated,
// and the JSON parser then rejects it.
class LineReader {
 public:
  // `name`: of the stream, for errors.
  LineReader(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  // Returns nothing at the end of the input.
  Result<std::optional<std::string>> next();

 private:
  Status fill();

  int descriptor_;
  std::string name_;
  std::array<char, 1 << 16> buffer_{};
  std::size_t at_ = 0, filled_ = 0;
};

// `name`: of the stream, for errors.
Status write_stream(int descriptor, std::string_view text, std::string_view name);

// Standard input and output, as other descriptors.
struct ProgramStreams {
  int requests = -1, answers = -1;
};
// Moves the standard streams and redirects the original ones to /dev/null. A request that names the
// path /dev/stdin then reads an empty file and not the following requests.
Result<ProgramStreams> move_standard_streams();

// Whether the reader of a pipe has closed it.
bool is_closed(int descriptor);

}  // namespace tpsim::cli
