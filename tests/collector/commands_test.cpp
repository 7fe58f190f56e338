// Sources: collector/main.cpp and the commands, run as a person would. Slurm is not asked: that is
// what tests/lab is for.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>

#include <algorithm>

#include "collector/learn/advice_table.h"
#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

struct Said {
  int code = 0;
  std::string out, err;
};

/// A folder with two nodes' files, a configuration and a place for the database.
struct CommandFixture {
  TempFolder folder;
  std::string nodes = folder / "nodes", db = folder / "cluster.db", conf, table;

  CommandFixture() : table(folder / "advice.cdb") {
    conf = folder.write("sphase.conf", "AdviceTable=" + table + "\nMinRuns=3\n");
    for (const std::string name : {"n1", "n2"}) {
      auto node = make_node_db(nodes + "/" + name + "/node.db", name);
      for (int job = 1; job <= 3; ++job) {
        const auto run = add_run(node, {.job_id = job, .node = name, .step_nodes = 2});
        run_sql(node, "UPDATE run SET profile = 'mine'");
        add_samples(node, run, 0, 10, 2);
      }
    }
  }

  pid_t start(std::vector<std::string> words) const {
    return start_child([&] {
      words.insert(words.begin(), "sphase-collector");
      std::vector<char*> arguments;
      for (auto& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      redirect("out", STDOUT_FILENO);
      redirect("err", STDERR_FILENO);
      execv(SPHASE_COLLECTOR, arguments.data());
      return 127;
    });
  }
  Said run(const std::vector<std::string>& words) const {
    Said said;
    said.code = wait_for(start(words));
    said.out = text_of(folder / "out");
    said.err = text_of(folder / "err");
    return said;
  }

 private:
  void redirect(std::string_view name, int to) const {
    const int file = open((folder / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, to);
  }
};

bool one_line(const std::string& text) {
  return text.size() > 1 && text.find('\n') == text.size() - 1;
}

}  // namespace

TEST_CASE("every command explains itself with an example") {
  const CommandFixture fixture;
  for (const char* command : {"merge", "learn", "watch"}) {
    const Said said = fixture.run({command, "--help"});
    INFO(command);
    CHECK(said.code == 0);
    CHECK(said.out.find("Example:\n  sphase-collector " + std::string(command)) !=
          std::string::npos);
  }
}

TEST_CASE("wrong usage is one line and exit code 2") {
  const CommandFixture fixture;
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"learn", "--nonsense"},
           {"watch"},
           {"watch", fixture.nodes, "--interval", "5d"},
           {"learn", "--conf", fixture.folder / "none.conf"},
           {"learn", "--conf", fixture.folder.write("bad.conf", "Nonsense=1\n")},
           {"lern"}}) {
    const Said said = fixture.run(words);
    INFO(words.front() << ": " << said.err);
    CHECK(said.code == 2);
    CHECK(one_line(said.err));
    CHECK(said.out.empty());
  }
}

TEST_CASE("learning from a database that is not there is an error and makes none") {
  const CommandFixture fixture;
  const Said said = fixture.run({"learn", "--db", fixture.db, "--conf", fixture.conf});
  CHECK(said.code == 1);
  CHECK(one_line(said.err));
  CHECK_FALSE(std::filesystem::exists(fixture.db));
}

TEST_CASE("merge, then learn: the table has the advice") {
  const CommandFixture fixture;
  REQUIRE(fixture.run({"merge", fixture.nodes, "--db", fixture.db, "--no-records"}).code == 0);
  const Said said = fixture.run({"learn", "--db", fixture.db, "--conf", fixture.conf});
  INFO(said.err);
  CHECK(said.code == 0);
  CHECK(said.out.find("3 jobs with news, 3 starts observed") != std::string::npos);
  const auto table = read_advice_table(fixture.table);
  REQUIRE(table);
  REQUIRE(table->size() == 1);
  CHECK(table->front().first == "1000/mine");
  const Said again = fixture.run({"learn", "--db", fixture.db, "--conf", fixture.conf, "--json"});
  CHECK(again.code == 0);
  CHECK(again.out.find("\"entries\": null") != std::string::npos);
  const Said all =
      fixture.run({"learn", "--db", fixture.db, "--conf", fixture.conf, "--json", "--all"});
  CHECK(all.out.find("\"entries\": 1") != std::string::npos);
}

TEST_CASE("a table can be written elsewhere, and where it cannot, that is told") {
  const CommandFixture fixture;
  REQUIRE(fixture.run({"merge", fixture.nodes, "--db", fixture.db, "--no-records"}).code == 0);
  const Said failed = fixture.run({"learn", "--db", fixture.db, "--conf", fixture.conf, "--table",
                                   fixture.folder / "none/advice.cdb"});
  CHECK(failed.code == 1);
  CHECK(one_line(failed.err));
  const std::string other = fixture.folder / "other.cdb";
  CHECK(fixture.run({"learn", "--db", fixture.db, "--conf", fixture.conf, "--table", other}).code ==
        0);
  CHECK(std::filesystem::exists(other));
  CHECK_FALSE(std::filesystem::exists(fixture.table));
}

TEST_CASE("watch --once merges and learns, then ends") {
  const CommandFixture fixture;
  const Said said = fixture.run({"watch", fixture.nodes, "--db", fixture.db, "--conf", fixture.conf,
                                 "--once", "--no-records"});
  INFO(said.err);
  CHECK(said.code == 0);
  CHECK(said.out.find("2 files, 6 runs") == 0);
  CHECK(read_advice_table(fixture.table)->size() == 1);
}

TEST_CASE("watch works until SIGTERM, says only what changes, and is alone on its database") {
  const CommandFixture fixture;
  const std::vector<std::string> words = {"watch",      fixture.nodes, "--db",
                                          fixture.db,   "--conf",      fixture.conf,
                                          "--interval", "1s",          "--no-records"};
  const pid_t watching = fixture.start(words);
  REQUIRE(poll_until([&] { return std::filesystem::exists(fixture.table); }, 20'000));
  // A folder of its own, so that what it says does not go into the same files.
  const CommandFixture other;
  const Said second = other.run(words);
  CHECK(second.code == 1);
  CHECK(one_line(second.err));
  CHECK(second.err.find("process " + std::to_string(watching)) != std::string::npos);
  fixture.folder.write("nodes/n3/node.db", "no database");
  const auto said = [&](const std::string& what) {
    return text_of(fixture.folder / "err").find(what) != std::string::npos;
  };
  CHECK(poll_until([&] { return said("n3/node.db is not an SQLite database\n"); }, 20'000));
  std::filesystem::remove_all(fixture.nodes + "/n3");
  CHECK(poll_until([&] { return said("no longer: "); }, 20'000));
  kill(watching, SIGTERM);
  CHECK(wait_for(watching) == 0);
  const std::string log = text_of(fixture.folder / "err");
  INFO(log);
  CHECK(std::count(log.begin(), log.end(), '\n') == 4);
}

TEST_CASE("a wrong place for the web page is one line, and 2") {
  const CommandFixture fixture;
  for (const char* place : {"x", "127.0.0.1", "host:1", "70000"}) {
    const Said said = fixture.run(
        {"serve", "--db", fixture.db, "--conf", fixture.conf, "--no-records", "--http", place});
    CHECK(said.code == 2);
    CHECK(one_line(said.err));
    CHECK(said.err.find("127.0.0.1:6826") != std::string::npos);
  }
}
