// The socket where the step's programs fetch the ring (common/ring.h: hello, welcome).
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/result.h"
#include "spank/recorder/file.h"

namespace sphase {

class AppSocket {
 public:
  /// Number for the process `pid`, 0: refused.
  using AddClient = std::function<std::uint32_t(int pid)>;

  /// Binds `path` (made with mode 0600 and given to `uid`, so that nobody else can connect) and
  /// serves it on `io`. Peers of another uid are refused too, by SO_PEERCRED. At most kMostWaiting
  /// connections wait for their hello at once (all tasks of a node come together), each for at most
  /// a second.
  static Result<std::unique_ptr<AppSocket>> open(boost::asio::io_context& io,
                                                 const std::string& path, std::uint32_t uid,
                                                 std::uint32_t gid, int ring_fd,
                                                 std::uint32_t capacity, AddClient add_client);
  ~AppSocket();

  static constexpr int kMostWaiting = 512;

 private:
  AppSocket(boost::asio::io_context& io, Fd listener, std::string path, std::uint32_t uid,
            int ring_fd, std::uint32_t capacity, AddClient add_client);
  class Connection;
  void accept_next();
  void accept_one();
  void accept_later();
  bool welcome(int connection);

  boost::asio::io_context& io_;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer later_;
  std::string path_;
  std::uint32_t uid_;
  int ring_fd_;
  std::uint32_t capacity_;
  AddClient add_client_;
  std::shared_ptr<int> waiting_ = std::make_shared<int>(0);
  std::shared_ptr<AppSocket*> self_ =
      std::make_shared<AppSocket*>(this);  // what is queued may outlive us
};

}  // namespace sphase
