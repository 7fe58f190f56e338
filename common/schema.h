// The SQL of common/schema/*.sql, embedded at build time.
#pragma once

#include <string_view>

namespace sphase {

extern const std::string_view kNodeSchema;     // node.sql
extern const std::string_view kClusterSchema;  // node.sql, then cluster.sql

}  // namespace sphase
