#include "spank/recorder/papi/papi_source.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "tests/spank/recorder/papi/papi_fake.h"

using namespace sphase;
using sphase::testing::FakePapi;

namespace {

constexpr int kPid = 4711;
const char* const kTwo = "PAPI_TOT_INS+PAPI_TOT_CYC";

/// A source on the fake, asked as in life.
struct Node {
  PapiSource& source(const char* asked = kTwo) {
    made = std::make_unique<PapiSource>(papi.api(), probe_papi(papi.api(), asked));
    return *made;
  }
  FakePapi papi;
  std::unique_ptr<PapiSource> made;
};

/// Three events on two counters: they take turns.
struct SharedNode : Node {
  SharedNode() {
    papi.counters = 2;
    source("PAPI_TOT_INS+PAPI_TOT_CYC+PAPI_BR_MSP+mpx");
    REQUIRE(made->multiplexed());
    REQUIRE(made->attach(0, kPid));
  }
  PapiCount read(std::uint64_t enabled_ns, std::uint64_t running_ns) {
    papi.enabled_ns = enabled_ns;
    papi.running_ns = running_ns;
    const auto& counts = made->read(0);
    REQUIRE(counts.size() == 3);
    return counts[2];
  }
};

struct FileLimit {
  explicit FileLimit(rlim_t files) {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit lower{files, before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &lower) == 0);
  }
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before); }
  rlimit before{};
};

bool has(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a task's counts go up from read to read, and have no times") {
  Node node;
  PapiSource& source = node.source();
  CHECK(source.names() == std::vector<std::string>{"PAPI_TOT_INS", "PAPI_TOT_CYC"});
  CHECK(source.tier().source == "papi-hw");
  REQUIRE(source.attach(3, kPid));
  for (std::int64_t i = 1; i <= 3; ++i) {
    const auto& counts = source.read(3);
    REQUIRE(counts.size() == 2);
    CHECK(counts[0].value == i);
    CHECK(counts[1].value == i);
    CHECK_FALSE(counts[0].time_enabled_ns);
    CHECK_FALSE(counts[0].time_running_ns);
  }
}

TEST_CASE("tasks are counted apart") {
  Node node;
  PapiSource& source = node.source();
  REQUIRE(source.attach(0, kPid));
  REQUIRE(source.attach(1, kPid + 1));
  (void)source.read(0);
  CHECK(source.read(0)[0].value == 2);
  CHECK(source.read(1)[0].value == 1);
}

TEST_CASE("a detached task keeps its last counts, and gives its descriptors back") {
  Node node;
  PapiSource& source = node.source();
  REQUIRE(source.attach(0, kPid));
  CHECK(node.papi.open_files() == 2);
  (void)source.read(0);
  source.detach(0);
  CHECK(node.papi.open_files() == 0);
  CHECK(node.papi.open_sets() == 0);
  CHECK(source.read(0)[0].value == 2);
  CHECK(source.read(0)[0].value == 2);
  source.detach(0);
  CHECK_FALSE(source.attach(0, kPid));
}

TEST_CASE("all is closed with the source") {
  Node node;
  REQUIRE(node.source().attach(0, kPid));
  node.made.reset();
  CHECK(node.papi.open_sets() == 0);
}

TEST_CASE("an unknown task has no counts") {
  Node node;
  PapiSource& source = node.source();
  CHECK(source.read(9).empty());
  source.detach(9);
}

TEST_CASE("a count that goes down is no value, until it is higher than ever again") {
  Node node;
  PapiSource& source = node.source();
  node.papi.offset = 1000;
  REQUIRE(source.attach(0, kPid));
  CHECK(source.read(0)[0].value == 1001);
  node.papi.offset = 10;
  CHECK_FALSE(source.read(0)[0].value);
  CHECK(source.bad_values() == 2);
  node.papi.offset = 1000;
  CHECK(source.read(0)[0].value == 1003);
  CHECK(source.bad_values() == 2);
}

TEST_CASE("a negative count is no value") {
  Node node;
  PapiSource& source = node.source();
  node.papi.offset = -1000;
  REQUIRE(source.attach(0, kPid));
  CHECK_FALSE(source.read(0)[0].value);
  CHECK(source.bad_values() == 2);
}

TEST_CASE("PAPI that cannot read gives no values") {
  Node node;
  PapiSource& source = node.source();
  REQUIRE(source.attach(0, kPid));
  node.papi.read_code = -3;
  const auto& counts = source.read(0);
  REQUIRE(counts.size() == 2);
  CHECK_FALSE(counts[0].value);
  CHECK(source.bad_values() == 0);
}

TEST_CASE("a group that cannot run has no values, although PAPI says 0 and all is well") {
  Node node;
  PapiSource& source = node.source();
  REQUIRE(source.attach(0, kPid));
  node.papi.group_fails = true;
  CHECK_FALSE(source.read(0)[0].value);
  CHECK_FALSE(source.read(0)[1].value);
}

TEST_CASE("the leader of a group is known by its age, not by its descriptor") {
  Node node;
  node.papi.backwards = true;
  PapiSource& source = node.source();
  REQUIRE(source.attach(0, kPid));
  CHECK(source.read(0)[0].value);
  node.papi.group_fails = true;
  CHECK_FALSE(source.read(0)[0].value);
}

TEST_CASE("multiplexed events have raw counts and times") {
  SharedNode node;
  const PapiCount count = node.read(1'000'000, 500'000);
  CHECK(count.value == 1);
  CHECK(count.time_enabled_ns == 1'000'000);
  CHECK(count.time_running_ns == 500'000);
  CHECK(node.papi.multiplex_inits > 0);
}

TEST_CASE("an event that ran less than 1 % of the time has times and no value") {
  SharedNode node;
  const PapiCount rare = node.read(1'000'000, 9'999);
  CHECK_FALSE(rare.value);
  CHECK(rare.time_running_ns == 9'999);
  CHECK(node.read(1'000'000, 10'000).value);
  CHECK(node.read(0, 0).value);  // the task has not run yet
}

TEST_CASE("multiplexed garbage is no value and is counted") {
  SharedNode node;
  const PapiCount more = node.read(100, 101);
  CHECK_FALSE(more.value);
  CHECK_FALSE(more.time_enabled_ns);
  CHECK(node.made->bad_values() == 3);
  CHECK_FALSE(node.read(UINT64_MAX, UINT64_MAX).value);
  node.papi.offset = INT64_MAX;
  CHECK_FALSE(node.read(100, 100).value);
  CHECK(node.made->bad_values() == 9);
  node.papi.group_fails = true;
  CHECK_FALSE(node.read(100, 100).time_enabled_ns);
}

TEST_CASE("a task that is gone cannot be attached, and leaves nothing behind") {
  Node node;
  node.papi.gone_pids.insert(kPid);
  PapiSource& source = node.source();
  const Status attached = source.attach(0, kPid);
  REQUIRE_FALSE(attached);
  CHECK(attached.error() == "cannot attach PAPI: code -3");
  CHECK(source.read(0).empty());
  CHECK(node.papi.open_sets() == 0);
  CHECK(source.attach(1, kPid + 1));
}

TEST_CASE("descriptors are left for others: half of RLIMIT_NOFILE at most") {
  Node node;
  PapiSource& source = node.source();
  const FileLimit limit(24);
  for (std::uint32_t task = 0; task < 6; ++task) REQUIRE(source.attach(task, kPid));
  const Status refused = source.attach(6, kPid);
  REQUIRE_FALSE(refused);
  CHECK(has(refused.error(), "14 are more than half of RLIMIT_NOFILE (24)"));
  source.detach(0);
  CHECK(source.attach(6, kPid));
}

TEST_CASE("descriptors are told apart, also those that were used before") {
  Node node;
  PapiSource& source = node.source();
  for (std::uint32_t task = 0; task < 3; ++task) REQUIRE(source.attach(task, kPid));
  source.detach(1);
  REQUIRE(source.attach(3, kPid));
  REQUIRE(source.attach(4, kPid));
  CHECK(node.papi.open_files() == 8);
  CHECK(source.read(4)[0].value == 1);
}

TEST_CASE("at most 1024 tasks are counted") {
  Node node;
  PapiSource& source = node.source("PAPI_TOT_INS");
  const FileLimit limit(4096);
  for (std::uint32_t task = 0; task < PapiSource::kMostTasks; ++task) {
    REQUIRE(source.attach(task, kPid));
  }
  const Status refused = source.attach(5000, kPid);
  REQUIRE_FALSE(refused);
  CHECK(has(refused.error(), "at most 1024 tasks"));
}

TEST_CASE("counters whose descriptors are not found are not trusted") {
  Node node;
  PapiSource& source = node.source();
  node.papi.has_files = false;
  CHECK_FALSE(source.attach(0, kPid));
  CHECK(node.papi.open_sets() == 0);
}

TEST_CASE("without counters every attach says why") {
  PapiSource none("no PAPI here");
  CHECK(none.tier().source == "none");
  CHECK(none.tier().reason == "no PAPI here");
  CHECK(none.names().empty());
  const Status attached = none.attach(0, kPid);
  REQUIRE_FALSE(attached);
  CHECK(attached.error() == "no PAPI here");
  CHECK(none.read(0).empty());
}

TEST_CASE("a kept plan that PAPI does not know any more is none") {
  Node node;
  const PapiPlan plan = probe_papi(node.papi.api(), kTwo);
  node.papi.known.erase("PAPI_TOT_CYC");
  PapiSource source(node.papi.api(), plan);
  CHECK(source.tier().source == "none");
  CHECK(source.tier().reason == "PAPI_TOT_CYC: code -7");
  CHECK(source.names().empty());
  CHECK_FALSE(source.attach(0, kPid));
}
