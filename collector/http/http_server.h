// `serve --http`: the sockets of the web pages. Two threads of its own: one for all connections,
// one that answers, with a database connection of its own to read: nothing here is ever in the way
// of what the nodes ship.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "collector/http/url.h"
#include "collector/http/website.h"
#include "collector/wire/asio.h"

namespace sphase {

class HttpServer {
 public:
  using Tcp = boost::asio::ip::tcp;
  using Done = std::function<void(HttpAnswer)>;

  /// Listens, and serves until it is destroyed. Errors: one sentence.
  static Result<std::unique_ptr<HttpServer>> start(const ListenPlace& place,
                                                   WebsiteOptions options);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  std::uint16_t port() const { return port_; }

  // For its connections, in their thread.
  /// Calls `done` in the connections' thread.
  void answer(HttpQuestion question, Done done);
  void opened() { ++connections_; }
  void closed() { --connections_; }
  /// False: answers under way have so much memory together that this one has to wait.
  bool reserve(std::size_t bytes);
  void release(std::size_t bytes) { answer_bytes_ -= bytes; }

 private:
  explicit HttpServer(WebsiteOptions options);
  Status listen(const ListenPlace& place);
  void accept();
  void accept_later();

  Website website_;  // in the thread of `answers_` alone
  std::size_t connections_ = 0, answer_bytes_ = 0;
  std::uint16_t port_ = 0;
  boost::asio::io_context io_{1};
  Tcp::acceptor acceptor_;
  boost::asio::steady_timer accept_timer_;
  boost::asio::thread_pool answers_{1};
  std::thread thread_;
};

}  // namespace sphase
