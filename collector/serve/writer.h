// The one thread of `serve` that writes what nodes ship into cluster.db.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collector/ingest/store.h"
#include "collector/wire/message.h"
#include "common/sqlite_db.h"

namespace sphase {

/// One frame of a node, on its way to the disk.
struct Incoming {
  std::uint64_t connection = 0;  // its number
  std::string node, file_id;     // from its Hello
  ShipHead head;
  std::string body;          // of kShip, after the head
  bool alive = false;        // kAlive: there are no rows
  std::size_t reserved = 0;  // B of memory that were set aside for it
};

/// What became of it: `problem` "": it is stored, for ever.
struct Stored {
  std::uint64_t connection = 0, number = 0;
  std::size_t reserved = 0;  // B, as in Incoming: now free
  std::string problem;
};

/// Takes frames from a queue, puts as many as are there into one transaction, and tells what became
/// of them after the commit. A frame that cannot be stored does not hold up the others.
class Writer {
 public:
  using Tell = std::function<void(std::vector<Stored>)>;  // called in the writer's thread
  using Log = std::function<void(const std::string&)>;    // likewise

  /// Opens cluster.db (made where absent).
  static Result<std::unique_ptr<Writer>> start(const std::string& path, Tell tell, Log log);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  /// Stores what is queued, then ends.
  ~Writer();

  void put(Incoming&& incoming);

  struct Counts {
    std::int64_t rows = 0, shipments = 0, commits = 0, failed = 0, refused = 0;
  };
  Counts counts() const;

 private:
  struct Clock {
    ClockOffset last;
    std::int64_t time_ns = 0;
  };

  Writer(Database&& db, Tell tell, Log log);
  void run();
  std::vector<Incoming> take();
  std::vector<Stored> store(const std::vector<Incoming>& all);
  Status store_all(const std::vector<Incoming>& all, std::vector<Stored>& stored);
  Status store_one(const Incoming& incoming);
  void forget();
  Status put_rows(const Incoming& incoming);
  Status note_shipper(const Incoming& incoming, const Shipment* shipment);
  Status note_clock(const Incoming& incoming, std::int64_t now_ns);

  Database db_;
  Store rows_;
  Tell tell_;
  Log log_;
  std::map<std::string, Clock> clocks_;           // of nodes, as stored last
  std::map<std::string, std::int64_t> alive_ns_;  // of shippers, as stored last
  std::optional<Statement> write_shipper_, write_clock_;

  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<Incoming> queue_;
  bool stopping_ = false;
  Counts counts_;
  std::thread thread_;
};

/// As it is for writing while others read: WAL, each commit on the disk before it is told.
Result<Database> open_for_serving(const std::string& path);

/// The change up to which everything of a node's file is stored; 0: nothing of it is known.
Result<std::int64_t> stored_change(Database& db, const std::string& node,
                                   const std::string& file_id);

}  // namespace sphase
