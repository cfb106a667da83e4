// Keeps short texts under keys for the ranks of a job, over TCP: the server inside rank 0.
//
// A conversation is: token, key, value (empty: a question), and the answer, the text that is known
// under the key. Each text has its length in front, 32 bits as this machine counts. The first value
// of a key stays. Who does not know the job's token gets no answer, and nothing of his is kept.
//
// All callers are served at once, by one thread: one that is silent or slow holds up no other, and
// is given up after some seconds. What is stored, and what waits to be read, is bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tpsim {

inline constexpr std::size_t kLongestToken = 256;
inline constexpr std::size_t kLongestKey = 256;
inline constexpr std::size_t kLongestValue = std::size_t{1} << 14;
inline constexpr std::size_t kMostStoredBytes = std::size_t{16} << 20;

// `text` with its length in front.
std::string framed(std::string_view text);

class TextServer {
 public:
  virtual ~TextServer() = default;

  // Listens on `host` alone, a name or an address. A name that means this machine only to itself
  // (127.0.1.1 of Debian's /etc/hosts) means another address to other machines: then on all.
  static Result<std::unique_ptr<TextServer>> start(const std::string& host, int port,
                                                   const std::string& token);
};

}  // namespace tpsim
