#include "collector/ingest/store.h"

#include <doctest/doctest.h>

#include "tests/collector/ingest/node_file.h"
#include "tests/collector/ingest/stored_dump.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

using Columns = std::vector<std::pair<std::string, std::vector<Cell>>>;

/// Shipments made by hand: runs c1/1 and c1/2 on n1 that began at 0 s, last seen at 10 s.
Segment two_runs(Cell last = at(10), Cell end = {}) {
  return segment({{"cluster", {"c1", "c1"}},
                  {"job_id", {1, 2}},
                  {"restart_count", {0, 0}},
                  {"start_ns", {at(0), at(0)}},
                  {"step", {"0", "0"}},
                  {"node", {"n1", "n1"}},
                  {"uid", {1000, 1000}},
                  {"period_ns", {1, 1}},
                  {"sphase_version", {"0", "0"}},
                  {"last_ns", {last, last}},
                  {"end_ns", {end, end}}});
}

Segment samples(const std::vector<Cell>& runs, const std::vector<Cell>& times_ns) {
  return segment({{"run", runs},
                  {"time_ns", times_ns},
                  {"kind", std::vector<Cell>(runs.size(), "tick")},
                  {"cpu_time_ns", std::vector<Cell>(runs.size(), 7)}});
}

/// `count` and `end_s` differ between the words of a phase.
Columns phase_columns(const std::vector<Cell>& paths, int count = 1, double end_s = 5) {
  const auto all = [&](const Cell& value) { return std::vector<Cell>(paths.size(), value); };
  return {{"scope", all("task")}, {"task", all(0)},         {"path", paths},
          {"number", all(1)},     {"depth", all(0)},        {"count", all(count)},
          {"threads", all(1)},    {"begin_ns", all(at(1))}, {"end_ns", all(at(end_s))},
          {"flags", all(0)}};
}

Segment raw_phases(const std::vector<Cell>& paths, int count = 1, double end_s = 5) {
  Columns columns = phase_columns(paths, count, end_s);
  columns.insert(columns.begin(), {"run", std::vector<Cell>(paths.size(), 0)});
  return segment(columns);
}

SealedRows sealed(std::uint32_t table, std::int64_t sealed_ns, const Segment& rows,
                  std::uint32_t run = 0) {
  auto data = encode_segment(rows);
  REQUIRE(data);
  return {run, table, sealed_ns, *data};
}

SealedRows sealed_samples(std::int64_t sealed_ns, const std::vector<Cell>& times_ns) {
  Segment rows = samples(times_ns, times_ns);
  rows.columns.erase(rows.columns.begin());
  return sealed(0, sealed_ns, rows);
}

Shipment of(Segment runs, std::vector<SealedRows> all_sealed = {}) {
  Shipment shipment;
  shipment.runs = std::move(runs);
  shipment.sealed = std::move(all_sealed);
  return shipment;
}

constexpr std::uint32_t kPhases = 1;

const RunName kFirst{"c1", "0", "n1", 1, 0, at(0)};

struct Fixture : ClusterFixture {
  Store store{db()};

  /// As the writer does it.
  void put(const Shipment& shipment) {
    auto transaction = Transaction::begin(db());
    REQUIRE(transaction);
    const auto done = store.put(shipment);
    REQUIRE_MESSAGE(done, (done ? "" : done.error()));
    REQUIRE(transaction->commit());
  }
  std::string error_of(const Shipment& shipment) {
    auto transaction = Transaction::begin(db());
    REQUIRE(transaction);
    const auto done = store.put(shipment);
    return done ? "" : done.error();
  }
  RunSeen seen(const RunName& name = kFirst) {
    auto found = store.seen(name);
    REQUIRE_MESSAGE(found, (found ? "" : found.error()));
    return *found;
  }
  std::int64_t count(const std::string& from) {
    return number(db(), "SELECT count(*) FROM " + from);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "of a run that never came nothing is seen") {
  CHECK(seen() == RunSeen());
  put(of(two_runs()));
  RunName other = kFirst;
  other.node = "n2";
  CHECK(seen(other) == RunSeen());
}

TEST_CASE_FIXTURE(Fixture, "how far a run came, its end and its newest segments are seen") {
  put(of(two_runs(Cell())));
  CHECK(seen() == RunSeen{true, at(0), {}, {-1, -1, -1}});  // its start, where that is all
  put(of(two_runs()));
  CHECK(seen() == RunSeen{true, at(10), {}, {-1, -1, -1}});
  put(of(two_runs(at(20), at(20)), {sealed_samples(3, {1}), sealed_samples(9, {5}),
                                    sealed(kPhases, 4, segment(phase_columns({"a"})))}));
  CHECK(seen() == RunSeen{true, at(20), at(20), {9, 4, -1}});
  CHECK(store.count().runs == 6);
  CHECK(store.count().changed == 6);
}

TEST_CASE_FIXTURE(Fixture, "a shipment twice comes to the same rows") {
  Shipment shipment = of(two_runs());
  shipment.raw.push_back({"sample", samples({0, 1, 1}, {at(8), at(8), at(9)})});
  shipment.raw.push_back({"phase", raw_phases({"a", "b"})});
  shipment.raw.push_back({"notice", segment({{"run", {Cell()}},
                                             {"cluster", {"c1"}},
                                             {"job_id", {1}},
                                             {"restart_count", {0}},
                                             {"step", {"0"}},
                                             {"node", {"n1"}},
                                             {"time_ns", {5}},
                                             {"code", {"c"}},
                                             {"text", {"t"}}})});
  shipment.sealed.push_back(sealed_samples(3, {at(1), at(2)}));
  put(shipment);
  CHECK(store.count().rows == 2 + 3 + 2 + 1);
  const std::string before = dump_sealed(db()) + dump_plain(db());
  put(shipment);
  CHECK(dump_sealed(db()) + dump_plain(db()) == before);
  CHECK(count("segment") == 1);
  CHECK(count("notice WHERE run_id IS NULL") == 1);
  CHECK(store.count().refused == 0);
}

TEST_CASE_FIXTURE(Fixture, "raw rows that came before their segment go") {
  Shipment shipment = of(two_runs());
  shipment.raw.push_back({"sample", samples({0, 0, 0, 1}, {at(1), at(2), at(3), at(1)})});
  shipment.raw.push_back({"phase", raw_phases({"a", "b"})});
  put(shipment);
  put(of(two_runs(at(11)),
         {sealed_samples(3, {at(1), at(2)}), sealed(kPhases, 3, segment(phase_columns({"a"})))}));
  CHECK(count("sample") == 2);
  CHECK(count("sample WHERE time_ns = " + std::to_string(at(3))) == 1);
  CHECK(count("phase") == 1);
  CHECK(count("phase WHERE path = 'b'") == 1);
  CHECK(rows(db(), "sample").size() == 4);
  CHECK(rows(db(), "phase").size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "a raw sample that is sealed already does not come again") {
  put(of(two_runs(), {sealed_samples(3, {at(1), at(2)})}));
  Shipment shipment = of(two_runs(at(11)));
  shipment.raw.push_back({"sample", samples({0, 0}, {at(1), at(3)})});
  put(shipment);
  CHECK(count("sample") == 1);
}

TEST_CASE_FIXTURE(Fixture, "the newest word on a phase counts, raw or sealed") {
  Shipment shipment = of(two_runs());
  shipment.raw.push_back({"phase", raw_phases({"a"}, 1)});
  put(shipment);
  shipment.runs = two_runs(at(11));
  shipment.raw[0].rows = raw_phases({"a"}, 2);
  put(shipment);
  CHECK(rows(db(), "phase").begin()->second["count"] == "2");
  put(of(two_runs(at(12)), {sealed(kPhases, 3, segment(phase_columns({"a"}, 3)))}));
  CHECK(rows(db(), "phase").begin()->second["count"] == "3");
  shipment.runs = two_runs(at(13));
  shipment.raw[0].rows = raw_phases({"a"}, 4);  // reopened
  put(shipment);
  CHECK(rows(db(), "phase").begin()->second["count"] == "4");
  CHECK(rows(db(), "phase").size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "an older copy after a newer one adds rows, and changes none") {
  Shipment newer = of(two_runs(at(20), at(20)));
  newer.raw.push_back({"phase", raw_phases({"a"}, 5)});
  newer.sealed.push_back(sealed(kPhases, 9, segment(phase_columns({"b"}, 5))));
  put(newer);
  Shipment older = of(two_runs(at(10)));
  older.raw.push_back({"phase", raw_phases({"a", "b", "c"}, 1)});
  put(older);
  CHECK(seen() == RunSeen{true, at(20), at(20), {-1, 9, -1}});
  std::string counts;
  for (auto& [key, row] : rows(db(), "phase")) counts += row["path"] + row["count"];
  CHECK(counts == "'a'5'b'5'c'1");
  CHECK(text(db(), "SELECT end_ns FROM run WHERE job_id = 1") == std::to_string(at(20)));
}

TEST_CASE_FIXTURE(Fixture, "a segment of an older copy leaves the newer raw rows") {
  Shipment newer = of(two_runs(at(20)));
  newer.raw.push_back({"phase", raw_phases({"a"}, 5)});
  put(newer);
  put(of(two_runs(at(10)), {sealed(kPhases, 3, segment(phase_columns({"a"}, 1)))}));
  CHECK(rows(db(), "phase").begin()->second["count"] == "5");
}

TEST_CASE_FIXTURE(Fixture, "paths of phases are noted, raw or sealed, also after a rollback") {
  Shipment shipment = of(two_runs());
  shipment.raw.push_back({"phase", raw_phases({"a"})});
  shipment.sealed.push_back(sealed(kPhases, 3, segment(phase_columns({"b", "c"}))));
  CHECK(error_of(shipment) == "");  // and rolled back
  store.forget();
  put(shipment);
  CHECK(count("phase_path") == 3);
}

TEST_CASE_FIXTURE(Fixture,
                  "rows of a run that is not in the shipment are refused, the others kept") {
  Shipment shipment = of(two_runs());
  shipment.raw.push_back({"sample", samples({0, 2, -1, INT64_MAX, INT64_MIN, Cell(), 1},
                                            {at(1), at(1), at(1), at(1), at(1), at(1), at(1)})});
  auto lost = sealed_samples(3, {at(1)});
  for (const std::uint32_t run : {2u, UINT32_MAX}) {
    lost.run = run;
    shipment.sealed.push_back(lost);
  }
  lost.run = 0;
  lost.table = 3;
  shipment.sealed.push_back(lost);
  put(shipment);
  CHECK(count("sample") == 2);
  CHECK(count("segment") == 0);
  CHECK(store.count().refused == 5 + 3);
  CHECK(seen().sealed_ns == RunSeen().sealed_ns);
}

TEST_CASE_FIXTURE(Fixture, "places of runs that are no numbers are refused") {
  Shipment shipment = of(two_runs());
  shipment.raw.push_back({"sample", samples({"0"}, {at(1)})});
  put(shipment);
  CHECK(count("sample") == 0);
  CHECK(store.count().refused == 1);
}

TEST_CASE_FIXTURE(Fixture, "a run without a name is refused with its rows, the others kept") {
  Shipment shipment = of(two_runs());
  for (auto& one : shipment.runs.columns) {
    if (one.name() == "step") one = column("step", {Cell(), "0"});
  }
  shipment.raw.push_back({"sample", samples({0, 1}, {at(1), at(1)})});
  shipment.sealed.push_back(sealed_samples(3, {at(1)}));
  put(shipment);
  CHECK(count("run") == 1);
  CHECK(count("sample") == 1);
  CHECK(store.count().refused == 3);
  CHECK_FALSE(seen().known);
}

TEST_CASE_FIXTURE(Fixture, "a run that its table does not allow is refused, the others kept") {
  Shipment shipment = of(two_runs());
  for (auto& one : shipment.runs.columns) {
    if (one.name() == "uid") one = column("uid", {Cell(), 1});
  }
  shipment.raw.push_back({"sample", samples({0, 1}, {at(1), at(1)})});
  put(shipment);
  CHECK(count("run") == 1);
  CHECK(count("sample") == 1);
  CHECK(store.count().refused == 2);
}

TEST_CASE_FIXTURE(Fixture, "rows that their table does not allow are left out, the others kept") {
  Shipment shipment = of(two_runs());
  Columns columns = phase_columns({"a", "b", "c"});
  columns[5].second = {1, Cell(), 3};  // count
  columns.insert(columns.begin(), {"run", {0, 0, 0}});
  shipment.raw.push_back({"phase", segment(columns)});
  put(shipment);
  CHECK(count("phase") == 2);
  CHECK(store.count().refused == 1);
}

TEST_CASE_FIXTURE(Fixture,
                  "rows of an unknown table, or without a column of theirs, are an error") {
  const Segment no_run = segment({{"time_ns", {1}}, {"kind", {"tick"}}});
  for (const auto& raw :
       {RawRows{"nothing", samples({0}, {1})}, RawRows{"job", samples({0}, {1})},
        RawRows{"meta", samples({0}, {1})}, RawRows{"sample; DROP TABLE run", samples({0}, {1})},
        RawRows{"sample", segment({{"run", {0}}, {"x", {1}}})}, RawRows{"sample", no_run},
        RawRows{"sample", {}}}) {
    Shipment shipment = of(two_runs());
    shipment.raw.push_back(raw);
    CHECK(error_of(shipment) != "");
  }
  CHECK(count("run") == 0);
  put(of(two_runs()));  // and it goes on
  CHECK(count("run") == 2);
}

TEST_CASE_FIXTURE(Fixture, "columns that only the shipment has are left out") {
  Shipment shipment = of(two_runs());
  Segment rows = samples({0}, {at(1)});
  rows.columns.push_back(column("of_the_future", {5}));
  rows.columns.push_back(column("run_id", {77}));
  rows.columns.push_back(column("x\"); DROP TABLE run; --", {5}));
  shipment.raw.push_back({"sample", rows});
  shipment.runs.columns.push_back(column("run_id", {88, 89}));
  put(shipment);
  CHECK(count("sample JOIN run USING (run_id) WHERE job_id = 1") == 1);
  CHECK(count("run WHERE run_id > 80") == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "a segment that cannot be read is told, is not seen, and costs no other") {
  Segment of_numbers = segment(phase_columns({7, 8}));
  Segment of_texts = samples({"x"}, {"x"});
  Segment no_number = segment(phase_columns({"a"}));
  no_number.columns.erase(no_number.columns.begin() + 3);
  Segment null_path = segment(phase_columns({"a", Cell()}));
  std::int64_t damaged = 0;
  for (const auto& bad :
       {SealedRows{0, kPhases, 5, ""}, SealedRows{0, kPhases, 5, "no segment"},
        sealed(kPhases, 5, {}), sealed(kPhases, 5, of_numbers), sealed(0, 5, of_texts),
        sealed(kPhases, 5, no_number), sealed(kPhases, 5, null_path),
        sealed(kPhases, 5, samples({0}, {1})), sealed(2, 5, segment(phase_columns({"a"})))}) {
    CAPTURE(damaged);
    put(of(two_runs(), {bad, sealed_samples(6, {at(1)})}));
    CHECK(store.count().damaged == ++damaged);
    CHECK(count("segment") == 1);
    CHECK(seen().sealed_ns == std::array<std::int64_t, 3>{6, -1, -1});
  }
  CHECK(count("notice WHERE code = 'damaged-rows'") == 1);
  CHECK(store.count().first_damage.rfind("rows of table phase are missing", 0) == 0);
}

TEST_CASE_FIXTURE(Fixture, "rows of any type in any column neither crash nor stop the others") {
  const std::vector<Cell> kinds = {Cell(), 5, 0.5, "text"};
  for (const auto& kind : kinds) {
    for (std::size_t at_column = 0; at_column < 10; ++at_column) {
      Columns columns = phase_columns({"a"});
      columns[at_column].second = {kind};
      Shipment shipment =
          of(two_runs(), {sealed(kPhases, static_cast<int>(at_column), segment(columns))});
      columns.insert(columns.begin(), {"run", {0}});
      shipment.raw.push_back({"phase", segment(columns)});
      put(shipment);
      shipment.runs = two_runs(at(1));  // and as an older word
      put(shipment);
    }
  }
  CHECK(number(db(), "SELECT count(*) FROM run") == 2);
}

TEST_CASE_FIXTURE(Fixture, "shipments of ever other columns do not make the store grow") {
  sqlite3_stmt* statement = nullptr;
  for (int i = 0; i < 1024; ++i) {
    Segment rows = samples({0}, {at(1)});
    for (int bit = 0; bit < 10; ++bit) {
      static const char* const kNames[] = {
          "memory_current_bytes", "memory_anon_bytes",  "memory_file_bytes", "memory_shmem_bytes",
          "memory_kernel_bytes",  "memory_peak_bytes",  "io_read_bytes",     "io_write_bytes",
          "io_read_call_bytes",   "io_write_call_bytes"};
      if ((i >> bit & 1) != 0) rows.columns.push_back(column(kNames[bit], {i}));
    }
    Shipment shipment = of(two_runs());
    shipment.raw.push_back({"sample", rows});
    put(shipment);
  }
  int statements = 0;
  while ((statement = sqlite3_next_stmt(db().raw(), statement)) != nullptr) ++statements;
  CHECK(statements < 250);
}
