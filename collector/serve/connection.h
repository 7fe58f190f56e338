// One connection of a node, as the collector sees it. Lives in the server's thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "collector/serve/server.h"
#include "collector/wire/asio.h"
#include "collector/wire/frame.h"
#include "collector/wire/message.h"

namespace sphase {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Tcp = boost::asio::ip::tcp;
  using Advice = std::shared_ptr<const std::string>;

  Connection(Server& server, Tcp::socket socket, std::uint64_t number);

  void start();
  /// Says why, and closes.
  void refuse(const std::string& why);
  void close();
  /// Memory for the body that waits is there.
  void resume();
  std::size_t waiting_bytes() const { return header_.body_bytes; }
  bool fits(std::size_t bytes) const { return header_.body_bytes <= bytes; }
  void stored(const Stored& what);
  void send_advice(Advice advice);

  /// True if it said nothing for too long.
  bool overdue(std::int64_t now_ns) const;
  bool known() const { return state_ == State::kKnown; }
  /// A node; else a user who asks.
  bool ships() const { return known() && !hello_.node.empty(); }
  bool closed() const { return state_ == State::kClosed; }
  bool wants_advice() const { return ships() && hello_.wants_advice; }
  std::uint64_t number() const { return number_; }
  /// What it ships: node and file.
  std::string key() const { return hello_.node + '/' + hello_.file_id; }
  const std::string& peer() const { return peer_; }

 private:
  enum class State { kNew, kAsked, kKnown, kClosed };

  void read_header();
  void read_body();
  void handle();
  void handle_hello();
  void check(const Result<Caller>& caller, const Result<Welcome>& welcome);
  void handle_of_node();
  void handle_ask();
  void handle_ship(bool alive);
  void handle_question();
  void answer_clock();
  void send(FrameType type, std::string_view body);
  void write_next();
  void send_advice_part();
  void touch();

  Server& server_;
  Tcp::socket socket_;
  std::uint64_t number_;
  State state_ = State::kNew;
  std::string peer_;  // its address, for the log
  std::string nonce_;
  Hello hello_;
  Viewer viewer_;
  std::array<char, kHeaderBytes> header_bytes_{};
  FrameHeader header_;
  std::string body_;
  std::int64_t heard_ns_, since_ns_;
  std::int64_t came_ns_ = 0;     // when the frame under way came, the wall's clock
  std::size_t in_hand_ = 0;      // B of it that were reserved
  bool busy_ = false;            // a frame is with the pool or the writer
  std::deque<std::string> out_;  // the front one is being written
  bool refused_ = false;         // closed once `out_` is empty
  Advice advice_;                // being sent
  std::size_t advice_at_ = 0;
};

}  // namespace sphase
