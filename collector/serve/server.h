// The collector's end of the wire: takes connections of nodes, finds out who they are, and hands
// what they ship to the writer.
//
// One thread runs everything here but three things that wait for others: munged and questions about
// runs (a pool of two threads), and the disk (the writer's own). Memory is bounded: a connection
// has one frame under way at most, and frames on their way to the disk have kMostQueuedBytes
// together; who comes then waits in its own socket.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collector/answer/answer.h"
#include "collector/ingest/store.h"
#include "collector/serve/writer.h"
#include "collector/wire/asio.h"
#include "collector/wire/credential.h"

namespace sphase {

struct ServeOptions {
  std::string database;             // path of cluster.db
  std::string address = "::";       // to listen at; both families
  std::uint16_t port = 6825;        // 0: any free one
  std::vector<std::uint32_t> uids;  // as whom nodes may ship
  MungePlace munge;
  std::string advice_table;  // sent to who wants it; "": none
};

class Connection;

class Server {
 public:
  using Log = std::function<void(const std::string&)>;

  /// Opens the database and listens. Errors: one sentence.
  static Result<std::unique_ptr<Server>> start(const ServeOptions& options, Log log);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  /// Serves until `stop` is called, by another thread or a signal.
  void run();
  void stop();

  std::uint16_t port() const { return port_; }
  Writer::Counts counts() const { return writer_->counts(); }

 private:
  friend class Connection;
  using Tcp = boost::asio::ip::tcp;
  using Advice = std::shared_ptr<const std::string>;

  Server(const ServeOptions& options, Log log);
  Status listen();
  void accept();
  void add(Tcp::socket socket);
  void sweep();
  void look_at_advice();
  void put(Incoming&& incoming);
  void stored(const std::vector<Stored>& all);
  void remove(std::uint64_t number);
  /// True: `bytes` may be read now. False: the connection is called when they may.
  bool reserve(std::size_t bytes, const std::shared_ptr<Connection>& connection);
  void release(std::size_t bytes);
  void introduced(const std::shared_ptr<Connection>& connection);
  // In the pool, from a database of their own.
  Result<Store*> answers();
  Result<std::vector<RunSeen>> seen_of(const std::vector<RunName>& names);
  Result<Welcome> welcome_for(const Hello& hello);
  // In the other one, from another.
  Reply reply_to(const Viewer& viewer, const Question& question);

  ServeOptions options_;
  Log log_;
  boost::asio::io_context io_;
  boost::asio::thread_pool pool_{2}, question_pool_{1};
  Tcp::acceptor acceptor_;
  boost::asio::steady_timer sweep_timer_, accept_timer_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Writer> writer_;
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;
  std::map<std::string, std::uint64_t> shippers_;  // node and file -> connection
  std::deque<std::weak_ptr<Connection>> waiting_;  // for memory
  std::size_t queued_bytes_ = 0;
  std::uint64_t last_number_ = 0;
  Advice advice_;
  std::string advice_stamp_;
  int sweeps_ = 0;

  std::mutex answers_mutex_;  // one question at a time
  std::optional<Database> answers_db_;
  std::optional<Store> answers_;
  std::optional<Database> questions_db_;
};

}  // namespace sphase
