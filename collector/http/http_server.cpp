#include "collector/http/http_server.h"

#include "collector/http/http_connection.h"

namespace sphase {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMostConnections = 256;
/// Of answers that are not yet sent, together. Small ones always go.
constexpr std::size_t kMostAnswerBytes = 128 << 20, kSmallBytes = 64 << 10;

}  // namespace

HttpServer::HttpServer(WebsiteOptions options)
    : website_(std::move(options)), acceptor_(io_), accept_timer_(io_) {}

HttpServer::~HttpServer() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
  answers_.join();
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const ListenPlace& place,
                                                      WebsiteOptions options) {
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(options)));
  if (auto listening = server->listen(place); !listening) return Error{listening.error()};
  server->accept();
  server->thread_ = std::thread([raw = server.get()] { raw->io_.run(); });
  return server;
}

Status HttpServer::listen(const ListenPlace& place) {
  error_code failed;
  const Tcp::endpoint end(asio::ip::make_address(place.address, failed), place.port);
  const auto fail = [&] {
    return Error{"cannot listen for HTTP at " + place.address + " port " +
                 std::to_string(place.port) + ": " + failed.message()};
  };
  if (failed || acceptor_.open(end.protocol(), failed)) return fail();
  acceptor_.set_option(Tcp::acceptor::reuse_address(true), failed);
  if (end.address().is_v6()) acceptor_.set_option(asio::ip::v6_only(false), failed);
  if (acceptor_.bind(end, failed)) return fail();
  if (acceptor_.listen(asio::socket_base::max_listen_connections, failed)) return fail();
  port_ = acceptor_.local_endpoint(failed).port();
  return sphase::Done{};
}

void HttpServer::accept() {
  acceptor_.async_accept([this](error_code failed, Tcp::socket socket) {
    if (failed == asio::error::operation_aborted) return;
    if (failed) return accept_later();
    // One too many is closed as it goes out of scope.
    if (connections_ < kMostConnections) {
      std::make_shared<HttpConnection>(*this, std::move(socket))->read();
    }
    accept();
  });
}

/// Out of descriptors, as a rule: to try again at once would only burn a CPU.
void HttpServer::accept_later() {
  accept_timer_.expires_after(std::chrono::milliseconds(200));
  accept_timer_.async_wait([this](error_code cancelled) {
    if (!cancelled) accept();
  });
}

bool HttpServer::reserve(std::size_t bytes) {
  if (bytes > kSmallBytes && answer_bytes_ + bytes > kMostAnswerBytes) return false;
  answer_bytes_ += bytes;
  return true;
}

void HttpServer::answer(HttpQuestion question, Done done) {
  asio::post(answers_, [this, question = std::move(question), done = std::move(done)]() mutable {
    HttpAnswer answer = website_.answer(question);
    asio::post(io_, [answer = std::move(answer), done = std::move(done)]() mutable {
      done(std::move(answer));
    });
  });
}

}  // namespace sphase
