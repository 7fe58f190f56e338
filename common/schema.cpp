#include "common/schema.h"

#include <string>

namespace sphase {

Status add_counters(Database& db) {
  auto done = db.exec(
      "ALTER TABLE run ADD COLUMN counter_source TEXT;"
      "ALTER TABLE run ADD COLUMN counter_reason TEXT;"
      "ALTER TABLE run ADD COLUMN counter_refused INTEGER NOT NULL DEFAULT 0");
  if (done) done = db.exec(std::string(kCounterSchema));
  return done;
}

}  // namespace sphase
