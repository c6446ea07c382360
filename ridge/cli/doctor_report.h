// What `ridge doctor` and `ridge doctor cluster` share.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ridge/doctor/problems.h"

namespace ridge::cli {

nlohmann::ordered_json ProblemsJson(const std::vector<Problem>& problems);
std::string ProblemsText(const std::vector<Problem>& problems);

// This machine, or the recorded one in `file`.  Fails with kInvalidData.
Result<Probe> ProbeOf(const std::optional<std::string>& file);

}  // namespace ridge::cli
