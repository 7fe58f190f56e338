// Sources: collector/http/http_server.cpp and http_connection.cpp.
#include "collector/http/http_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

/// A server at any free port, and raw connections to it.
struct ServerFixture : ClusterFixture {
  Result<std::unique_ptr<HttpServer>> server;

  ServerFixture()
      : server(HttpServer::start({"127.0.0.1", 0}, {path(),
                                                    {},
                                                    {},
                                                    [](const std::string&) -> Result<Caller> {
                                                      return Caller{0, "sphase web"};
                                                    },
                                                    [](const std::string&) {}})) {
    REQUIRE_MESSAGE(server, (server ? "" : server.error()));
  }

  int connect() const {
    const int wire = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons((*server)->port());
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{10, 0};
    ::setsockopt(wire, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    REQUIRE(::connect(wire, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0);
    return wire;
  }
  /// Sends all of it, and what came back until the other end closed.
  std::string ask(const std::string& text) const {
    const int wire = connect();
    CHECK(::send(wire, text.data(), text.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(text.size()));
    ::shutdown(wire, SHUT_WR);
    std::string got;
    std::array<char, 4096> part{};
    ssize_t bytes = 0;
    while ((bytes = ::recv(wire, part.data(), part.size(), 0)) > 0) {
      got.append(part.data(), static_cast<std::size_t>(bytes));
    }
    CHECK(bytes == 0);
    ::close(wire);
    return got;
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE_FIXTURE(ServerFixture, "several requests of one connection are answered in order") {
  const std::string one = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string got = ask(one + one + one);
  CHECK(count(got, "HTTP/1.1 200 OK\r\n") == 3);
  CHECK(got.find("requests_total 1\n") < got.find("requests_total 3\n"));
}

TEST_CASE_FIXTURE(ServerFixture, "a connection that is not to be kept is closed after its answer") {
  const std::string one = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  CHECK(count(ask(one + one), "HTTP/1.1 401 ") == 1);
}

TEST_CASE_FIXTURE(ServerFixture, "a login comes with its cookie, and every answer with its rules") {
  const std::string got = ask("GET /login?token=x HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(got.starts_with("HTTP/1.1 303 "));
  for (const char* field :
       {"Location: /\r\n", "Set-Cookie: sphase=", "X-Content-Type-Options: nosniff\r\n",
        "Cache-Control: no-store\r\n", "X-Frame-Options: DENY\r\n", "frame-ancestors 'none'\r\n",
        "Referrer-Policy: no-referrer\r\n"}) {
    CAPTURE(field);
    CHECK(got.find(field) != std::string::npos);
  }
}

TEST_CASE_FIXTURE(ServerFixture, "HEAD is answered with the length and without the body") {
  const std::string got = ask("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(got.starts_with("HTTP/1.1 401 "));
  CHECK(got.ends_with("\r\n\r\n"));
  CHECK(got.find("Content-Length: 0\r\n") == std::string::npos);
}

TEST_CASE_FIXTURE(ServerFixture,
                  "what is not HTTP as it is taken here is refused in so many words") {
  const std::string host = "Host: localhost\r\n";
  const std::pair<std::string, std::string> refused[] = {
      {"\x16\x03\x01\r\n\r\n", "400"},
      {"GET / HTTP/3.0\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n" + host + "Content-Length: 5\r\n\r\nhello", "400"},
      {"GET / HTTP/1.1\r\n" + host + "Content-Length: x\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
       "400"},
      {"GET / HTTP/1.1\r\n" + host + "X: " + std::string(9000, 'a') + "\r\n\r\n", "431"},
      {"GET /" + std::string(500'000, 'a') + " HTTP/1.1\r\n" + host + "\r\n", "431"},
      {"POST / HTTP/1.1\r\n" + host + "\r\n", "405"},
      {"GET / HTTP/1.1\r\n\r\n", "421"},
  };
  for (const auto& [text, status] : refused) {
    const std::string begin = text.substr(0, 60);
    CAPTURE(begin);
    CHECK(ask(text).substr(0, 13) == "HTTP/1.1 " + status + " ");
  }
  CHECK(ask("") == "");
  CHECK(ask("GET / HT") == "");
  CHECK(ask("GET / HTTP/1.1\r\n" + host + "\r\n").starts_with("HTTP/1.1 401 "));
}

TEST_CASE_FIXTURE(ServerFixture, "it ends although connections are open") {
  const int silent = connect(), asking = connect();
  CHECK(::send(asking, "GET /", 5, MSG_NOSIGNAL) == 5);
  server->reset();
  char byte = 0;
  CHECK(::recv(silent, &byte, 1, 0) <= 0);
  ::close(silent);
  ::close(asking);
}

TEST_CASE_FIXTURE(ServerFixture, "a place that is taken is said in one sentence") {
  const auto second = HttpServer::start({"127.0.0.1", (*server)->port()}, {});
  REQUIRE(!second);
  CHECK(second.error().find("Address already in use") != std::string::npos);
}
