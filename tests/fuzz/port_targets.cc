// The input is sent to the server inside rank 0. A rank must still be served afterwards.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "ranks/nccl/socket.h"
#include "ranks/nccl/text_server.h"
#include "tests/fuzz/fuzz_target.h"

namespace tpsim::fuzz {
namespace {

constexpr const char* kToken = "token";

class Server {
 public:
  Server() {
    // The first free port of a range, since several fuzzers may run on a machine.
    for (port_ = 29700; port_ < 29800; ++port_) {
      auto started = TextServer::start("127.0.0.1", port_, kToken);
      if (!started.ok()) continue;
      server_ = std::move(started).value();
      return;
    }
    demand(false, "a port to listen on");
  }

  // Tens of thousands of connections per minute use up the local ports, which become free one by
  // one.
  static bool connects(const Socket& socket, const sockaddr_in& to) {
    for (int tries = 0; tries < 400; ++tries) {
      if (::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
        return true;
      }
      // libFuzzer's timer interrupts connect(), which then completes by itself (connect(2)).
      if (errno == EINTR) {
        pollfd wait{socket.descriptor(), POLLOUT, 0};
        return ::poll(&wait, 1, 10000) == 1 && (wait.revents & POLLERR) == 0;
      }
      if (errno != EADDRNOTAVAIL) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  // A closed connection stays in TIME_WAIT for a minute, and at most 131,072 of them fit
  // (net.ipv4.tcp_max_tw_buckets). The pause limits connections to 1,400 per second.
  std::string answer_to(std::string_view message) const {
    std::this_thread::sleep_for(std::chrono::microseconds(700));
    const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    // Every caller has a different loopback address, so that more ports are available.
    static std::uint32_t callers = 0;
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(0x7f000001U + callers++ % 0xfffffU);
    static_cast<void>(
        ::bind(socket.descriptor(), reinterpret_cast<const sockaddr*>(&from), sizeof from));
    // Closes with a reset, which skips TIME_WAIT.
    const linger at_once{1, 0};
    ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    demand(connects(socket, to), "the server takes callers");
    static_cast<void>(::send(socket.descriptor(), message.data(), message.size(), MSG_NOSIGNAL));
    ::shutdown(socket.descriptor(), SHUT_WR);
    std::string answer;
    char block[4096];
    while (true) {
      const ssize_t n = ::recv(socket.descriptor(), block, sizeof block, 0);
      if (n <= 0) return answer;
      answer.append(block, static_cast<std::size_t>(n));
    }
  }

 private:
  int port_ = 0;
  std::unique_ptr<TextServer> server_;
};

}  // namespace

void answer_caller(std::string_view bytes) {
  static const Server server;
  const std::string answer = server.answer_to(bytes);
  demand(answer.empty() || bytes.starts_with(framed(kToken)), "only who has the token is answered");
  // Every 64th call, since this conversation takes as long as the one under test.
  static unsigned calls = 0;
  if (calls++ % 64 != 0) return;
  const std::string asked = framed(kToken) + framed("fuzz-own-key") + framed("own");
  demand(server.answer_to(asked) == framed("own"), "a rank is served");
}

}  // namespace tpsim::fuzz
