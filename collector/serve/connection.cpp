#include "collector/serve/connection.h"

#include <sys/random.h>

#include <algorithm>

#include "common/clock.h"

namespace sphase {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kUnknownNs = 10 * kSecond, kSilentNs = 90 * kSecond;
/// Answers to a peer that does not read them.
constexpr std::size_t kMostAnswers = 64;

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) bytes.clear();
  return bytes;
}

}  // namespace

Connection::Connection(Server& server, Tcp::socket socket, std::uint64_t number)
    : server_(server),
      socket_(std::move(socket)),
      number_(number),
      nonce_(random_bytes(kNonceBytes)),
      heard_ns_(monotonic_ns()),
      since_ns_(heard_ns_) {
  error_code failed;
  const auto end = socket_.remote_endpoint(failed);
  peer_ = failed ? "?" : end.address().to_string(failed);
  socket_.set_option(Tcp::no_delay(true), failed);
  socket_.set_option(asio::socket_base::keep_alive(true), failed);
}

void Connection::start() {
  if (nonce_.size() != kNonceBytes) return close();
  send(FrameType::kChallenge, body_of(Challenge{kProtocolVersion, nonce_}));
  read_header();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  error_code failed;
  socket_.close(failed);
  if (in_hand_ > 0) server_.release(std::exchange(in_hand_, 0));
  server_.remove(number_);
}

void Connection::refuse(const std::string& why) {
  if (state_ == State::kClosed || refused_) return;
  server_.log_(peer_ + (hello_.node.empty() ? "" : " (node " + hello_.node + ")") +
               ": refused: " + why);
  refused_ = true;
  send(FrameType::kRefused, why.substr(0, 512));
}

bool Connection::overdue(std::int64_t now_ns) const {
  if (!known()) return now_ns - since_ns_ > kUnknownNs;
  return !busy_ && now_ns - heard_ns_ > kSilentNs;
}

void Connection::touch() { heard_ns_ = monotonic_ns(); }

void Connection::read_header() {
  if (state_ == State::kClosed || refused_) return;
  asio::async_read(socket_, asio::buffer(header_bytes_),
                   [self = shared_from_this()](error_code failed, std::size_t) {
                     if (failed) return self->close();
                     self->came_ns_ = epoch_ns();
                     self->touch();
                     const std::size_t most = self->known() ? kMostFrameBytes : kMostUnknownBytes;
                     const auto header = parse_header(self->header_bytes_, most);
                     if (!header) return self->refuse("that is no frame of sphase");
                     self->header_ = *header;
                     if (!self->server_.reserve(header->body_bytes, self)) return;
                     self->read_body();
                   });
}

void Connection::resume() {
  if (state_ != State::kClosed) read_body();
}

void Connection::read_body() {
  in_hand_ = header_.body_bytes;
  body_.resize(header_.body_bytes);
  asio::async_read(socket_, asio::buffer(body_),
                   [self = shared_from_this()](error_code failed, std::size_t) {
                     if (failed) return self->close();
                     self->touch();
                     self->handle();
                   });
}

/// Each frame is answered before the next one is read.
void Connection::handle() {
  if (state_ == State::kClosed) return;
  switch (header_.type) {
    case FrameType::kHello:
      return handle_hello();
    case FrameType::kQuestion:
      return known() && !ships() ? handle_question() : refuse("a question of somebody unknown");
    case FrameType::kClock:
    case FrameType::kAsk:
    case FrameType::kShip:
    case FrameType::kAlive:
      return ships() ? handle_of_node() : refuse("a Hello of a node comes first");
    default:
      return refuse("a frame that only a collector sends");
  }
}

void Connection::handle_of_node() {
  if (header_.type == FrameType::kClock) return answer_clock();
  if (header_.type == FrameType::kAsk) return handle_ask();
  handle_ship(header_.type == FrameType::kAlive);
}

void Connection::handle_hello() {
  if (state_ != State::kNew) return refuse("a second Hello");
  state_ = State::kAsked;
  busy_ = true;
  asio::post(server_.pool_, [self = shared_from_this(), credential = body_] {
    auto caller = read_credential(self->server_.options_.munge, credential);
    const auto hello = caller ? parse_hello(caller->payload) : std::nullopt;
    Result<Welcome> welcome = Welcome();
    if (hello) welcome = self->server_.welcome_for(*hello);
    asio::post(self->server_.io_, [self, caller = std::move(caller), welcome = std::move(welcome)] {
      self->check(caller, welcome);
    });
  });
}

/// Decides whether the peer may ship.
void Connection::check(const Result<Caller>& caller, const Result<Welcome>& welcome) {
  busy_ = false;
  if (state_ == State::kClosed) return;
  if (!caller) return refuse(caller.error());
  const auto hello = parse_hello(caller->payload);
  if (!hello || hello->nonce != nonce_) {
    return refuse("the credential is not of this connection");
  }
  const bool asks = hello->node.empty() && hello->file_id.empty();
  viewer_ = viewer_of(caller->uid, server_.options_.uids);
  if (!asks && !viewer_.is_operator) {
    return refuse("user " + std::to_string(caller->uid) +
                  " may not ship: see TrustedUsers of sphase.conf");
  }
  if (!asks && (hello->node.empty() || hello->file_id.empty())) {
    return refuse("a Hello without a node");
  }
  if (!welcome) return refuse(welcome.error());
  hello_ = *hello;
  state_ = State::kKnown;
  server_.release(std::exchange(in_hand_, 0));
  send(FrameType::kWelcome, body_of(*welcome));
  if (ships()) server_.introduced(shared_from_this());
  read_header();
}

void Connection::answer_clock() {
  auto times = parse_clock(body_);
  server_.release(std::exchange(in_hand_, 0));
  if (!times) return refuse("a clock frame that cannot be read");
  times->came_ns = came_ns_;
  times->answered_ns = epoch_ns();
  send(FrameType::kClock, body_of(*times));
  read_header();
}

void Connection::handle_ask() {
  auto names = parse_ask(body_);
  if (!names) return refuse("a question that cannot be read");
  busy_ = true;
  asio::post(server_.pool_, [self = shared_from_this(), names = std::move(*names)] {
    auto seen = self->server_.seen_of(names);
    asio::post(self->server_.io_, [self, seen = std::move(seen)] {
      self->busy_ = false;
      if (self->state_ == State::kClosed) return;
      self->server_.release(std::exchange(self->in_hand_, 0));
      if (!seen) return self->refuse(seen.error());
      self->send(FrameType::kSeen, body_of(*seen));
      self->read_header();
    });
  });
}

/// In a thread of its own: who asks for much keeps no node waiting.
void Connection::handle_question() {
  const auto question = parse_question(body_);
  if (!question) return refuse("a question that cannot be read");
  busy_ = true;
  asio::post(server_.question_pool_, [self = shared_from_this(), question = *question] {
    Reply reply = self->server_.reply_to(self->viewer_, question);
    asio::post(self->server_.io_, [self, reply = std::move(reply)] {
      self->busy_ = false;
      if (self->state_ == State::kClosed) return;
      self->server_.release(std::exchange(self->in_hand_, 0));
      self->send(FrameType::kAnswer, std::string(1, static_cast<char>(reply.code)) + reply.text);
      self->read_header();
    });
  });
}

void Connection::handle_ship(bool alive) {
  Incoming incoming{number_, hello_.node, hello_.file_id, {}, std::move(body_), alive, 0};
  body_.clear();
  std::string_view rest = incoming.body;
  const auto head = parse_ship_head(rest);
  if (!head) return refuse("a shipment without a head");
  incoming.head = *head;
  incoming.body.erase(0, incoming.body.size() - rest.size());
  incoming.reserved = std::exchange(in_hand_, 0);
  busy_ = true;
  server_.put(std::move(incoming));
}

/// Its frame is on the disk, or could not be put there.
void Connection::stored(const Stored& what) {
  busy_ = false;
  if (state_ == State::kClosed) return;
  touch();
  if (!what.problem.empty()) return refuse(what.problem);
  send(FrameType::kStored, stored_body(what.number));
  read_header();
}

void Connection::send(FrameType type, std::string_view body) {
  if (state_ == State::kClosed) return;
  if (out_.size() >= kMostAnswers) return close();
  out_.push_back(frame_of(type, body));
  if (out_.size() == 1) write_next();
}

void Connection::write_next() {
  asio::async_write(socket_, asio::buffer(out_.front()),
                    [self = shared_from_this()](error_code failed, std::size_t) {
                      if (failed) return self->close();
                      self->out_.pop_front();
                      if (!self->out_.empty()) return self->write_next();
                      if (self->refused_) return self->close();
                      self->send_advice_part();
                    });
}

void Connection::send_advice(Advice advice) {
  if (advice == nullptr) return;
  const bool under_way = advice_ != nullptr;
  // A table that is being sent goes to its end first; the next sweep sends the newer one.
  if (under_way) return;
  advice_ = std::move(advice);
  advice_at_ = 0;
  if (out_.empty()) send_advice_part();
}

void Connection::send_advice_part() {
  if (advice_ == nullptr || state_ == State::kClosed) return;
  AdvicePart part;
  part.bytes = advice_->substr(advice_at_, kAdvicePartBytes);
  advice_at_ += part.bytes.size();
  part.last = advice_at_ == advice_->size();
  if (part.last) advice_.reset();
  send(FrameType::kAdvice, body_of(part));
}

}  // namespace sphase
