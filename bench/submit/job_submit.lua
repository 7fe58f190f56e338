-- Part of ./dev bench submit: the same lookup as job_submit/phase_resize for a named profile, as a
-- site would write it for job_submit/lua. It writes the nodes, memory and time limit that were
-- learned, AdminComment and a line for the user; it makes no plan.
local OPTION = "_SLURM_SPANK_OPTION_phase_telemetry_phase_telemetry="
local uid = "@UID@"
local advice = {}
for i = 0, @PROFILES@ - 1 do
  advice[uid .. "/p" .. i] = {
    nodes = 1, memory_mib = 320, time_min = 15, peak_mib = 250, runs = 14,
    phases = {{"stage", 1, 200}, {"solve", 4, 320}, {"post", 1, 200}},
  }
end

local function profile_of(job_desc)
  for _, entry in pairs(job_desc.spank_job_env or {}) do
    if entry:sub(1, #OPTION) == OPTION then
      return entry:match("profile=([^,]+)", #OPTION)
    end
  end
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  local profile = profile_of(job_desc)
  local found = profile and advice[string.format("%d/%s", job_desc.user_id, profile)]
  if found then
    job_desc.min_nodes = found.nodes
    job_desc.max_nodes = found.nodes
    job_desc.pn_min_memory = found.memory_mib
    job_desc.time_limit = found.time_min
    job_desc.admin_comment = string.format("profile=%s runs=%d set=nodes:%d,memory:%d,time:%d",
      profile, found.runs, found.nodes, found.memory_mib, found.time_min)
    slurm.log_user("nodes -> %d, memory -> %dM, time limit -> %d (peak %dM in %d runs)",
      found.nodes, found.memory_mib, found.time_min, found.peak_mib, found.runs)
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end
