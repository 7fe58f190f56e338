// What the writers of records share: used by records_store.cpp and its parts alone. Each function
// runs inside the caller's transaction.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/records/records.h"

namespace sphase {

/// Binds what identifies a start to parameters 1 to 4: cluster, job_id, submit_time, restart_count.
void bind_start(Statement& to, const JobFacts& job);

/// Writes the allocations of a start. Intervals that only earlier looks knew stay, unless slurmdbd
/// knows better; in the end none overlaps the next one.
Status store_allocations(Database& db, const JobFacts& job,
                         const std::vector<HeldAllocation>& allocations);

/// Brings table suspension up to date with what slurmctld shows of the last suspension, and with
/// the sum: what is missing from the sum lies before the job went on last, if it was one time.
Status note_suspension(Database& db, const JobRecord& record, const JobFacts& job);

/// Brings table wait_reason up to date.
Status note_wait(Database& db, const JobFacts& job, std::int64_t now_s);

}  // namespace sphase
