// Counters in a session, on a PAPI whose counts go up by one per read.
#include "tests/spank/recorder/papi/papi_fake.h"
#include "tests/spank/recorder/session_harness.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

const char* const kTwo = "PAPI_TOT_INS+PAPI_TOT_CYC";

std::unique_ptr<PapiSource> source_on(FakePapi& papi, const char* asked = kTwo) {
  return std::make_unique<PapiSource>(papi.api(), probe_papi(papi.api(), asked));
}

/// A marker whose counters have been read.
void mark(Step& step, std::uint32_t client, std::uint8_t type, const char* name) {
  step.mark(client, type, name);
  REQUIRE(step.is_drained());
}

bool has_notice(const Step& step, const std::string& words) {
  return std::any_of(step.notices.begin(), step.notices.end(), [&](const NoticeRow& row) {
    return row.text.find(words) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("counters are read once at each edge of their task, and at its end") {
  FakePapi papi;
  Step step(1000, source_on(papi));
  const Task task;
  step.attach(0, task.pid());
  const int before = papi.reads;
  const std::uint32_t client = step.session.add_client(task.pid());
  REQUIRE(client != 0);
  mark(step, client, SPHASE_BEGIN, "outer");
  mark(step, client, SPHASE_BEGIN, "inner");
  mark(step, client, SPHASE_END, "inner");
  mark(step, client, SPHASE_END, "outer");
  step.take();
  CHECK(papi.reads - before == 4);
  REQUIRE(step.phase("outer").counts.size() == 2);
  CHECK(step.phase("outer").counts[0].value == 3);
  CHECK(step.phase("outer/inner").counts[0].value == 1);
  CHECK(step.state.events == std::vector<std::string>{"PAPI_TOT_INS", "PAPI_TOT_CYC"});
  CHECK(step.state.counters.source == "papi-hw");

  step.exit(0, task.pid());
  step.take();
  REQUIRE(step.tasks.back().counts.size() == 2);
  CHECK(step.tasks.back().counts[0].value == papi.reads - before);
  CHECK(papi.open_sets() == 0);
}

TEST_CASE("a phase counts its own task alone") {
  FakePapi papi;
  Step step(1000, source_on(papi));
  const Task first, second;
  step.attach(0, first.pid());
  step.attach(1, second.pid());
  const std::uint32_t a = step.session.add_client(first.pid());
  const std::uint32_t b = step.session.add_client(second.pid());
  mark(step, a, SPHASE_BEGIN, "a");
  for (int i = 0; i < 5; ++i) {
    mark(step, b, SPHASE_BEGIN, "b");
    mark(step, b, SPHASE_END, "b");
  }
  mark(step, a, SPHASE_END, "a");
  step.take();
  CHECK(step.phase("a").counts[0].value == 1);
}

TEST_CASE("a node that cannot count says why, and has no counts") {
  FakePapi papi;
  papi.known.clear();
  papi.kernel_errno = ENOENT;
  Step step(1000, source_on(papi));
  const Task task;
  step.attach(0, task.pid());
  const std::uint32_t client = step.session.add_client(task.pid());
  step.mark(client, SPHASE_BEGIN, "a");
  mark(step, client, SPHASE_END, "a");
  step.exit(0, task.pid());
  step.take();
  CHECK(step.phase("a").counts.empty());
  CHECK(step.tasks.back().counts.empty());
  CHECK(step.state.counters.source == "none");
  CHECK(step.state.counters.reason.find("no hardware counters") != std::string::npos);
  CHECK(step.notices.empty());
}

TEST_CASE("a task that cannot be attached has no counts, and one notice says so for all") {
  FakePapi papi;
  Step step(1000, source_on(papi));
  const Task first, second, third;
  papi.gone_pids = {second.pid(), third.pid()};
  step.attach(0, first.pid());
  step.attach(1, second.pid());
  step.attach(2, third.pid());
  step.take();
  CHECK(has_notice(step, "no counters for task 1 and perhaps further ones: cannot attach PAPI"));
  CHECK(step.notices.size() == 1);
}

TEST_CASE("a launch waits for counters only so long; tasks beyond have none") {
  FakePapi papi;
  PapiApi slow = papi.api();
  const auto attach = slow.attach;
  slow.attach = [&](int set, int pid) {
    if (pid != getpid()) usleep(Session::kMostPapiLaunchNs / 1000);
    return attach(set, pid);
  };
  Step step(1000, std::make_unique<PapiSource>(slow, probe_papi(slow, kTwo)));
  const Task first, second;
  step.attach(0, first.pid());
  step.attach(1, second.pid());
  step.exit(0, first.pid());
  step.exit(1, second.pid());
  step.take();
  CHECK(step.tasks[2].counts.size() == 2);
  CHECK(step.tasks[3].counts.empty());
  CHECK(
      has_notice(step, "no counters for task 1 and perhaps further ones: attaching those before"));
}

TEST_CASE("a task whose slurmstepd vanished has its counts all the same") {
  FakePapi papi;
  Step step(1000, source_on(papi));
  const Task task;
  step.attach(0, task.pid());
  step.session.finish("slurmstepd vanished");
  step.take();
  CHECK(step.tasks.back().counts.size() == 2);
  CHECK_FALSE(step.tasks.back().end_ns);
  CHECK(papi.open_sets() == 0);
}

TEST_CASE("counts that go down are refused and counted as such") {
  FakePapi papi;
  Step step(1000, source_on(papi));
  const Task task;
  step.attach(0, task.pid());
  const std::uint32_t client = step.session.add_client(task.pid());
  papi.offset = 1000;
  mark(step, client, SPHASE_BEGIN, "a");
  papi.offset = 0;
  mark(step, client, SPHASE_END, "a");
  step.take();
  REQUIRE(step.phase("a").counts.size() == 2);
  CHECK_FALSE(step.phase("a").counts[0].value);
  CHECK(step.state.counters_refused == 2);
}
