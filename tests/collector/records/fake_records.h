// Both daemons in memory, and what the tests of records share.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "collector/records/records.h"
#include "tests/collector/fixture.h"

namespace sphase::testing {

/// Both daemons in memory; counts how often each is asked.
struct FakeRecords : RecordSource {
  Result<std::vector<JobRow>> slurmctld{std::vector<JobRow>()};
  Result<std::vector<JobRow>> slurmdbd{std::vector<JobRow>()};
  Result<std::vector<PartitionRow>> limits{std::vector<PartitionRow>()};
  int asked_slurmctld = 0, asked_slurmdbd = 0, asked_partitions = 0;
  RecordQuery last;

  Result<std::vector<JobRow>> from_slurmctld(const RecordQuery& query) override {
    ++asked_slurmctld;
    last = query;
    return slurmctld;
  }
  Result<std::vector<JobRow>> from_slurmdbd(const RecordQuery& query) override {
    ++asked_slurmdbd;
    last = query;
    return slurmdbd;
  }
  Result<std::vector<PartitionRow>> partitions() override {
    ++asked_partitions;
    return limits;
  }
};

inline JobRow row(std::int64_t job_id, const std::string& state, double submit_s, double begin_s,
                  std::optional<double> end_s) {
  JobRow row;
  row.facts.cluster = "c1";
  row.facts.job_id = job_id;
  row.facts.uid = 1000;
  row.facts.state = state;
  row.facts.submit_s = kStartS + static_cast<std::int64_t>(submit_s);
  row.facts.start_s = kStartS + static_cast<std::int64_t>(begin_s);
  if (end_s) row.facts.end_s = kStartS + static_cast<std::int64_t>(*end_s);
  row.nodes = "n1";
  row.each_node = {{"n1", {}, {}}};
  return row;
}

inline RecordOutcome update(ClusterFixture& cluster, FakeRecords& records, double now_s = 100,
                            const RecordOptions& options = {}) {
  auto updated = update_records(cluster.db(), records, at(now_s), options);
  REQUIRE_MESSAGE(updated, (updated ? "" : updated.error()));
  return *updated;
}

inline std::int64_t count(Database& db, const std::string& sql) {
  auto query = db.prepare("SELECT count(*) FROM " + sql);
  REQUIRE_MESSAGE(query, (query ? "" : query.error()));
  REQUIRE(query->step());
  return query->integer(0);
}

}  // namespace sphase::testing
