// A connection to the collector, as the program that ships uses it: one frame at a time, and no
// call waits longer than it is told to.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "collector/wire/asio.h"
#include "collector/wire/frame.h"
#include "common/result.h"

namespace sphase {

struct Frame {
  FrameType type = FrameType::kRefused;
  std::string body;
  std::int64_t came_ns = 0;  // wall clock; when its first byte was read
};

class Peer {
 public:
  /// Asked while we wait, at least ten times a second: true ends the wait.
  using Stop = std::function<bool()>;

  explicit Peer(Stop stop) : stop_(std::move(stop)) {}

  /// `host`: a name or an address. Tries each of its addresses.
  Status connect(const std::string& host, std::uint16_t port, std::int64_t limit_ms);
  Status send(FrameType type, std::string_view body, std::int64_t limit_ms);
  /// nullopt: nothing came in time; a frame that has begun to come stays, for the next call.
  Result<std::optional<Frame>> receive(std::int64_t limit_ms);
  void close();
  bool is_open() const { return socket_.is_open(); }

 private:
  using Tcp = boost::asio::ip::tcp;
  /// Runs what was started until it is done or `limit_ms` are over. False: it is not done.
  bool run(std::int64_t limit_ms);
  void start_header();
  void start_body();

  Stop stop_;
  boost::asio::io_context io_;
  Tcp::socket socket_{io_};
  bool done_ = false;
  boost::system::error_code failed_;

  // What is being read; an operation of its own, which outlives a call.
  bool reading_ = false, read_done_ = false;
  boost::system::error_code read_failed_;
  std::string read_problem_;
  std::array<char, kHeaderBytes> header_{};
  Frame frame_;
};

}  // namespace sphase
