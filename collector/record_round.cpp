#include "collector/record_round.h"

#include "common/clock.h"

namespace sphase {

Status look_at_records(Database& cluster, RecordSource& source, const RecordOptions& options,
                       MergeOutcome& outcome) {
  auto updated = update_records(cluster, source, epoch_ns(), options);
  if (!updated) return Error{"records: " + updated.error()};
  outcome.records = updated->jobs;
  outcome.warnings.insert(outcome.warnings.end(), updated->warnings.begin(),
                          updated->warnings.end());
  return Done{};
}

}  // namespace sphase
