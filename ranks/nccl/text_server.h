// A TCP server in rank 0 that stores short texts by key, for the ranks of a job.
//
// A request is token, key and value (empty to query). The answer is the text stored under the key.
// Each text is preceded by its length, 32 bits in native byte order. The first value of a key is
// kept. Requests without the job's token are ignored.
//
// One thread serves all connections concurrently. A slow connection does not delay others and is
// closed after several seconds. Stored and unread data are bounded.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace tpsim {

inline constexpr std::size_t kLongestToken = 256;
inline constexpr std::size_t kLongestKey = 256;
inline constexpr std::size_t kLongestValue = std::size_t{1} << 14;
inline constexpr std::size_t kMostStoredBytes = std::size_t{16} << 20;

// Returns `text` preceded by its length.
std::string framed(std::string_view text);

class TextServer {
 public:
  virtual ~TextServer() = default;

  // Starts a server that listens only on `host`, a name or an address. Exception: if a name other
  // than localhost resolves only to loopback on this machine (127.0.1.1 in Debian's /etc/hosts),
  // the server listens on all interfaces, because other machines resolve the name to another
  // address.
  static Result<std::unique_ptr<TextServer>> start(const std::string& host, int port,
                                                   const std::string& token);
};

}  // namespace tpsim
