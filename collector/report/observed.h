// Runs that something was learned from, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collector/learn/observation.h"

namespace sphase {

/// A table, newest first, at most `most` lines and one that says how many there are beside them.
std::string observed_text(const std::vector<ObservedJob>& runs, std::size_t most);

/// Every run, oldest first, with its phases; null = not known.
nlohmann::ordered_json observed_json(const std::vector<ObservedJob>& runs);

/// "killed for memory", "well", …
std::string ending_of(std::uint32_t flags);

}  // namespace sphase
