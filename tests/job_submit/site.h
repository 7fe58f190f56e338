// A site's folder with sphase.conf and a table, for tests of the whole plugin.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>

#include "common/profile_key.h"
#include "tests/common/tools.h"
#include "tests/job_submit/submission.h"
#include "tests/job_submit/table_file.h"

extern "C" {
#include "job_submit/slurm_symbols.h"
}

namespace sphase::testing {

inline constexpr const char* kScript = "#!/bin/bash\n./solver\n";

/// The table knows kScript of user 1001 (1 node), and "named" of user 1001 (2 nodes).
class Site {
 public:
  explicit Site(const std::string& more = "") {
    conf(more);
    table();
    start();
  }
  void conf(const std::string& more) const {
    folder_.write("conf.new", "AdviceTable=" + table_path() + "\n" + more);
    REQUIRE(rename((folder_ / "conf.new").c_str(), (folder_ / "sphase.conf").c_str()) == 0);
  }
  void table() const {
    Advice advice = learned();
    add_phases(advice);
    advice.head.expires_s = std::int64_t{1} << 40;
    advice.head.nodes = 1;
    TableFile file(table_path());
    file.add(profile_key(1001, "", "solver", kScript).view(), advice);
    advice.head.nodes = 2;
    file.add("1001/named", advice);
    file.done();
  }
  std::string table_path() const { return folder_ / "advice.cdb"; }
  void start() const {
    setenv("SPHASE_CONF", (folder_ / "sphase.conf").c_str(), 1);
    REQUIRE(init() == SLURM_SUCCESS);
  }

 private:
  TempFolder folder_;
};

}  // namespace sphase::testing
