// The public functions, as a program sees them and as the reader does.
#include "marker/sphase.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "marker/internal.h"
#include "tests/marker/fake_reader.h"
#include "tests/marker/in_child.h"

using sphase::testing::FakeReader;
using sphase::testing::FakeSetup;
using sphase::testing::in_child;
using sphase::testing::Marker;

extern "C" int sphase_test_from_c99(void);

namespace {

/// "+solve@0 -solve@0 =x@1 :key@1": type, text and depth of each marker.
std::string written(const std::vector<Marker>& markers) {
  std::string all;
  for (const Marker& marker : markers) {
    const std::string text = marker.text.substr(0, marker.text.find('\0'));
    all += all.empty() ? "" : " ";
    all += "?+-=:"[marker.raw.type] + text + "@" + std::to_string(marker.raw.depth);
  }
  return all;
}

/// What the reader gets when a fresh process runs `body`.
template <typename Body>
std::string recorded(Body body) {
  FakeReader reader;
  CHECK(in_child(reader, body) == 0);
  return written(reader.all_markers());
}

}  // namespace

TEST_CASE("phases nest and carry their depth") {
  CHECK(recorded([] {
          NEED(sphase_begin("solve") == 0);
          NEED(sphase_begin("iterate") == 1);
          NEED(sphase_end("iterate") == 1);
          NEED(sphase_begin("iterate") == 1);
          NEED(sphase_end(nullptr) == 1);
          NEED(sphase_end("solve") == 0);
          return 0;
        }) == "+solve@0 +iterate@1 -iterate@1 +iterate@1 -@1 -solve@0");
}

TEST_CASE("values and attributes carry what was given and where") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          sphase_begin("solve");
          sphase_value("residual", 1.5e-7);
          sphase_attr("cells", "1e6");
          sphase_attr("empty", nullptr);
          return 0;
        }) == 0);
  const auto markers = reader.markers(4);
  REQUIRE(markers.size() == 4);
  CHECK(markers[1].raw.type == SPHASE_VALUE);
  CHECK(markers[1].raw.value == 1.5e-7);
  CHECK(markers[1].text == "residual");
  CHECK(markers[1].raw.depth == 1);
  CHECK(markers[2].raw.type == SPHASE_ATTR);
  CHECK(markers[2].text == std::string("cells\0001e6", 9));
  CHECK(markers[3].text == std::string("empty\0", 6));
}

TEST_CASE("an end without a begin leaves the depth alone and is recorded for the report") {
  CHECK(recorded([] {
          NEED(sphase_end("nothing") == 0);
          NEED(sphase_end(nullptr) == 0);
          NEED(sphase_begin("solve") == 0);
          NEED(sphase_end("typo") == 1);
          NEED(sphase_end("solve") == 0);
          return 0;
        }) == "-nothing@0 -@0 +solve@0 -typo@1 -solve@0");
}

TEST_CASE("the end of an outer phase closes what was left open inside it") {
  CHECK(recorded([] {
          sphase_begin("a");
          sphase_begin("b");
          sphase_begin("c");
          NEED(sphase_end("a") == 0);
          NEED(sphase_begin("d") == 0);
          NEED(sphase_end("d") == 0);
          return 0;
        }) == "+a@0 +b@1 +c@2 -a@0 +d@0 -d@0");
}

TEST_CASE("a recursive phase is closed from the inside out") {
  CHECK(recorded([] {
          sphase_begin("f");
          sphase_begin("f");
          NEED(sphase_end("f") == 1);
          NEED(sphase_end("f") == 0);
          return 0;
        }) == "+f@0 +f@1 -f@1 -f@0");
}

TEST_CASE("a phase without a name is not recorded, and its end closes nothing else") {
  CHECK(recorded([] {
          NEED(sphase_begin("solve") == 0);
          NEED(sphase_begin(nullptr) == 1);
          NEED(sphase_begin("") == 2);
          NEED(sphase_begin("inner") == 3);
          NEED(sphase_end("inner") == 3);
          NEED(sphase_end("") == 2);
          NEED(sphase_end(nullptr) == 1);
          NEED(sphase_end("solve") == 0);
          sphase_value("", 1);
          sphase_value(nullptr, 1);
          sphase_attr(nullptr, "v");
          sphase_attr("", "v");
          return 0;
        }) == "+solve@0 +inner@1 -inner@1 -solve@0");
}

TEST_CASE("phases deeper than 32 are counted, not recorded, but for one begin that says so") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          for (int again = 0; again < 2; ++again) {
            for (int i = 0; i < 40; ++i) NEED(sphase_begin("deep") == i);
            for (int i = 39; i >= 0; --i) NEED(sphase_end("deep") == i);
          }
          NEED(sphase_end("deep") == 0);
          return 0;
        }) == 0);
  const auto markers = reader.all_markers();
  CHECK(markers.size() == 2 * 64 + 1 + 1);  // the last one is the end without a begin
  int too_deep = 0;
  for (const Marker& marker : markers) {
    if (marker.raw.depth < SPHASE_MAX_DEPTH) continue;
    ++too_deep;
    CHECK(marker.raw.type == SPHASE_BEGIN);
    CHECK(marker.raw.depth == SPHASE_MAX_DEPTH);
  }
  CHECK(too_deep == 1);
}

TEST_CASE("a thread whose phases are ended by another thread is recorded for ever") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          sphase_begin("main");
          for (int i = 0; i < 200; ++i) {
            sphase_begin("handed over");
            std::thread([] { sphase_end("handed over"); }).join();
          }
          sphase_begin("own");
          sphase_end("own");
          sphase_end("main");
          return 0;
        }) == 0);
  std::map<std::string, int> begins;
  std::map<std::string, int> ends;
  const auto markers = reader.all_markers();
  // Its depth is unknown then: the reader must not close "main" because of it.
  CHECK(markers[1].raw.depth == 1);
  CHECK(markers.back().text == "main");
  CHECK(markers.back().raw.depth == SPHASE_DEPTH_UNKNOWN);
  for (const Marker& marker : markers) {
    CHECK((marker.text == "main" || marker.raw.type == SPHASE_END || marker.raw.depth >= 1));
    ++(marker.raw.type == SPHASE_BEGIN ? begins : ends)[marker.text];
  }
  CHECK(begins["main"] == 1);
  CHECK(ends["main"] == 1);
  CHECK(begins["own"] == 1);
  CHECK(ends["own"] == 1);
  CHECK(begins["handed over"] >= 199);  // one is lost when the stack is given up
  CHECK(ends["handed over"] == 200);
}

TEST_CASE("a begin that was dropped takes its end with it") {
  FakeSetup setup;
  setup.capacity = 4;
  setup.drains = false;
  FakeReader reader(setup);
  CHECK(in_child(reader, [&] {
          NEED(sphase_begin("kept") == 0);
          sphase_value("fill", 1);
          sphase_value("fill", 2);
          sphase_value("fill", 3);
          NEED(sphase_begin("dropped") == 1);
          reader.drain_once();
          NEED(sphase_end("dropped") == 1);
          NEED(sphase_begin("again") == 1);
          NEED(sphase_end("again") == 1);
          NEED(sphase_end("kept") == 0);
          reader.drain_once();
          NEED(reader.dropped() == 1);
          NEED(written(reader.markers()) ==
               "+kept@0 =fill@1 =fill@1 =fill@1 +again@1 -again@1 -kept@0");
          return 0;
        }) == 0);
}

TEST_CASE("an end that was dropped shows in the depth of the next marker") {
  FakeSetup setup;
  setup.capacity = 2;
  setup.drains = false;
  FakeReader reader(setup);
  CHECK(in_child(reader, [&] {
          sphase_begin("a");
          sphase_begin("b");
          NEED(sphase_end("b") == 1);
          NEED(sphase_end("a") == 0);
          reader.drain_once();
          sphase_begin("c");
          reader.drain_once();
          NEED(reader.dropped() == 2);
          NEED(written(reader.markers()) == "+a@0 +b@1 +c@0");
          return 0;
        }) == 0);
}

TEST_CASE("errno is preserved by every call") {
  FakeReader reader;
  CHECK(in_child(reader, [] {
          errno = 77;
          sphase_active();
          NEED(errno == 77);
          sphase_begin("a");
          NEED(errno == 77);
          sphase_value("b", 1);
          NEED(errno == 77);
          sphase_attr("c", "d");
          NEED(errno == 77);
          sphase_end("a");
          NEED(errno == 77);
          return 0;
        }) == 0);
}

TEST_CASE(
    "names arrive as they are recorded: cut, with '_' for '/' and '?' for control characters") {
  CHECK(recorded([] {
          const std::string name = "io/read\n" + std::string(100, 'x');
          NEED(sphase_begin(name.c_str()) == 0);
          NEED(sphase_end(name.c_str()) == 0);
          return 0;
        }) == "+io_read?" + std::string(72, 'x') + "@0 -io_read?" + std::string(72, 'x') + "@0");
}

TEST_CASE("random begins and ends never give a negative depth or a record that does not fit") {
  FakeSetup setup;
  setup.capacity = 65536;
  FakeReader reader(setup);
  CHECK(in_child(reader, [] {
          const char* names[] = {"a", "b", "c", "", nullptr, "d/e", "\xff"};
          std::vector<std::thread> threads;
          std::atomic<int> wrong = 0;
          threads.reserve(4);
          for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&, t] {
              unsigned seed = static_cast<unsigned>(t);
              for (int i = 0; i < 5000; ++i) {
                const char* name = names[static_cast<unsigned>(rand_r(&seed)) % 7];
                const bool opens = rand_r(&seed) % 2 == 0;
                if ((opens ? sphase_begin(name) : sphase_end(name)) < 0) ++wrong;
              }
            });
          }
          for (auto& thread : threads) thread.join();
          return wrong == 0 ? 0 : __LINE__;
        }) == 0);
  // The reader's rule: cut the stack to `depth`; it can then never be too short.
  std::map<std::uint32_t, std::size_t> open;
  for (const Marker& marker : reader.all_markers()) {
    if (marker.raw.depth == SPHASE_DEPTH_UNKNOWN) continue;  // that thread's stack was given up
    std::size_t& depth = open[marker.raw.tid];
    REQUIRE(marker.raw.depth <= depth);
    depth = marker.raw.depth + (marker.raw.type == SPHASE_BEGIN ? 1U : 0U);
  }
}

TEST_CASE("the header is used from C99") { CHECK(sphase_test_from_c99() == 0); }
