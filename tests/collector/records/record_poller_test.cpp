#include "collector/records/record_poller.h"

#include <doctest/doctest.h>

using namespace sphase;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
std::int64_t at(std::int64_t seconds) { return 1'000 * kSecond + seconds * kSecond; }

/// Seconds from a failure at 0 to the next question.
std::int64_t wait_of(const RecordPoller& poller) {
  for (std::int64_t second = 0; second <= 2000; ++second) {
    if (poller.due(Daemon::kSlurmdbd, at(second))) return second;
  }
  return -1;
}

}  // namespace

TEST_CASE("a daemon is asked at once, and then once a minute at most") {
  RecordPoller poller({});
  CHECK(poller.next_ns() == 0);
  CHECK(poller.due(Daemon::kSlurmctld, at(0)));
  int asked = 0;
  for (std::int64_t second = 0; second < 600; ++second) {
    if (!poller.due(Daemon::kSlurmctld, at(second))) continue;
    ++asked;
    poller.answered(Daemon::kSlurmctld, at(second));
  }
  CHECK(asked == 10);
  CHECK(poller.due(Daemon::kSlurmdbd, at(600)));  // the other one has its own times
}

TEST_CASE("a daemon that is away is asked later and later, up to a quarter of an hour") {
  RecordPoller poller({60, 900}, [] { return 0.999999; });
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 6; ++i) {
    poller.failed(Daemon::kSlurmdbd, "slurmdbd could not be asked", at(0));
    waits.push_back(wait_of(poller));
  }
  CHECK(waits == std::vector<std::int64_t>{120, 240, 480, 900, 900, 900});
  poller.answered(Daemon::kSlurmdbd, at(0));
  CHECK(wait_of(poller) == 60);
}

TEST_CASE("many collectors do not come back at one time") {
  RecordPoller early({60, 900}, [] { return 0.0; }), late({60, 900}, [] { return 0.5; });
  for (RecordPoller* poller : {&early, &late}) {
    poller->failed(Daemon::kSlurmdbd, "away", at(0));
    poller->failed(Daemon::kSlurmdbd, "away", at(0));
  }
  CHECK(wait_of(early) == 120);
  CHECK(wait_of(late) == 180);
  RecordPoller first({60, 900}, [] { return 0.0; });
  first.failed(Daemon::kSlurmdbd, "away", at(0));
  CHECK(wait_of(first) == 60);  // never more often than while it answers
}

TEST_CASE("that a daemon is away is said once, and once that it is back") {
  RecordPoller poller({60, 900});
  poller.failed(Daemon::kSlurmctld, "slurmctld could not be asked: refused", at(0));
  poller.failed(Daemon::kSlurmctld, "slurmctld could not be asked: timed out", at(120));
  CHECK(poller.problems() == std::vector<std::string>{"slurmctld could not be asked: refused"});
  CHECK(poller.take_news() ==
        std::vector<std::string>{
            "slurmctld could not be asked: refused; asked again, at most every 900 s"});
  CHECK(poller.take_news().empty());
  poller.answered(Daemon::kSlurmctld, at(300));
  poller.answered(Daemon::kSlurmctld, at(360));
  CHECK(poller.problems().empty());
  CHECK(poller.take_news() == std::vector<std::string>{"slurmctld is back after 300 s"});
}

TEST_CASE("a clock that was set back stops nobody") {
  RecordPoller poller({60, 900});
  poller.answered(Daemon::kSlurmctld, at(0));
  CHECK_FALSE(poller.due(Daemon::kSlurmctld, at(1)));
  CHECK(poller.due(Daemon::kSlurmctld, at(-500)));
}
