#include "ranks/nccl/rendezvous.h"

#include <fmt/format.h>
#include <netdb.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "core/base/files.h"
#include "ranks/nccl/socket.h"
#include "ranks/nccl/text_server.h"

namespace tpsim {
namespace {

constexpr auto kPause = std::chrono::milliseconds(50);
constexpr std::chrono::seconds kAnswer(3);  // timeout of an answer

class FolderRendezvous final : public Rendezvous {
 public:
  explicit FolderRendezvous(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Creates the folder if needed. Files are written atomically, so that two ranks may write the
  // same key.
  Status put(const std::string& key, const std::string& value, std::chrono::seconds) override {
    std::error_code ignored;
    std::filesystem::create_directories(folder_, ignored);
    const Status written = write_file_atomically(folder_ / key, value);
    if (written.ok()) return Ok{};
    return bad_input(to_string(written.error()), "TPSIM_RENDEZVOUS",
                     "set it to a folder that all ranks can write to");
  }

 protected:
  std::string look_up(const std::string& key) override {
    std::ifstream file(folder_ / key, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  std::filesystem::path folder_;
};

bool send_all(const Socket& socket, const std::string& message) {
  for (std::size_t sent = 0; sent < message.size();) {
    const ssize_t n =
        send(socket.descriptor(), message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

bool receive_all(const Socket& socket, void* data, std::size_t size) {
  for (std::size_t got = 0; got < size;) {
    const ssize_t n = recv(socket.descriptor(), static_cast<char*>(data) + got, size - got, 0);
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

bool receive_text(const Socket& socket, std::string& text) {
  std::uint32_t size = 0;
  if (!receive_all(socket, &size, sizeof size) || size > kLongestValue) return false;
  text.resize(size);
  return receive_all(socket, text.data(), size);
}

class TcpRendezvous final : public Rendezvous {
 public:
  TcpRendezvous(const Launch& launch, std::unique_ptr<TextServer> server)
      : host_(launch.address),
        port_(launch.port),
        token_(launch.token),
        server_(std::move(server)) {}

  // Retries, since the server may not have started.
  Status put(const std::string& key, const std::string& value,
             std::chrono::seconds limit) override {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (ask(key, value).empty()) {
      if (std::chrono::steady_clock::now() > end) {
        return Error{
            ErrorKind::kMissing, fmt::format("rank 0 does not answer at {}:{}", host_, port_),
            "MASTER_ADDR",
            "check that rank 0 runs, and that all ranks have the same TPSIM_TOKEN or none"};
      }
      std::this_thread::sleep_for(kPause);
    }
    return Ok{};
  }

 protected:
  std::string look_up(const std::string& key) override { return ask(key, ""); }

 private:
  std::string ask(const std::string& key, const std::string& value) const {
    const std::string message = framed(token_) + framed(key) + framed(value);
    Addresses addresses;
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    if (getaddrinfo(host_.c_str(), std::to_string(port_).c_str(), &wanted, &addresses.first) != 0) {
      return "";
    }
    for (const addrinfo* at = addresses.first; at != nullptr; at = at->ai_next) {
      const Socket server(socket(at->ai_family, SOCK_STREAM, 0));
      server.limit_waiting(kAnswer);
      std::string answer;
      if (server.good() && connect(server.descriptor(), at->ai_addr, at->ai_addrlen) == 0 &&
          send_all(server, message) && receive_text(server, answer)) {
        return answer;
      }
    }
    return "";
  }

  std::string host_;
  int port_;
  std::string token_;
  std::unique_ptr<TextServer> server_;  // on rank 0 only
};

}  // namespace

Result<std::string> Rendezvous::get(const std::string& key, std::chrono::seconds limit,
                                    const FailureElsewhere& failure) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (true) {
    std::string value = look_up(key);
    if (!value.empty()) return value;
    if (std::string failed = failure ? failure() : ""; !failed.empty()) {
      return Error{ErrorKind::kMissing, std::move(failed), "", ""};
    }
    if (std::chrono::steady_clock::now() > end) {
      return Error{
          ErrorKind::kMissing,
          fmt::format("no rank stored '{}' at the rendezvous within {} s", key, limit.count()), "",
          "check that all ranks have started"};
    }
    std::this_thread::sleep_for(kPause);
  }
}

Result<std::unique_ptr<Rendezvous>> meet(const Launch& launch) {
  if (!launch.folder.empty()) {
    return std::unique_ptr<Rendezvous>(std::make_unique<FolderRendezvous>(launch.folder));
  }
  std::unique_ptr<TextServer> server;
  if (launch.rank == 0) {
    TPSIM_TRY(server, TextServer::start(launch.bind, launch.port, launch.token));
  }
  return std::unique_ptr<Rendezvous>(std::make_unique<TcpRendezvous>(launch, std::move(server)));
}

}  // namespace tpsim
