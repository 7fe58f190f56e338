// The plan as a job gets it in SPHASE_PLAN. Form: docs/plan.md. The job_submit plugin prints the
// same with a printer of its own, without a heap.
#pragma once

#include <string>

#include "common/advice.h"

namespace sphase {

/// One line without its newline. Characters beyond ASCII in names become '?'.
std::string plan_json(const std::string& profile, const Advice& advice);

}  // namespace sphase
