#include "collector/serve/server.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "collector/cluster_db.h"
#include "collector/serve/connection.h"
#include "common/clock.h"

namespace sphase {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMostQueuedBytes = 64 << 20;
constexpr std::size_t kMostConnections = 50'000;
constexpr int kAdviceEverySweeps = 5;
const std::string kNoDatabase = "the collector cannot read its database now: ";

/// As many descriptors as the system lets us have: one per node.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 2 * kMostConnections);
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Tells one state of a file from another; "" where there is none.
std::string stamp_of(const std::string& path) {
  struct stat facts {};
  if (path.empty() || ::stat(path.c_str(), &facts) != 0) return "";
  return std::to_string(facts.st_ino) + '/' + std::to_string(facts.st_size) + '/' +
         std::to_string(facts.st_mtim.tv_sec) + '.' + std::to_string(facts.st_mtim.tv_nsec);
}

}  // namespace

Server::Server(const ServeOptions& options, Log log)
    : options_(options),
      log_(std::move(log)),
      acceptor_(io_),
      sweep_timer_(io_),
      accept_timer_(io_) {}

Server::~Server() {
  // The writer first: what it tells goes to `io_`, which still stands.
  pool_.join();
  question_pool_.join();
  writer_.reset();
  connections_.clear();
}

Result<std::unique_ptr<Server>> Server::start(const ServeOptions& options, Log log) {
  raise_descriptor_limit();
  std::unique_ptr<Server> server(new Server(options, std::move(log)));
  auto writer = Writer::start(
      options.database,
      [raw = server.get()](std::vector<Stored> all) {
        asio::post(raw->io_, [raw, all = std::move(all)] { raw->stored(all); });
      },
      server->log_);
  if (!writer) return Error{writer.error()};
  server->writer_ = std::move(*writer);
  if (auto listening = server->listen(); !listening) return Error{listening.error()};
  return server;
}

Status Server::listen() {
  error_code failed;
  const auto address = asio::ip::make_address(options_.address, failed);
  if (failed) return Error{options_.address + " is no address to listen at: " + failed.message()};
  const Tcp::endpoint place(address, options_.port);
  const auto fail = [&] {
    return Error{"cannot listen at " + options_.address + " port " + std::to_string(options_.port) +
                 ": " + failed.message()};
  };
  if (acceptor_.open(place.protocol(), failed)) return fail();
  acceptor_.set_option(Tcp::acceptor::reuse_address(true), failed);
  if (address.is_v6()) acceptor_.set_option(asio::ip::v6_only(false), failed);
  if (acceptor_.bind(place, failed)) return fail();
  if (acceptor_.listen(4096, failed)) return fail();
  port_ = acceptor_.local_endpoint(failed).port();
  return Done{};
}

void Server::run() {
  accept();
  sweep();
  io_.run();
}

void Server::stop() { io_.stop(); }

void Server::accept() {
  acceptor_.async_accept([this](error_code failed, Tcp::socket socket) {
    if (!failed) {
      add(std::move(socket));
      return accept();
    }
    if (failed == asio::error::operation_aborted) return;
    // Out of descriptors, as a rule: to try again at once would only burn a CPU.
    log_("cannot take a connection: " + failed.message());
    accept_timer_.expires_after(std::chrono::milliseconds(200));
    accept_timer_.async_wait([this](error_code cancelled) {
      if (!cancelled) accept();
    });
  });
}

void Server::add(Tcp::socket socket) {
  if (connections_.size() >= kMostConnections) return;  // closes it
  const std::uint64_t number = ++last_number_;
  auto connection = std::make_shared<Connection>(*this, std::move(socket), number);
  connections_.emplace(number, connection);
  connection->start();
}

void Server::remove(std::uint64_t number) {
  const auto found = connections_.find(number);
  if (found == connections_.end()) return;
  const auto shipper = shippers_.find(found->second->key());
  if (shipper != shippers_.end() && shipper->second == number) shippers_.erase(shipper);
  connections_.erase(found);
}

/// A node that comes again has lost its earlier connection, whether or not we have heard of that.
void Server::introduced(const std::shared_ptr<Connection>& connection) {
  const auto before = shippers_.find(connection->key());
  if (before != shippers_.end()) {
    const auto old = connections_.find(before->second);
    if (old != connections_.end()) {
      const auto kept = old->second;
      kept->close();
    }
  }
  shippers_[connection->key()] = connection->number();
  if (connection->wants_advice()) connection->send_advice(advice_);
}

/// Once a second: who was silent for too long, and whether there is new advice.
void Server::sweep() {
  const std::int64_t now_ns = monotonic_ns();
  std::vector<std::shared_ptr<Connection>> overdue;
  for (const auto& [number, connection] : connections_) {
    if (connection->overdue(now_ns)) overdue.push_back(connection);
  }
  for (const auto& connection : overdue) connection->close();
  if (sweeps_++ % kAdviceEverySweeps == 0) look_at_advice();
  sweep_timer_.expires_after(std::chrono::seconds(1));
  sweep_timer_.async_wait([this](error_code cancelled) {
    if (!cancelled) sweep();
  });
}

void Server::look_at_advice() {
  const std::string stamp = stamp_of(options_.advice_table);
  if (stamp.empty() || stamp == advice_stamp_) return;
  std::ifstream file(options_.advice_table, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file || stamp_of(options_.advice_table) != stamp) return;  // being replaced: next time
  advice_stamp_ = stamp;
  advice_ = std::make_shared<const std::string>(std::move(bytes));
  for (const auto& [number, connection] : connections_) {
    if (connection->wants_advice()) connection->send_advice(advice_);
  }
}

bool Server::reserve(std::size_t bytes, const std::shared_ptr<Connection>& connection) {
  // One frame may always go, however large.
  if (queued_bytes_ == 0 || queued_bytes_ + bytes <= kMostQueuedBytes) {
    queued_bytes_ += bytes;
    return true;
  }
  waiting_.push_back(connection);
  return false;
}

void Server::release(std::size_t bytes) {
  queued_bytes_ -= bytes;
  while (!waiting_.empty()) {
    auto next = waiting_.front().lock();
    // It may still live, until what it was writing has failed; but it takes no memory any more.
    if (next != nullptr && next->closed()) next = nullptr;
    if (next != nullptr &&
        !next->fits(kMostQueuedBytes - std::min(kMostQueuedBytes, queued_bytes_)) &&
        queued_bytes_ > 0) {
      return;
    }
    waiting_.pop_front();
    if (next == nullptr) continue;
    queued_bytes_ += next->waiting_bytes();
    next->resume();
  }
}

void Server::put(Incoming&& incoming) { writer_->put(std::move(incoming)); }

void Server::stored(const std::vector<Stored>& all) {
  for (const auto& what : all) {
    release(what.reserved);
    const auto found = connections_.find(what.connection);
    if (found == connections_.end()) continue;
    const auto connection = found->second;
    connection->stored(what);
  }
}

Result<Store*> Server::answers() {
  if (answers_) return &*answers_;
  auto db = read_cluster(options_.database);
  if (!db) return Error{db.error()};
  answers_db_.emplace(std::move(*db));
  answers_.emplace(*answers_db_);
  return &*answers_;
}

Result<std::vector<RunSeen>> Server::seen_of(const std::vector<RunName>& names) {
  const std::lock_guard lock(answers_mutex_);
  auto store = answers();
  if (!store) return Error{kNoDatabase + store.error()};
  std::vector<RunSeen> all;
  for (const RunName& name : names) {
    auto seen = (*store)->seen(name);
    if (!seen) return Error{kNoDatabase + seen.error()};
    all.push_back(*seen);
  }
  return all;
}

Reply Server::reply_to(const Viewer& viewer, const Question& question) {
  if (!questions_db_) {
    auto db = read_cluster(options_.database);
    if (!db) return {1, kNoDatabase + db.error()};
    questions_db_.emplace(std::move(*db));
  }
  return answer_whole(*questions_db_, viewer, question);
}

Result<Welcome> Server::welcome_for(const Hello& hello) {
  auto credential = make_credential(options_.munge, hello.own_nonce);
  if (!credential) return Error{credential.error()};
  const std::lock_guard lock(answers_mutex_);
  if (auto store = answers(); !store) return Error{kNoDatabase + store.error()};
  auto change = stored_change(*answers_db_, hello.node, hello.file_id);
  if (!change) return Error{kNoDatabase + change.error()};
  return Welcome{*change, std::move(*credential)};
}

}  // namespace sphase
