// The Content-Security-Policy of pages whose scripts and style are embedded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sphase {

/// Allows these scripts and this style, each by its SHA-256 as hexadecimal digits, and nothing
/// else: nothing is loaded from anywhere. `may_ask`: scripts may ask the server the page is from.
std::string page_policy(const std::vector<std::string_view>& scripts, std::string_view style,
                        bool may_ask);

}  // namespace sphase
