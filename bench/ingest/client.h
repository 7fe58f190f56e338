// A node as the collector sees it, on a blocking socket: so that one program can be many of them.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "collector/wire/credential.h"
#include "collector/wire/frame.h"
#include "collector/wire/message.h"

namespace sphase {

class Client {
 public:
  Client(std::uint16_t port, const MungePlace& munge, const std::string& node,
         const std::string& file_id) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(port);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0) {
      throw std::runtime_error("cannot connect");
    }
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const auto challenge = parse_challenge(receive(FrameType::kChallenge));
    if (!challenge) throw std::runtime_error("no challenge");
    const Hello hello{challenge->nonce, std::string(kNonceBytes, 'n'), node, file_id, false};
    auto credential = make_credential(munge, body_of(hello));
    if (!credential) throw std::runtime_error(credential.error());
    send(frame_of(FrameType::kHello, *credential));
    const auto welcome = parse_welcome(receive(FrameType::kWelcome));
    if (!welcome) throw std::runtime_error("no welcome");
    change_ = welcome->change;
  }
  Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)), change_(other.change_) {}
  Client& operator=(Client&&) = delete;
  ~Client() {
    if (fd_ >= 0) ::close(fd_);
  }

  std::int64_t change() const { return change_; }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) throw std::runtime_error("cannot send");
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  std::string receive(FrameType type) {
    std::array<char, kHeaderBytes> header{};
    read(header.data(), header.size());
    const auto parsed = parse_header(header, kMostFrameBytes);
    if (!parsed) throw std::runtime_error("no frame");
    std::string body(parsed->body_bytes, '\0');
    read(body.data(), body.size());
    if (parsed->type != type) throw std::runtime_error("the collector says: " + body);
    return body;
  }

 private:
  void read(char* to, std::size_t bytes) {
    while (bytes > 0) {
      const ssize_t got = ::recv(fd_, to, bytes, 0);
      if (got <= 0) throw std::runtime_error("the connection ended");
      to += got;
      bytes -= static_cast<std::size_t>(got);
    }
  }

  int fd_ = -1;
  std::int64_t change_ = 0;
};

}  // namespace sphase
