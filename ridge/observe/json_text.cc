#include "ridge/observe/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ridge {

std::string JsonText(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string JsonNumber(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

}  // namespace ridge
