// The programs as a user runs them: exit codes and one-line errors. Sources: cli/main.cpp,
// cli/report.cpp, cli/jobs.cpp, collector/main.cpp, collector/merge_command.cpp.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/collector/fixture.h"

using namespace sphase;
using namespace sphase::testing;

namespace {

struct Output {
  int code;
  std::string out, err;
};

/// Runs a shell command line; the programs are $S and $C.
Output run(const TempFolder& folder, const std::string& line) {
  const std::string out = folder / "stdout", err = folder / "stderr";
  const std::string command = "S='" SPHASE_COMMAND "' C='" SPHASE_COLLECTOR "'; cd '" +
                              folder.path() + "' && { " + line + "; } >'" + out + "' 2>'" + err +
                              "' </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 255, text_of(out), text_of(err)};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int lines_in(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

/// A folder with one good node.db, below `good`.
void make_good(const TempFolder& folder) {
  auto node = make_node_db(folder / "good/n1/node.db", "n1");
  const auto job = add_run(node, {});
  add_samples(node, job, 0, 10, 1);
  add_phase(node, job, {.path = "solve", .begin_s = 1, .end_s = 3, .cpu_s = 2});
}

}  // namespace

TEST_CASE("merge, report and jobs work together") {
  const TempFolder folder;
  make_good(folder);
  const auto merged = run(folder, "$C merge good --db c.db --no-records");
  CHECK(merged.code == 0);
  CHECK(merged.err.empty());
  CHECK(has(merged.out, "1 files, 1 runs"));
  const auto report = run(folder, "$S report 123 --db c.db");
  CHECK(report.code == 0);
  CHECK(has(report.out, "solve"));
  CHECK(run(folder, "SPHASE_DB=c.db $S report 123 --csv").out.starts_with("cluster,job_id,"));
  CHECK(nlohmann::json::parse(run(folder, "$S report 123.0 --db c.db --json").out)
            .contains("starts"));
  CHECK(has(run(folder, "$S jobs --db c.db").out, "123"));
  CHECK(nlohmann::json::parse(run(folder, "$S jobs --db c.db --json").out)["jobs"].size() == 1);
  CHECK(run(folder, "$S jobs --db c.db --user 1").out.find("no job is known") == 0);
}

TEST_CASE("a good file is merged beside bad ones, each of which has its line") {
  const TempFolder folder;
  make_good(folder);
  folder.write("bad/empty/node.db", "");
  folder.write("bad/text/node.db", "this is no database at all");
  {
    auto newer = make_node_db(folder / "bad/newer/node.db", "n9");
    run_sql(newer, "PRAGMA user_version = 9");
  }
  const auto merged = run(folder, "$C merge bad good nowhere --db c.db --no-records --json");
  CHECK(merged.code == 1);
  CHECK(lines_in(merged.err) == 4);
  CHECK(has(merged.err, "is empty"));
  CHECK(has(merged.err, "is not an SQLite database"));
  CHECK(has(merged.err, "newer than this program"));
  CHECK(has(merged.err, "nowhere"));
  const auto told = nlohmann::json::parse(merged.out);
  CHECK(told["runs"] == 1);
  CHECK(told["problems"].size() == 4);
  CHECK(run(folder, "$S report 123 --db c.db").code == 0);
}

TEST_CASE("Slurm that does not answer is a warning") {
  const TempFolder folder;
  make_good(folder);
  folder.write("slurm.conf",
               "ClusterName=c1\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\n"
               "AuthType=auth/none\nMessageTimeout=1\nNodeName=n1\n");
  const auto merged = run(folder, "SLURM_CONF=$PWD/slurm.conf timeout 50 $C merge good --db c.db");
  CHECK(merged.code == 0);
  CHECK(has(merged.err, "slurmctld could not be asked: "));
  CHECK(lines_in(merged.err) == 1);
}

TEST_CASE("a folder in which nothing was recorded yet is a warning") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "new");
  const auto merged = run(folder, "$C merge new --db c.db --no-records");
  CHECK(merged.code == 0);
  CHECK(has(merged.err, "nothing to merge in new"));
}

TEST_CASE("wrong usage is one line and 2, a failure is one line and 1") {
  const TempFolder folder;
  make_good(folder);
  run(folder, "$C merge good --db c.db --no-records");
  for (const char* wrong : {"$S", "$S nonsense", "$S report", "$S report 12x --db c.db",
                            "$S report 123 --what", "$S report 123 --json --csv --db c.db", "$C",
                            "$C merge", "$C merge good --what", "$S web --url c1:6826",
                            "$S web --port 0", "SPHASE_CONF=none $S web", "$S web --conf none"}) {
    const auto result = run(folder, wrong);
    INFO(wrong);
    INFO(result.err);
    CHECK(result.code == 2);
    CHECK(lines_in(result.err) == 1);
    CHECK(result.out.empty());
  }
  for (const char* failing :
       {"$S report 77 --db c.db", "$S report 123 --db none.db", "$S report 123.9 --db c.db",
        "$S jobs --db none.db", "$S report 123 --db c.db >/dev/full",
        "$C merge good --db /nonexistent/c.db --no-records",
        "$C merge none --db c.db --no-records"}) {
    const auto result = run(folder, failing);
    INFO(failing);
    INFO(result.err);
    CHECK(result.code == 1);
    CHECK(lines_in(result.err) == 1);
  }
  CHECK(has(run(folder, "$S report 77 --db c.db").err, "known are 123"));
}

TEST_CASE("every command explains itself with an example") {
  const TempFolder folder;
  for (const char* command : {"$S --help", "$S report --help", "$S jobs --help", "$C merge --help",
                              "$S begin --help", "$S run --help", "$S web --help"}) {
    const auto result = run(folder, command);
    INFO(command);
    CHECK(result.code == 0);
    CHECK(has(result.out + result.err, "sphase"));
  }
  CHECK(has(run(folder, "$S report --help").out, "Example"));
  CHECK(has(run(folder, "$C merge --help").out, "Example"));
  CHECK(has(run(folder, "$S --version").out, SPHASE_VERSION));
}

TEST_CASE("the command needs no library of Slurm, so that it starts fast") {
  const TempFolder folder;
  const auto libraries = run(folder, "ldd $S");
  CHECK(has(libraries.out, "libsqlite3"));
  CHECK_FALSE(has(libraries.out, "libslurm"));
}

TEST_CASE("a page is written beside its place and renamed there, with the mode of the umask") {
  const TempFolder folder;
  make_good(folder);
  REQUIRE(run(folder, "$C merge good --db c.db --no-records").code == 0);
  const auto wrote =
      run(folder, "umask 027; $S report 123 --db c.db --html job.html; stat -c %a job.html");
  CHECK(wrote.code == 0);
  CHECK(wrote.out == "wrote job.html\n640\n");
  CHECK(text_of(folder / "job.html").starts_with("<!doctype html>"));
  CHECK(lines_in(run(folder, "ls -A | grep job").out) == 1);
  const auto piped = run(folder, "$S report 123 --db c.db --html -");
  CHECK(piped.code == 0);
  CHECK(piped.out == text_of(folder / "job.html"));
}

TEST_CASE("a page that cannot be written is one line, and leaves what was there") {
  const TempFolder folder;
  make_good(folder);
  REQUIRE(run(folder, "$C merge good --db c.db --no-records").code == 0);
  const auto failed = run(folder, "$S report 123 --db c.db --html none/job.html");
  CHECK(failed.code == 1);
  CHECK(failed.err == "sphase: cannot write none/job.html: No such file or directory\n");
  const auto both = run(folder, "$S report 123 --db c.db --html job.html --json");
  CHECK(both.code == 2);
  CHECK(lines_in(both.err) == 1);
}
