#include "collector/ship/shipper.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "collector/ingest/sources.h"
#include "collector/learn/advice_table.h"
#include "collector/ship/handshake.h"
#include "common/clock.h"
#include "common/note_file.h"
#include "common/vocabulary.h"

namespace sphase {
namespace {

constexpr std::int64_t kMs = 1'000'000, kSecond = 1000 * kMs;
constexpr std::int64_t kConnectMs = 10'000, kAnswerMs = 60'000;
/// How often we look for news. A look at a file in which nothing is new costs 20 µs.
constexpr std::int64_t kLookMs = 500;
constexpr std::int64_t kClockEveryNs = 60 * kSecond, kAliveEveryNs = 20 * kSecond,
                       kNoteEveryNs = 10 * kSecond;
constexpr int kFirstClocks = 8;
constexpr std::int64_t kMostWaitMs = 60'000;
constexpr std::size_t kMostAdviceBytes = std::size_t{1} << 30;
/// A run that goes on while we have its place; the others are asked for again.
constexpr std::size_t kMostSeen = 10'000;

std::uint64_t inode_of(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 ? facts.st_ino : 0;
}

Result<std::string> meta(Database& db, const char* key) {
  auto query = db.prepare("SELECT value FROM meta WHERE key = ?");
  if (!query) return Error{query.error()};
  const bool found = query->bind(1, key).step();
  std::string value = found ? query->text(0) : "";
  if (auto read = query->status(); !read) return Error{read.error()};
  return value;
}

std::string own_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// Notes as rows of table `notice` that are of no run. There are 1000 at most.
RawRows rows_of(const std::vector<NoteFile>& notes) {
  RawRows raw{"notice", {}};
  auto& columns = raw.rows.columns;
  for (const char* name :
       {"run", "cluster", "job_id", "restart_count", "step", "node", "time_ns", "code", "text"}) {
    columns.emplace_back(name);
  }
  for (const NoteFile& note : notes) {
    columns[0].add_null();
    // Each column has one type.
    (void)columns[1].add(std::string_view(note.cluster));
    (void)columns[2].add(note.job_id);
    (void)columns[3].add(note.restart_count);
    (void)columns[4].add(std::string_view(note.step));
    (void)columns[5].add(std::string_view(note.node));
    (void)columns[6].add(note.time_ns);
    (void)columns[7].add(std::string_view(note.code));
    (void)columns[8].add(std::string_view(note.text));
  }
  return raw;
}

/// Name of the node, as its recorders know it; that of the host before there was a run.
Result<std::string> node_of(Database& db) {
  auto query = db.prepare("SELECT node FROM run LIMIT 1");
  if (!query) return Error{query.error()};
  const bool found = query->step();
  std::string node = found ? query->text(0) : own_host();
  if (auto read = query->status(); !read) return Error{read.error()};
  return node;
}

}  // namespace

Shipper::Shipper(ShipOptions options, Peer::Stop stop, Log log)
    : options_(std::move(options)), stop_(stop), log_(std::move(log)), peer_(std::move(stop)) {
  std::uint32_t seed = 0;
  if (::getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
    seed = static_cast<std::uint32_t>(epoch_ns() ^ ::getpid());
  }
  random_.seed(seed);
}

/// False: told to stop meanwhile.
bool Shipper::wait(std::int64_t ms) {
  const std::int64_t until_ns = monotonic_ns() + ms * kMs;
  while (monotonic_ns() < until_ns) {
    if (stop_()) return false;
    const timespec nap{0, 50 * kMs};
    ::nanosleep(&nap, nullptr);
  }
  return !stop_();
}

void Shipper::run() {
  std::string told;
  std::int64_t wait_ms = 1000;
  // Not all nodes of a cluster that was just switched on at one time.
  if (!wait(std::uniform_int_distribution<std::int64_t>(0, 500)(random_))) return;
  while (!stop_()) {
    const std::uint64_t before = number_;
    const auto over = session();
    peer_.close();
    if (stop_()) return;
    if (number_ > before + 1) wait_ms = 1000;  // it worked for a while
    if (!over && over.error() != told) log_(over.error());
    told = over ? "" : over.error();
    if (!wait(std::uniform_int_distribution<std::int64_t>(wait_ms / 2, wait_ms)(random_))) return;
    wait_ms = std::min(2 * wait_ms, kMostWaitMs);
  }
}

/// Where node.db cannot be written, notes are all that tells why nothing was recorded.
std::optional<Shipper::Source> Shipper::only_notes() const {
  const std::vector<NoteFile> notes = read_notes(options_.notes);
  if (notes.empty()) return std::nullopt;
  return Source{std::nullopt, "notes", notes.front().node, 0};
}

/// Opens node.db, if it is there and of a version that numbers its changes.
Result<std::optional<Shipper::Source>> Shipper::open_source() {
  using Found = std::optional<Source>;
  const std::uint64_t inode = inode_of(options_.node_db);
  if (inode == 0) return only_notes();
  auto db = Database::open(options_.node_db, Database::Mode::kReadWrite, 5000);
  if (!db) return Error{db.error()};
  sqlite3_db_config(db->raw(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // We run at the lowest priority: the one row that we write must not wait for a disk while the
  // recorders wait for us, nor is theirs to be copied by us.
  auto tuned = db->exec("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0");
  if (!tuned) return Error{options_.node_db + ": " + tuned.error()};
  auto version = db->user_version();
  if (!version) return Error{options_.node_db + ": " + version.error()};
  if (*version > kSchemaVersion) {
    return Error{options_.node_db + " has schema version " + std::to_string(*version) +
                 ", newer than this program: update sphase-collector"};
  }
  if (*version < 3) return Found();  // the next recorder brings it up to date
  auto id = meta(*db, "id");
  if (!id) return Error{options_.node_db + ": " + id.error()};
  auto node = node_of(*db);
  if (!node) return Error{options_.node_db + ": " + node.error()};
  return Found(Source{std::move(*db), *id, *node, inode});
}

/// One connection, from its beginning to its end.
Status Shipper::session() {
  auto source = open_source();
  if (!source) return Error{source.error()};
  if (!*source) return Done{};  // nothing was recorded here yet
  source_ = std::move(**source);
  seen_.clear();
  advice_.clear();
  notices_ = 0;
  data_version_ = notes_ns_ = -1;
  if (auto done = peer_.connect(options_.host, options_.port, kConnectMs); !done) return done;
  const Introduction introduction{options_.host, options_.munge, options_.collector_uids,
                                  source_->node, source_->id,    !options_.advice_table.empty()};
  auto welcome = introduce(peer_, introduction, kAnswerMs);
  if (!welcome) return Error{welcome.error()};
  change_ = welcome->change;
  if (auto done = measure_clock(kFirstClocks); !done) return done;
  log_("shipping to " + options_.host);
  while (!stop_()) {
    auto fresh = news();
    if (!fresh) return Error{fresh.error()};
    if (*fresh) {
      if (auto done = ship_all(); !done) return done;
    }
    if (auto done = ship_notes(); !done) return done;
    if (auto done = idle(); !done) return done;
  }
  note_shipped();
  return Done{};
}

/// The next frame of that type. Advice that comes meanwhile is taken: we know from whom.
Result<Frame> Shipper::await(FrameType type) {
  const std::int64_t until_ns = monotonic_ns() + kAnswerMs * kMs;
  for (;;) {
    auto frame = peer_.receive(std::max<std::int64_t>(0, (until_ns - monotonic_ns()) / kMs));
    if (!frame) return Error{frame.error()};
    if (!*frame) return Error{stop_() ? "told to stop" : "the collector does not answer"};
    if ((*frame)->type == type) return std::move(**frame);
    if ((*frame)->type == FrameType::kRefused) {
      return Error{"the collector refuses: " + (*frame)->body.substr(0, 512)};
    }
    if ((*frame)->type != FrameType::kAdvice) {
      return Error{"the collector sent what nobody asked for"};
    }
    if (auto done = handle_advice(**frame); !done) return Error{done.error()};
  }
}

Status Shipper::measure_clock(int times) {
  for (int i = 0; i < times; ++i) {
    const ClockTimes ask{epoch_ns(), 0, 0};
    if (auto sent = peer_.send(FrameType::kClock, body_of(ask), kAnswerMs); !sent) return sent;
    auto frame = await(FrameType::kClock);
    if (!frame) return Error{frame.error()};
    const auto answer = parse_clock(frame->body);
    if (!answer || answer->sent_ns != ask.sent_ns)
      return Error{"the collector's clock is unreadable"};
    clock_.add(*answer, frame->came_ns, monotonic_ns());
  }
  clock_ns_ = monotonic_ns();
  return Done{};
}

std::optional<ClockOffset> Shipper::clock() { return clock_.best(monotonic_ns()); }

/// True if something was committed to node.db since we looked last.
Result<bool> Shipper::news() {
  if (inode_of(options_.node_db) != source_->inode) {
    return Error{source_->db ? "node.db was replaced" : "there is a node.db now"};
  }
  if (!source_->db) return false;
  auto query = source_->db->prepare("PRAGMA data_version");
  if (!query) return Error{query.error()};
  const std::int64_t before = data_version_;
  if (query->step()) data_version_ = query->integer(0);
  if (auto read = query->status(); !read) return Error{read.error()};
  return data_version_ != before;
}

Status Shipper::ship_all() {
  if (auto begun = source_->db->exec("BEGIN"); !begun) return begun;
  auto done = ship_pass();
  // Ends the reading either way: while it lasts, the recorders' log cannot be shortened.
  auto over = source_->db->exec("COMMIT");
  return done ? over : done;
}

/// Notes whenever their folder has changed; what is known already does no harm.
Status Shipper::ship_notes() {
  struct stat facts {};
  if (::stat(options_.notes.c_str(), &facts) != 0) return Done{};
  const std::int64_t changed_ns = facts.st_mtim.tv_sec * kSecond + facts.st_mtim.tv_nsec;
  if (changed_ns == notes_ns_) return Done{};
  const std::vector<NoteFile> notes = read_notes(options_.notes);
  if (!notes.empty()) {
    Shipment shipment;
    shipment.facts = {source_->node, source_->id, {}, {}};
    shipment.change = change_;
    shipment.raw.push_back(rows_of(notes));
    if (auto done = ship(shipment); !done) return done;
  }
  notes_ns_ = changed_ns;
  return Done{};
}

/// Everything that is new in the file, as it is at this moment.
Status Shipper::ship_pass() {
  auto reader = NodeReader::prepare(
      source_->db->raw(), change_, [this](const RunName& name) { return seen(name); }, notices_);
  if (!reader) return Error{reader.error()};
  std::map<RunName, RunSeen> told;
  for (;;) {
    auto shipment = reader->next();
    if (!shipment) return Error{shipment.error()};
    if (!*shipment) break;
    if ((*shipment)->empty() && (*shipment)->change == change_) continue;
    if (auto done = ship(**shipment); !done) return done;
    remember(**shipment, told);
    change_ = (*shipment)->change;
  }
  notices_ = reader->last_notice();
  for (auto& [name, seen] : told) {
    if (seen.end_ns) {
      seen_.erase(name);
    } else {
      seen_[name] = seen;
    }
  }
  return Done{};
}

Status Shipper::ship(const Shipment& shipment) {
  auto body = body_of(ShipHead{++number_, clock()}, shipment);
  if (!body) return Error{body.error()};
  if (auto sent = peer_.send(FrameType::kShip, *body, kAnswerMs); !sent) return sent;
  auto frame = await(FrameType::kStored);
  if (!frame) return Error{frame.error()};
  if (parse_stored(frame->body) != number_) return Error{"the collector stored something else"};
  alive_ns_ = monotonic_ns();
  return Done{};
}

/// What the collector has of a run; asked once per connection while the run goes on.
Result<RunSeen> Shipper::seen(const RunName& name) {
  const auto found = seen_.find(name);
  if (found != seen_.end()) return found->second;
  auto sent = peer_.send(FrameType::kAsk, body_of(std::vector<RunName>{name}), kAnswerMs);
  if (!sent) return Error{sent.error()};
  auto frame = await(FrameType::kSeen);
  if (!frame) return Error{frame.error()};
  const auto all = parse_seen(frame->body);
  if (!all || all->size() != 1) return Error{"the collector's answer cannot be read"};
  return all->front();
}

/// What the collector has after this shipment, once the pass it is of has ended.
void Shipper::remember(const Shipment& shipment, std::map<RunName, RunSeen>& told) {
  if (seen_.size() > kMostSeen) seen_.clear();
  for (std::size_t row = 0; row < shipment.runs.rows(); ++row) {
    const auto name = run_name(shipment.runs, row);
    if (!name) continue;
    RunSeen& seen = told[*name];
    if (const auto before = seen_.find(*name); !seen.known && before != seen_.end()) {
      seen = before->second;
    }
    const auto of = [&](std::string_view column) {
      const SegmentColumn* found = shipment.runs.find(column);
      return found != nullptr ? found->maybe_integer(row) : std::nullopt;
    };
    seen.known = true;
    seen.last_ns = of("last_ns").value_or(name->start_ns);
    seen.end_ns = of("end_ns");
    for (const SealedRows& sealed : shipment.sealed) {
      if (sealed.run != row) continue;
      auto& newest = seen.sealed_ns[sealed.table];
      newest = std::max(newest, sealed.sealed_ns);
    }
  }
}

/// Waits for news, keeps the connection alive, and takes what comes unasked.
Status Shipper::idle() {
  const std::int64_t now_ns = monotonic_ns();
  if (now_ns - clock_ns_ > kClockEveryNs) {
    if (auto done = measure_clock(1); !done) return done;
  }
  if (now_ns - alive_ns_ > kAliveEveryNs) {
    auto sent = peer_.send(FrameType::kAlive, body_of(ShipHead{++number_, clock()}), kAnswerMs);
    if (!sent) return sent;
    auto frame = await(FrameType::kStored);
    if (!frame) return Error{frame.error()};
    alive_ns_ = monotonic_ns();
  }
  if (now_ns - noted_ns_ > kNoteEveryNs) note_shipped();
  auto frame = peer_.receive(kLookMs);
  if (!frame) return Error{frame.error()};
  if (!*frame) return Done{};
  if ((*frame)->type == FrameType::kAdvice) return handle_advice(**frame);
  if ((*frame)->type == FrameType::kRefused) {
    return Error{"the collector refuses: " + (*frame)->body.substr(0, 512)};
  }
  return Error{"the collector sent what nobody asked for"};
}

/// For the recorders: what they give up first when the file is full. Worth no failure.
void Shipper::note_shipped() {
  noted_ns_ = monotonic_ns();
  if (change_ == noted_change_ || !source_->db) return;
  const auto noted =
      source_->db->exec("INSERT INTO meta VALUES ('shipped', '" + std::to_string(change_) +
                        "') ON CONFLICT (key) DO UPDATE SET value = excluded.value");
  if (noted) noted_change_ = change_;
}

/// Puts the table that has come in place of ours, as the collector's own `learn` would. Nothing of
/// it is believed: each entry is read, checked and written anew.
Status Shipper::handle_advice(const Frame& frame) {
  const auto part = parse_advice(frame.body);
  if (!part) return Error{"the collector sent advice that cannot be read"};
  if (options_.advice_table.empty()) return Done{};
  advice_ += part->bytes;
  if (advice_.size() > kMostAdviceBytes) return Error{"the collector's advice table has no end"};
  if (!part->last) return Done{};
  put_advice(std::exchange(advice_, {}));
  return Done{};
}

/// On the collector's own host the table that came is the one that is there.
void Shipper::put_advice(const std::string& bytes) {
  std::ifstream there(options_.advice_table, std::ios::binary);
  if (there && std::string{std::istreambuf_iterator<char>(there), {}} == bytes) return;
  const std::string aside = options_.advice_table + ".came";
  ::unlink(aside.c_str());
  {
    std::ofstream file(aside, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) return log_("cannot write " + aside + ": the advice table stays as it is");
  }
  auto entries = read_advice_table(aside);
  const auto written = entries ? write_advice_table(options_.advice_table, *entries)
                               : Status(Error{entries.error()});
  ::unlink(aside.c_str());
  if (!written) log_("the advice table stays as it is: " + written.error());
}

}  // namespace sphase
