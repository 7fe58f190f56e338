#include "collector/serve/writer.h"

#include <cstdlib>
#include <utility>

#include "collector/cluster_db.h"
#include "common/clock.h"

namespace sphase {
namespace {

/// What one transaction takes at most, so that nobody waits long for its commit.
constexpr std::size_t kMostShipments = 256, kMostBytes = 32 << 20;
/// Words that only say "I am here" are written this often.
constexpr std::int64_t kAliveNs = 20'000'000'000;
constexpr std::int64_t kClockNs = 600'000'000'000;
constexpr std::size_t kMostNodes = 200'000;

std::optional<std::int64_t> integer_of(const std::optional<std::string>& text) {
  return text ? std::optional<std::int64_t>(std::strtoll(text->c_str(), nullptr, 10))
              : std::nullopt;
}

}  // namespace

Result<Database> open_for_serving(const std::string& path) {
  auto db = open_cluster(path);
  if (!db) return db;
  auto tuned = db->exec(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;"
      "PRAGMA journal_size_limit = 67108864");
  return tuned ? std::move(db) : Error{path + ": " + tuned.error()};
}

Result<std::int64_t> stored_change(Database& db, const std::string& node,
                                   const std::string& file_id) {
  auto query = db.prepare("SELECT change FROM shipper WHERE node = ? AND file_id = ?");
  if (!query) return Error{query.error()};
  const bool found = query->bind(1, node).bind(2, file_id).step();
  const std::int64_t change = found ? query->integer(0) : 0;
  if (auto read = query->status(); !read) return Error{read.error()};
  return change;
}

Result<std::unique_ptr<Writer>> Writer::start(const std::string& path, Tell tell, Log log) {
  auto db = open_for_serving(path);
  if (!db) return Error{db.error()};
  std::unique_ptr<Writer> writer(new Writer(std::move(*db), std::move(tell), std::move(log)));
  writer->thread_ = std::thread([raw = writer.get()] { raw->run(); });
  return writer;
}

Writer::Writer(Database&& db, Tell tell, Log log)
    : db_(std::move(db)), rows_(db_), tell_(std::move(tell)), log_(std::move(log)) {}

Writer::~Writer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  woken_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Writer::put(Incoming&& incoming) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(incoming));
  }
  woken_.notify_one();
}

Writer::Counts Writer::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

/// What is to go into the next transaction; empty: it is over.
std::vector<Incoming> Writer::take() {
  std::unique_lock lock(mutex_);
  woken_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  std::vector<Incoming> all;
  std::size_t bytes = 0;
  while (!queue_.empty() && all.size() < kMostShipments && bytes < kMostBytes) {
    bytes += queue_.front().body.size();
    all.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return all;
}

void Writer::run() {
  for (auto all = take(); !all.empty(); all = take()) tell_(store(all));
}

/// Stores all in one transaction. Where that fails as a whole (a full disk, a file that somebody
/// holds) each of them is told so: the nodes keep their rows and come again.
std::vector<Stored> Writer::store(const std::vector<Incoming>& all) {
  std::vector<Stored> stored;
  for (const auto& one : all) {
    stored.push_back({one.connection, one.head.number, one.reserved, ""});
  }
  const std::int64_t rows_before = rows_.count().rows, refused_before = rows_.count().refused;
  const auto done = store_all(all, stored);
  if (!done) {
    log_("nothing can be stored: " + done.error());
    for (auto& one : stored) one.problem = "the collector cannot write its database now";
  }
  const std::lock_guard lock(mutex_);
  if (done) {
    ++counts_.commits;
    counts_.rows += rows_.count().rows - rows_before;
  }
  counts_.refused += rows_.count().refused - refused_before;
  for (const auto& one : stored) ++(one.problem.empty() ? counts_.shipments : counts_.failed);
  return stored;
}

Status Writer::store_all(const std::vector<Incoming>& all, std::vector<Stored>& stored) {
  auto transaction = Transaction::begin(db_);
  if (!transaction) return Error{transaction.error()};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (auto point = db_.exec("SAVEPOINT one"); !point) return point;
    auto done = store_one(all[i]);
    // A full disk has ended the transaction itself (sqlite.org/lang_transaction.html).
    if (!done && sqlite3_get_autocommit(db_.raw()) != 0) return done;
    if (!done) {
      log_("node " + all[i].node + ": " + done.error());
      stored[i].problem = "the collector could not store it: " + done.error();
      if (auto undone = db_.exec("ROLLBACK TO one"); !undone) return undone;
    }
    if (auto over = db_.exec("RELEASE one"); !over) return over;
  }
  auto done = transaction->commit();
  if (!done) forget();
  return done;
}

Status Writer::store_one(const Incoming& incoming) {
  auto done = incoming.alive ? note_shipper(incoming, nullptr) : put_rows(incoming);
  if (!done) forget();
  return done;
}

/// What was noted as stored was rolled back.
void Writer::forget() {
  rows_.forget();
  clocks_.clear();
  alive_ns_.clear();
}

Status Writer::put_rows(const Incoming& incoming) {
  auto shipment = parse_shipment(incoming.body);
  if (!shipment) return Error{"what it shipped cannot be read: " + shipment.error()};
  if (auto put = rows_.put(*shipment); !put) return put;
  return note_shipper(incoming, &*shipment);
}

Status Writer::note_shipper(const Incoming& incoming, const Shipment* shipment) {
  const std::int64_t now_ns = epoch_ns();
  if (auto noted = note_clock(incoming, now_ns); !noted) return noted;
  if (alive_ns_.size() > kMostNodes) alive_ns_.clear();
  std::int64_t& last_ns = alive_ns_[incoming.node + '/' + incoming.file_id];
  if (shipment == nullptr && now_ns - last_ns < kAliveNs) return Done{};
  last_ns = now_ns;
  if (!write_shipper_) {
    auto write = db_.prepare(
        "INSERT INTO shipper(node, file_id, change, seen_ns, rows_deleted, damaged)"
        " VALUES(?1,?2,coalesce(?3, 0),?4,?5,?6) ON CONFLICT (node, file_id) DO UPDATE SET change ="
        " max(change, coalesce(?3, change)), seen_ns = ?4,"
        " rows_deleted = coalesce(?5, rows_deleted), damaged = coalesce(?6, damaged)");
    if (!write) return Error{write.error()};
    write_shipper_ = std::move(*write);
  }
  write_shipper_->bind(1, incoming.node).bind(2, incoming.file_id).bind(4, now_ns);
  std::optional<std::int64_t> change, deleted;
  std::optional<std::string> damaged;
  if (shipment != nullptr) {
    change = shipment->change;
    deleted = integer_of(shipment->facts.rows_deleted);
    damaged = shipment->facts.damaged;
  }
  return write_shipper_->bind(3, change).bind(5, deleted).bind(6, damaged).run();
}

Status Writer::note_clock(const Incoming& incoming, std::int64_t now_ns) {
  if (!incoming.head.clock) return Done{};
  if (clocks_.size() > kMostNodes) clocks_.clear();
  const ClockOffset& fresh = *incoming.head.clock;
  Clock& clock = clocks_[incoming.node];
  const std::int64_t moved = std::llabs(fresh.offset_ns - clock.last.offset_ns);
  const bool same = clock.time_ns != 0 && now_ns - clock.time_ns < kClockNs &&
                    moved <= clock.last.band_ns + fresh.band_ns;
  if (same) return Done{};
  clock = {fresh, now_ns};
  if (!write_clock_) {
    auto write = db_.prepare("INSERT OR REPLACE INTO node_clock VALUES(?,?,?,?)");
    if (!write) return Error{write.error()};
    write_clock_ = std::move(*write);
  }
  write_clock_->bind(1, incoming.node).bind(2, now_ns);
  return write_clock_->bind(3, fresh.offset_ns).bind(4, fresh.band_ns).run();
}

}  // namespace sphase
