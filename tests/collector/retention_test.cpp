#include "collector/retention.h"

#include <doctest/doctest.h>

#include <random>

#include "collector/ingest/store.h"
#include "common/segment.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

constexpr std::int64_t kDay = 86'400 * kSecond;

/// Numbers that do not compress: it takes pages of its own.
std::string segment_of_samples(double begin_s, int rows) {
  std::minstd_rand random(1);
  Segment segment;
  segment.columns.emplace_back("time_ns");
  segment.columns.emplace_back("kind");
  for (int i = 0; i < 12; ++i) segment.columns.emplace_back("n" + std::to_string(i));
  for (int i = 0; i < rows; ++i) {
    REQUIRE(segment.columns[0].add(at(begin_s) + i * kSecond));
    REQUIRE(segment.columns[1].add(std::string_view("tick")));
    for (std::size_t column = 2; column < segment.columns.size(); ++column) {
      REQUIRE(segment.columns[column].add(static_cast<std::int64_t>(random() * random())));
    }
  }
  auto bytes = encode_segment(segment);
  REQUIRE(bytes);
  return *bytes;
}

/// A run with a sealed and a raw part, and a phase.
Shipment shipment(std::int64_t job, double begin_s) {
  Shipment out;
  const auto text = [&](const char* name, std::string_view value) {
    REQUIRE(out.runs.columns.emplace_back(name).add(value));
  };
  const auto number = [&](const char* name, std::int64_t value) {
    REQUIRE(out.runs.columns.emplace_back(name).add(value));
  };
  text("cluster", "c1");
  number("job_id", job);
  number("restart_count", 0);
  number("start_ns", at(begin_s));
  text("step", "0");
  text("node", "n1");
  number("uid", 1000);
  number("period_ns", kSecond);
  text("sphase_version", "0.1.0");
  number("last_ns", at(begin_s) + 100 * kSecond);
  number("end_ns", at(begin_s) + 100 * kSecond);
  out.sealed.push_back({0, 0, at(begin_s) + 99 * kSecond, segment_of_samples(begin_s, 64)});
  return out;
}

void put(Database& db, const Shipment& one) {
  Store store(db);
  auto transaction = Transaction::begin(db);
  REQUIRE(transaction);
  REQUIRE(store.put(one));
  REQUIRE(transaction->commit());
}

std::int64_t number(Database& db, const std::string& sql) {
  auto query = db.prepare(sql);
  REQUIRE(query);
  REQUIRE(query->step());
  return query->integer(0);
}

std::size_t samples_of(ClusterFixture& cluster, const std::string& job) {
  return cluster.load(job).front().runs.front().samples.samples().size();
}

}  // namespace

TEST_CASE("samples that are too old go, sealed or not; phases and runs stay") {
  ClusterFixture cluster;
  put(cluster.db(), shipment(1, 0));
  put(cluster.db(), shipment(2, 20.0 * 86400));
  const auto old = add_run(cluster.db(), {.job_id = 3});
  add_samples(cluster.db(), old, 0, 10, 1);
  add_phase(cluster.db(), old, {.path = "solve", .begin_s = 1, .end_s = 3, .cpu_s = 2});
  const auto retired = retire(cluster.db(), {10, 0}, at(0) + 21 * kDay);
  REQUIRE(retired);
  CHECK(retired->samples == 64 + 11);
  CHECK(samples_of(cluster, "1") == 0);
  CHECK(samples_of(cluster, "2") == 64);
  CHECK(samples_of(cluster, "3") == 0);
  CHECK(cluster.load("3").front().runs.front().phases.size() == 1);
  CHECK(retire(cluster.db(), {10, 0}, at(0) + 21 * kDay)->samples == 0);
}

TEST_CASE("what was given up is not taken again, and nothing is said to be damaged") {
  ClusterFixture cluster;
  put(cluster.db(), shipment(1, 0));
  REQUIRE(retire(cluster.db(), {10, 0}, at(0) + 21 * kDay));
  put(cluster.db(), shipment(1, 0));
  CHECK(samples_of(cluster, "1") == 0);
  CHECK(cluster.load("1").front().runs.front().segments_unreadable == 0);
  Store store(cluster.db());
  const auto seen = store.seen({"c1", "0", "n1", 1, 0, at(0)});
  REQUIRE(seen);
  CHECK(seen->sealed_ns[0] == at(99));
}

TEST_CASE("without a limit nothing goes") {
  ClusterFixture cluster;
  put(cluster.db(), shipment(1, 0));
  CHECK(retire(cluster.db(), {0, 0}, at(0) + 10'000 * kDay)->samples == 0);
  CHECK(samples_of(cluster, "1") == 64);
}

TEST_CASE(
    "a database that is too large gives up its oldest samples, and says when that is not enough") {
  ClusterFixture cluster;
  for (int job = 1; job <= 1200; ++job) put(cluster.db(), shipment(job, job * 200.0));
  const auto before = retire(cluster.db(), {0, 0}, at(0));
  REQUIRE(before);
  const auto after = retire(cluster.db(), {0, before->bytes - 1}, at(0));
  REQUIRE(after);
  CHECK(after->samples > 0);
  CHECK(after->bytes < before->bytes);
  CHECK_FALSE(after->still_too_large);
  CHECK(samples_of(cluster, "1") == 0);
  CHECK(samples_of(cluster, "1200") == 64);
  const auto least = retire(cluster.db(), {0, 4096}, at(0));
  REQUIRE(least);
  CHECK(least->still_too_large);
  CHECK(number(cluster.db(), "SELECT sum(rows) FROM segment") == 0);
}
