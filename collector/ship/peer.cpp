#include "collector/ship/peer.h"

#include <algorithm>
#include <chrono>

#include "common/clock.h"

namespace sphase {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSliceMs = 100;

}  // namespace

void Peer::close() {
  error_code ignored;
  socket_.close(ignored);
  io_.restart();
  io_.poll();  // ends what was under way, which still refers to us
  reading_ = read_done_ = false;
  read_problem_.clear();
}

bool Peer::run(std::int64_t limit_ms) {
  const std::int64_t until_ns = monotonic_ns() + limit_ms * kMs;
  while (!done_) {
    const std::int64_t left_ms = (until_ns - monotonic_ns()) / kMs;
    if (left_ms <= 0 || stop_()) return false;
    io_.restart();
    io_.run_one_for(milliseconds(std::min(left_ms, kSliceMs)));
  }
  return true;
}

Status Peer::connect(const std::string& host, std::uint16_t port, std::int64_t limit_ms) {
  close();
  socket_ = Tcp::socket(io_);
  Tcp::resolver resolver(io_);
  error_code failed;
  const auto places = resolver.resolve(host, std::to_string(port), failed);
  if (failed) return Error{"cannot find " + host + ": " + failed.message()};
  done_ = false;
  asio::async_connect(socket_, places, [this](error_code code, const Tcp::endpoint&) {
    failed_ = code;
    done_ = true;
  });
  const bool connected = run(limit_ms) && !failed_;
  const std::string why = done_ ? failed_.message() : "no answer";
  if (!connected) {
    close();
    return Error{"cannot reach " + host + " port " + std::to_string(port) + ": " + why};
  }
  socket_.set_option(Tcp::no_delay(true), failed);
  return Done{};
}

Status Peer::send(FrameType type, std::string_view body, std::int64_t limit_ms) {
  const std::string frame = frame_of(type, body);
  done_ = false;
  asio::async_write(socket_, asio::buffer(frame), [this](error_code code, std::size_t) {
    failed_ = code;
    done_ = true;
  });
  const bool sent = run(limit_ms) && !failed_;
  if (sent) return Done{};
  const std::string why = done_ ? failed_.message() : "it takes no more";
  close();  // before `frame` is gone
  return Error{"the collector: " + why};
}

void Peer::start_header() {
  reading_ = true;
  read_done_ = false;
  asio::async_read(socket_, asio::buffer(header_), [this](error_code code, std::size_t) {
    frame_.came_ns = epoch_ns();
    read_failed_ = code;
    const auto header = code ? std::nullopt : parse_header(header_, kMostFrameBytes);
    if (!header) {
      if (!code) read_problem_ = "it sent what is no frame of sphase";
      read_done_ = true;
      return;
    }
    frame_.type = header->type;
    frame_.body.resize(header->body_bytes);
    start_body();
  });
}

void Peer::start_body() {
  asio::async_read(socket_, asio::buffer(frame_.body), [this](error_code code, std::size_t) {
    read_failed_ = code;
    read_done_ = true;
  });
}

Result<std::optional<Frame>> Peer::receive(std::int64_t limit_ms) {
  if (!is_open()) return Error{"the connection is closed"};
  if (!reading_) start_header();
  const std::int64_t until_ns = monotonic_ns() + limit_ms * kMs;
  while (!read_done_) {
    const std::int64_t left_ms = (until_ns - monotonic_ns()) / kMs;
    if (left_ms <= 0 || stop_()) return std::optional<Frame>();
    io_.restart();
    io_.run_one_for(milliseconds(std::min(left_ms, kSliceMs)));
  }
  reading_ = false;
  if (read_failed_ || !read_problem_.empty()) {
    const std::string why = read_failed_ == asio::error::eof ? "it closed the connection"
                            : read_failed_                   ? read_failed_.message()
                                                             : read_problem_;
    close();
    return Error{"the collector: " + why};
  }
  return std::optional(std::move(frame_));
}

}  // namespace sphase
