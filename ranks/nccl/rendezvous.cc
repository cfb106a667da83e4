#include "ranks/nccl/rendezvous.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

namespace tpsim {
namespace {

constexpr auto kPause = std::chrono::milliseconds(50);
constexpr std::chrono::seconds kAnswer(3);  // of the other side; then it counts as gone
constexpr std::uint32_t kLongestText = 1U << 16;

class FolderRendezvous final : public Rendezvous {
 public:
  explicit FolderRendezvous(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Makes the folder. Written under another name first, so that nobody reads half of it.
  Status put(const std::string& key, const std::string& value, std::chrono::seconds) override {
    // Two ranks may leave the same kind of message.
    const std::filesystem::path unfinished = folder_ / fmt::format("{}.{}", key, getpid());
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    std::ofstream file(unfinished, std::ios::binary);
    file.write(value.data(), static_cast<std::streamsize>(value.size()));
    file.close();
    error.clear();
    if (file) std::filesystem::rename(unfinished, folder_ / key, error);
    if (file && !error) return Ok{};
    return Error{ErrorKind::kBadInput, "cannot write " + unfinished.string(), "TPSIM_RENDEZVOUS",
                 "name a folder that all ranks may write to"};
  }

 protected:
  std::string look_up(const std::string& key) override {
    std::ifstream file(folder_ / key, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

 private:
  std::filesystem::path folder_;
};

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  int descriptor() const { return descriptor_; }
  // Of everything that waits for the other side, who may have stopped.
  void limit_waiting(std::chrono::seconds limit) const {
    const timeval time{limit.count(), 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  }
  bool good() const { return descriptor_ >= 0; }

  // A text with its length in front.
  bool send_text(const std::string& text) const {
    const auto size = static_cast<std::uint32_t>(text.size());
    std::string message(reinterpret_cast<const char*>(&size), sizeof size);
    message += text;
    for (std::size_t sent = 0; sent < message.size();) {
      const ssize_t n =
          send(descriptor_, message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }
  bool receive_text(std::string& text) const {
    std::uint32_t size = 0;
    if (!receive(&size, sizeof size) || size > kLongestText) return false;
    text.resize(size);
    return receive(text.data(), size);
  }

 private:
  bool receive(void* data, std::size_t size) const {
    for (std::size_t got = 0; got < size;) {
      const ssize_t n = recv(descriptor_, static_cast<char*>(data) + got, size - got, 0);
      if (n <= 0) return false;
      got += static_cast<std::size_t>(n);
    }
    return true;
  }

  int descriptor_;
};

// A conversation is: key, value (empty: a question), answer.
class TextServer {
 public:
  explicit TextServer(Socket listener) : listener_(std::move(listener)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~TextServer() {
    ends_ = true;
    thread_.join();
  }
  TextServer(const TextServer&) = delete;
  TextServer& operator=(const TextServer&) = delete;

 private:
  void serve() {
    while (!ends_) {
      pollfd waiting{listener_.descriptor(), POLLIN, 0};
      constexpr int kMilliseconds = 100;
      if (poll(&waiting, 1, kMilliseconds) > 0) answer();
    }
  }
  void answer() {
    const Socket caller(accept(listener_.descriptor(), nullptr, nullptr));
    if (!caller.good()) return;
    caller.limit_waiting(kAnswer);
    std::string key, value;
    if (!caller.receive_text(key) || !caller.receive_text(value)) return;
    if (!value.empty()) texts_.emplace(key, value);  // the first one stays
    const auto found = texts_.find(key);
    caller.send_text(found != texts_.end() ? found->second : "");
  }

  Socket listener_;
  std::map<std::string, std::string> texts_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

class TcpRendezvous final : public Rendezvous {
 public:
  TcpRendezvous(std::string host, int port, std::unique_ptr<TextServer> server)
      : host_(std::move(host)), port_(port), server_(std::move(server)) {}

  // The server may not be up yet.
  Status put(const std::string& key, const std::string& value,
             std::chrono::seconds limit) override {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (ask(key, value).empty()) {
      if (std::chrono::steady_clock::now() > end) {
        return Error{ErrorKind::kMissing,
                     fmt::format("rank 0 does not answer at {}:{}", host_, port_), "MASTER_ADDR",
                     ""};
      }
      std::this_thread::sleep_for(kPause);
    }
    return Ok{};
  }

 protected:
  std::string look_up(const std::string& key) override { return ask(key, ""); }

 private:
  std::string ask(const std::string& key, const std::string& value) const {
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
          server.send_text(key) && server.send_text(value) && server.receive_text(answer)) {
        return answer;
      }
    }
    return "";
  }

  std::string host_;
  int port_;
  std::unique_ptr<TextServer> server_;  // on rank 0
};

Result<std::unique_ptr<TextServer>> server_at(int port) {
  Socket listener(socket(AF_INET, SOCK_STREAM, 0));
  const int yes = 1;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool listens =
      listener.good() &&
      bind(listener.descriptor(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0 &&
      listen(listener.descriptor(), SOMAXCONN) == 0;
  if (listens) return std::make_unique<TextServer>(std::move(listener));
  return Error{ErrorKind::kBadInput,
               fmt::format("cannot listen on port {}: {}", port, std::strerror(errno)),
               "TPSIM_PORT", "set TPSIM_PORT to a free port"};
}

}  // namespace

Result<std::string> Rendezvous::get(const std::string& key, std::chrono::seconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (true) {
    std::string value = look_up(key);
    if (!value.empty()) return value;
    if (std::chrono::steady_clock::now() > end) {
      return Error{ErrorKind::kMissing,
                   fmt::format("no rank has put '{}' within {} s", key, limit.count()), "",
                   "some ranks did not start"};
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
    TPSIM_TRY(server, server_at(launch.port));
  }
  return std::unique_ptr<Rendezvous>(
      std::make_unique<TcpRendezvous>(launch.address, launch.port, std::move(server)));
}

}  // namespace tpsim
