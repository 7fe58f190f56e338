// Slurm's structures as rows of ours. The mapping of fields is what these functions say; units:
// Slurm's minutes and MiB become s and B.
#pragma once

#include <slurm/slurm.h>
#include <slurm/slurmdb.h>

#include <map>
#include <string>

#include "collector/records/record_source.h"

namespace sphase {

/// A job of slurmctld's; `cluster`: where it does not say. `now_s`: how long it has been suspended.
JobRow row_of(slurm_job_info_t& job, const std::string& cluster, std::int64_t now_s);

/// True if it gave all its nodes to another job: `scontrol update JobId=… NumNodes=0`.
bool gave_away(const slurm_job_info_t& job);

using QosNames = std::map<std::uint32_t, std::string>;  // by id

/// An interval that slurmdbd keeps.
JobRow row_of(const slurmdb_job_rec_t& job, const QosNames& qos);

using Nodes = std::map<std::string, const node_info_t*>;

PartitionRow row_of(const partition_info_t& part, const std::string& cluster, const Nodes& nodes);

/// "" for NULL.
std::string plain(const char* value);

}  // namespace sphase
