// The server of rank 0 with malicious clients, on loopback only.
#include "ranks/nccl/text_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "ranks/nccl/rendezvous.h"
#include "ranks/nccl/socket.h"

namespace tpsim {
namespace {

constexpr const char* kToken = "the job's";

class Served {
 public:
  explicit Served(int port) : port_(port), server_(TextServer::start("127.0.0.1", port, kToken)) {
    REQUIRE(server_.ok());
  }
  Socket connected(const char* address = "127.0.0.1") const {
    Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
    socket.limit_waiting(std::chrono::seconds(20));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port_));
    ::inet_pton(AF_INET, address, &to.sin_addr);
    const int failed = ::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&to), sizeof to);
    return failed == 0 ? std::move(socket) : Socket(-1);
  }
  // Returns the answer to a complete request; empty if there is none.
  std::string ask(const std::string& token, const std::string& key,
                  const std::string& value = "") const {
    return answer_to(framed(token) + framed(key) + framed(value));
  }
  std::string answer_to(const std::string& message) const {
    const Socket socket = connected();
    ::send(socket.descriptor(), message.data(), message.size(), MSG_NOSIGNAL);
    std::string all;
    char block[4096];
    for (ssize_t n = 1; n > 0;) {
      n = ::recv(socket.descriptor(), block, sizeof block, 0);
      if (n > 0) all.append(block, static_cast<std::size_t>(n));
    }
    return all.size() < 4 ? "" : all.substr(4);
  }

 private:
  int port_;
  Result<std::unique_ptr<TextServer>> server_;
};

}  // namespace

TEST_CASE("only clients with the job's token are served, and the first value of a key stays") {
  const Served served(29641);
  CHECK(served.ask("another", "failure", "poison").empty());
  CHECK(served.ask("", "failure", "poison").empty());
  CHECK(served.ask(std::string(kToken) + "x", "failure", "poison").empty());
  CHECK(served.ask(kToken, "failure").empty());
  CHECK(served.ask(kToken, "failure", "rank 1") == "rank 1");
  CHECK(served.ask(kToken, "failure", "rank 2") == "rank 1");
}

TEST_CASE("silent and slow clients block no other client") {
  const Served served(29642);
  std::vector<Socket> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(served.connected());
  const Socket dripping = served.connected();
  ::send(dripping.descriptor(), "\x09", 1, MSG_NOSIGNAL);
  CHECK(served.ask(kToken, "id", "value") == "value");
  // Silent connections are closed after the timeout.
  pollfd waiting{silent.front().descriptor(), POLLIN, 0};
  REQUIRE(::poll(&waiting, 1, 60'000) == 1);
  char byte = 0;
  CHECK(::recv(silent.front().descriptor(), &byte, 1, 0) == 0);
}

TEST_CASE("too many clients close the oldest connection, and new ranks are served") {
  const Served served(29643);
  std::vector<Socket> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(served.connected());
  CHECK(served.ask(kToken, "id", "value") == "value");
}

TEST_CASE("invalid lengths, garbage and trailing texts are refused") {
  const Served served(29644);
  const std::string huge("\xff\xff\xff\x7f", 4);
  CHECK(served.answer_to(huge).empty());
  CHECK(served.answer_to(framed(kToken) + huge).empty());
  CHECK(served.answer_to(framed(kToken) + framed(std::string(kLongestKey + 1, 'k'))).empty());
  CHECK(served.answer_to(framed(kToken) + framed("id") + framed("v") + "more").empty());
  std::mt19937 random(7);
  for (int i = 0; i < 50; ++i) {
    std::string garbage(random() % 3000, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    served.answer_to(garbage + huge);
  }
  CHECK(served.ask(kToken, "id", "value") == "value");
}

TEST_CASE("the stored bytes are limited, and earlier values stay") {
  const Served served(29645);
  const std::string value(kLongestValue, 'v');
  CHECK(served.ask(kToken, "first", "1") == "1");
  const auto enough = kMostStoredBytes / kLongestValue;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < enough + 10; ++i) {
    taken += served.ask(kToken, "key-" + std::to_string(i), value).empty() ? 0 : 1;
  }
  CHECK(taken < enough);
  CHECK(taken > enough - 10);
  CHECK(served.ask(kToken, "first") == "1");
}

TEST_CASE("the server listens only at the given address") {
  const Served served(29646);
  CHECK(served.connected().good());
  CHECK_FALSE(served.connected("127.0.0.2").good());
  CHECK_FALSE(TextServer::start("192.0.2.1", 29647, kToken).ok());  // unassigned (RFC 5737)
}

TEST_CASE("a rank of another job is refused with a hint about the token") {
  const Served served(29648);
  Launch launch;
  launch.rank = 1;
  launch.size = 2;
  launch.address = launch.bind = "127.0.0.1";
  launch.port = 29648;
  launch.token = "another";
  const auto met = meet(launch);
  REQUIRE(met.ok());
  const Status put = (*met)->put("id", "value", std::chrono::seconds(0));
  REQUIRE_FALSE(put.ok());
  CHECK_THAT(put.error().hint, Catch::Contains("TPSIM_TOKEN"));
}

}  // namespace tpsim
