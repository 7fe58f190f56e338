// Ships what the recorders of one node write into its node.db to the collector, as it comes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "collector/ingest/node_reader.h"
#include "collector/ship/clock_filter.h"
#include "collector/ship/peer.h"
#include "collector/wire/credential.h"

namespace sphase {

struct ShipOptions {
  std::string node_db;
  std::string notes;  // folder where notes lie that no node.db has taken in
  std::string host;
  std::uint16_t port = 6825;
  MungePlace munge;
  std::vector<std::uint32_t> collector_uids;  // as whom a collector may run
  std::string advice_table;                   // where to put the table that comes; "": not wanted
};

/// One thread, no state of its own on the disk: what has been shipped is asked of the collector. So
/// a shipper may be killed at any time, and a collector may lose its last hours to a restored
/// backup.
class Shipper {
 public:
  using Log = std::function<void(const std::string&)>;

  Shipper(ShipOptions options, Peer::Stop stop, Log log);

  /// Until `stop` says so. Failures are told once and tried again, after 1 s, 2 s, … 60 s, each
  /// time between half of that and all of it, so that a thousand nodes do not come back at once.
  void run();

 private:
  struct Source {  // the node.db that is open; nullopt: there are notes alone
    std::optional<Database> db;
    std::string id, node;
    std::uint64_t inode = 0;
  };

  Status session();
  Result<std::optional<Source>> open_source();
  std::optional<Source> only_notes() const;
  Status ship_notes();
  Status measure_clock(int times);
  Status ship_all();
  Status ship_pass();
  Status ship(const Shipment& shipment);
  Result<RunSeen> seen(const RunName& name);
  void remember(const Shipment& shipment, std::map<RunName, RunSeen>& told);
  Result<Frame> await(FrameType type);
  Status handle_advice(const Frame& frame);
  void put_advice(const std::string& bytes);
  Status idle();
  Result<bool> news();
  void note_shipped();
  bool wait(std::int64_t ms);
  std::optional<ClockOffset> clock();

  ShipOptions options_;
  Peer::Stop stop_;
  Log log_;
  Peer peer_;
  ClockFilter clock_;
  std::optional<Source> source_;
  std::map<RunName, RunSeen> seen_;  // of runs that go on, as the collector has them
  std::int64_t change_ = 0;          // stored up to here
  std::int64_t noted_change_ = 0;    // written into meta.shipped
  std::int64_t notices_ = 0;         // rowid of the last notice of no run
  std::int64_t data_version_ = -1;
  std::int64_t notes_ns_ = -1;  // when the folder of notes had changed last
  std::uint64_t number_ = 0;
  std::int64_t clock_ns_ = 0, noted_ns_ = 0, alive_ns_ = 0;  // when last; monotonic
  std::string advice_;                                       // parts that have come
  std::minstd_rand random_;
};

}  // namespace sphase
