// One connection of a browser. Lives in the server's thread, and as long as something is awaited
// of it.
#pragma once

#include "collector/wire/asio.h"
// After Asio, which Boost 1.74's awaitable.hpp needs <utility> for.
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <optional>

#include "collector/http/http_server.h"

namespace sphase {

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(HttpServer& server, boost::asio::ip::tcp::socket socket);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;
  ~HttpConnection();

  /// Takes the next request.
  void read();

 private:
  void handle(boost::system::error_code failed);
  void refuse(boost::system::error_code why);
  void write(HttpAnswer&& answer);
  void written(boost::system::error_code failed);
  void release();
  void close();
  void drain();

  HttpServer& server_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> parser_;
  boost::beast::http::response<boost::beast::http::string_body> response_;
  bool from_loopback_ = false;
  std::size_t reserved_ = 0, drained_ = 0;  // B
  bool is_head_ = false, keep_ = false;
  unsigned version_ = 11;
};

}  // namespace sphase
