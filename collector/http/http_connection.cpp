#include "collector/http/http_connection.h"

namespace sphase {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::uint32_t kMostHeaderBytes = 8 << 10;
constexpr std::size_t kMostBufferedBytes = 16 << 10;
constexpr std::size_t kMostDrainedBytes = 1 << 20;
constexpr std::chrono::seconds kIdle{30}, kDraining{2};
/// For all of an answer: a page of 10 MB over a slow line.
constexpr std::chrono::seconds kWriting{120};

bool is_loopback(const boost::asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6())
        .is_loopback();
  }
  return address.is_loopback();
}

std::string text_of(beast::string_view view) { return {view.data(), view.size()}; }

/// What every answer has.
void set_common(http::response<http::string_body>& response, const HttpAnswer& answer) {
  response.set(http::field::content_type, answer.type);
  // What a policy in the page cannot say.
  response.set("Content-Security-Policy", answer.policy + "; frame-ancestors 'none'");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("X-Frame-Options", "DENY");
  response.set(http::field::cache_control, "no-store");
  response.set("Referrer-Policy", "no-referrer");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  for (const auto& [name, value] : answer.fields) response.set(name, value);
}

}  // namespace

HttpConnection::HttpConnection(HttpServer& server, boost::asio::ip::tcp::socket socket)
    : server_(server), stream_(std::move(socket)), buffer_(kMostBufferedBytes) {
  server_.opened();
  error_code failed;
  const auto end = stream_.socket().remote_endpoint(failed);
  from_loopback_ = !failed && is_loopback(end.address());
  stream_.socket().set_option(boost::asio::ip::tcp::no_delay(true), failed);
}

HttpConnection::~HttpConnection() {
  server_.release(reserved_);
  server_.closed();
}

void HttpConnection::read() {
  parser_.emplace();
  parser_->header_limit(kMostHeaderBytes);
  stream_.expires_after(kIdle);
  http::async_read(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](error_code failed, std::size_t) { self->handle(failed); });
}

void HttpConnection::handle(error_code failed) {
  if (failed) return refuse(failed);
  const auto& request = parser_->get();
  is_head_ = request.method() == http::verb::head;
  keep_ = request.keep_alive();
  version_ = request.version();
  HttpQuestion question{text_of(request.method_string()), text_of(request.target()),
                        text_of(request[http::field::host]), text_of(request[http::field::cookie]),
                        from_loopback_};
  stream_.expires_never();  // the answer may take its time; nothing is awaited of the other end
  server_.answer(std::move(question), [self = shared_from_this()](HttpAnswer answer) {
    self->write(std::move(answer));
  });
}

/// Answers what is not HTTP as we take it, and closes; whoever left or was silent gets no answer.
void HttpConnection::refuse(error_code why) {
  const bool is_wrong = why.category() == make_error_code(http::error::bad_method).category() &&
                        why != http::error::end_of_stream && why != http::error::partial_message;
  if (!is_wrong) return close();
  const bool too_long = why == http::error::header_limit || why == http::error::buffer_overflow;
  is_head_ = keep_ = false;
  write(too_long ? page_answer(431, "Too long", "The request has more than 8 KiB.")
                 : page_answer(400, "Bad request", "The request cannot be read."));
}

void HttpConnection::write(HttpAnswer&& answer) {
  if (!server_.reserve(answer.body.size())) {
    return write(page_answer(503, "Busy", "Too much is being sent. Try again in a moment."));
  }
  reserved_ = answer.body.size();
  response_ = {};
  response_.version(version_);
  response_.result(answer.status);
  response_.keep_alive(keep_);
  set_common(response_, answer);
  response_.content_length(answer.body.size());
  if (!is_head_) response_.body() = std::move(answer.body);
  stream_.expires_after(kWriting);
  http::async_write(
      stream_, response_,
      [self = shared_from_this()](error_code failed, std::size_t) { self->written(failed); });
}

void HttpConnection::written(error_code failed) {
  release();
  if (failed || !keep_) return close();
  read();
}

void HttpConnection::release() {
  response_ = {};
  server_.release(std::exchange(reserved_, 0));
}

void HttpConnection::close() {
  error_code failed;
  stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, failed);
  stream_.expires_after(kDraining);
  drain();
}

/// Reads what still comes, for a while: closing a socket with unread bytes would take the answer
/// away from the other end (RFC 9112, 9.6).
void HttpConnection::drain() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(kMostBufferedBytes),
                          [self = shared_from_this()](error_code failed, std::size_t bytes) {
                            self->drained_ += bytes;
                            if (!failed && self->drained_ < kMostDrainedBytes) self->drain();
                          });
}

}  // namespace sphase
