#include "ranks/nccl/text_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "ranks/nccl/socket.h"

namespace tpsim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConversation(5);  // from the first byte to the last
constexpr std::size_t kMostCallers = 256;         // the next connection replaces the oldest
constexpr std::array kLongest = {kLongestToken, kLongestKey, kLongestValue};

// Compares in constant time, so that timing does not reveal a matching prefix.
bool is_same(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

// State of a connection: the received data, and the answer that has not been sent yet.
class Conversation {
 public:
  explicit Conversation(Socket socket)
      : socket_(std::move(socket)), end_(Clock::now() + kConversation) {}

  const Socket& socket() const { return socket_; }
  bool is_answered() const { return !answer_.empty(); }
  bool is_late() const { return Clock::now() > end_; }

  // Reads available data. Returns false at the end of the connection, or if the data is invalid.
  bool listen() {
    std::array<char, 4096> block;
    const ssize_t n = ::recv(socket_.descriptor(), block.data(), block.size(), 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    heard_.append(block.data(), static_cast<std::size_t>(n));
    return n > 0 && parse();
  }
  // Whether all three texts were received.
  bool is_complete() const { return texts_.size() == kLongest.size(); }
  const std::string& text(std::size_t i) const { return texts_[i]; }

  void answer(std::string_view text) { answer_ = framed(text); }
  // Sends a part of the answer. Returns whether more remains to be sent; false if the peer is gone.
  bool speak() {
    const ssize_t n =
        ::send(socket_.descriptor(), answer_.data() + sent_, answer_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<std::size_t>(n);
    return sent_ < answer_.size();
  }

 private:
  bool parse() {
    while (!is_complete() && heard_.size() >= sizeof(std::uint32_t)) {
      std::uint32_t size = 0;
      std::memcpy(&size, heard_.data(), sizeof size);
      if (size > kLongest[texts_.size()]) return false;
      if (heard_.size() < sizeof size + size) return true;
      texts_.push_back(heard_.substr(sizeof size, size));
      heard_.erase(0, sizeof size + size);
    }
    return !is_complete() || heard_.empty();
  }

  Socket socket_;
  Clock::time_point end_;
  std::string heard_, answer_;
  std::size_t sent_ = 0;
  std::vector<std::string> texts_;
};

class ThreadedServer final : public TextServer {
 public:
  ThreadedServer(std::vector<Socket> listeners, std::string token)
      : listeners_(std::move(listeners)), token_(std::move(token)) {
    thread_ = std::thread([this] { serve(); });
  }
  ~ThreadedServer() override {
    ends_ = true;
    thread_.join();
  }
  ThreadedServer(const ThreadedServer&) = delete;
  ThreadedServer& operator=(const ThreadedServer&) = delete;

 private:
  void serve() {
    while (!ends_) {
      try {
        serve_once();
      } catch (const std::exception&) {
        callers_.clear();  // out of memory: the peers retry
      }
    }
  }

  void serve_once() {
    std::vector<pollfd> waiting;
    for (const Socket& listener : listeners_) waiting.push_back({listener.descriptor(), POLLIN, 0});
    for (const Conversation& caller : callers_) {
      const short event = caller.is_answered() ? POLLOUT : POLLIN;
      waiting.push_back({caller.socket().descriptor(), event, 0});
    }
    constexpr int kMilliseconds = 100;
    const bool any = ::poll(waiting.data(), waiting.size(), kMilliseconds) > 0;
    std::size_t i = listeners_.size();
    for (auto caller = callers_.begin(); caller != callers_.end(); ++i) {
      const bool goes_on = !any || waiting[i].revents == 0 || go_on(*caller);
      caller = goes_on && !caller->is_late() ? std::next(caller) : callers_.erase(caller);
    }
    for (std::size_t at = 0; any && at < listeners_.size(); ++at) {
      if (waiting[at].revents != 0) accept_one(listeners_[at]);
    }
  }

  void accept_one(const Socket& listener) {
    Socket socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const bool has_no_room = !socket.good() && (errno == EMFILE || errno == ENFILE);
    if (callers_.size() == kMostCallers || (has_no_room && !callers_.empty())) callers_.pop_front();
    if (socket.good()) callers_.emplace_back(std::move(socket));
  }

  bool go_on(Conversation& caller) {
    if (caller.is_answered()) return caller.speak();
    if (!caller.listen()) return false;
    if (!caller.is_complete()) return true;
    if (!is_same(caller.text(0), token_)) return false;
    caller.answer(exchange(caller.text(1), caller.text(2)));
    return true;
  }

  // Stores `value` if the key has no value yet, and returns the stored value. Returns an empty text
  // for a key without value, or if the storage limit is exceeded.
  std::string exchange(const std::string& key, const std::string& value) {
    const auto found = texts_.find(key);
    if (found != texts_.end()) return found->second;
    const std::size_t size = key.size() + value.size();
    if (value.empty() || stored_ + size > kMostStoredBytes) return "";
    stored_ += size;
    return texts_.emplace(key, value).first->second;
  }

  std::vector<Socket> listeners_;
  std::string token_;
  std::list<Conversation> callers_;  // oldest first
  std::map<std::string, std::string> texts_;
  std::size_t stored_ = 0;  // bytes
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return address.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

// Returns a listening socket. Returns nothing, with errno set, if the machine cannot listen on the
// address.
std::optional<Socket> listener_at(const sockaddr* address, socklen_t size) {
  Socket listener(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool listens = listener.good() && ::bind(listener.descriptor(), address, size) == 0 &&
                       ::listen(listener.descriptor(), SOMAXCONN) == 0;
  return listens ? std::optional(std::move(listener)) : std::nullopt;
}

std::optional<Socket> listener_on_all(int port) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  return listener_at(reinterpret_cast<const sockaddr*>(&any), sizeof any);
}

// Whether `host` is a numeric address or "localhost". The server then listens only on this address,
// even if it is loopback. Any other name that resolves only to loopback makes the server listen on
// all interfaces.
bool says_where(const std::string& host) {
  Addresses numeric;
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST;
  return host == "localhost" || ::getaddrinfo(host.c_str(), nullptr, &wanted, &numeric.first) == 0;
}

}  // namespace

std::string framed(std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::string message(reinterpret_cast<const char*>(&size), sizeof size);
  return message.append(text);
}

Result<std::unique_ptr<TextServer>> TextServer::start(const std::string& host, int port,
                                                      const std::string& token) {
  Addresses addresses;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  const int failed =
      ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &addresses.first);
  std::vector<Socket> listeners;
  int code = 0;
  bool leaves_machine = says_where(host);
  for (const addrinfo* at = addresses.first; at != nullptr && failed == 0; at = at->ai_next) {
    leaves_machine = leaves_machine || !is_loopback(*at->ai_addr);
    if (auto listener = listener_at(at->ai_addr, at->ai_addrlen)) {
      listeners.push_back(*std::move(listener));
    } else {
      code = errno;
    }
  }
  if (!leaves_machine && failed == 0) {
    listeners.clear();
    if (auto listener = listener_on_all(port)) listeners.push_back(*std::move(listener));
  }
  if (!listeners.empty()) {
    return std::unique_ptr<TextServer>(
        std::make_unique<ThreadedServer>(std::move(listeners), token));
  }
  return bad_input(fmt::format("cannot listen at {}:{}: {}", host, port,
                               failed != 0 ? ::gai_strerror(failed) : std::strerror(code)),
                   "MASTER_ADDR",
                   "set TPSIM_PORT to a free port; if MASTER_ADDR is not an address of this "
                   "machine, set TPSIM_BIND to one");
}

}  // namespace tpsim
