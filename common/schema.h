// The SQL of common/schema/*.sql, embedded at build time.
#pragma once

#include <string_view>

#include "common/sqlite_db.h"

namespace sphase {

extern const std::string_view kNodeSchema;      // node.sql, counter.sql, segment.sql, shipping.sql
extern const std::string_view kClusterSchema;   // node.sql, counter.sql, sealed.sql, cluster.sql
extern const std::string_view kCounterSchema;   // counter.sql
extern const std::string_view kSegmentSchema;   // segment.sql
extern const std::string_view kShippingSchema;  // shipping.sql
extern const std::string_view kSealedSchema;    // sealed.sql, shippers.sql
extern const std::string_view kRecordsSchema;   // records.sql, comes after kClusterSchema

/// Brings the tables that node.db and cluster.db have in common from version 1 of node.db to 2.
/// The caller has begun a transaction.
Status add_counters(Database& db);

}  // namespace sphase
