// What is said about a decision: to the user, to the administrator's comment, to the job.
#pragma once

#include <string_view>

#include "job_submit/decide.h"

namespace sphase {

/// The message that sbatch, srun or salloc prints; "" = nothing worth saying. Quiet by default: it
/// speaks where something was changed, would be changed, or where the job itself asked with
/// --phase-resize=apply and nothing could be done.
void tell_user(const sphase_request& request, std::string_view profile, const Decision& decision,
               const Advice& advice, sphase_answer& answer);

/// One line of words for AdminComment, from which `sphase why` and the learner read what was asked
/// for before anybody changed it. Its form is parsed by collector/learn/audit.h.
void tell_audit(const sphase_request& request, std::string_view profile, const Decision& decision,
                const Advice& advice, sphase_answer& answer);

/// The phases as JSON (docs/plan.md); "" where there is no plan.
void tell_plan(std::string_view profile, const Decision& decision, const Advice& advice,
               sphase_answer& answer);

/// Everything, for a dry run.
void explain(const sphase_request& request, std::string_view profile, const Decision& decision,
             const Advice& advice, sphase_answer& answer);

}  // namespace sphase
