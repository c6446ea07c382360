#include "tests/text/options_command.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "ridge/train/options/options.h"

namespace ridge {

std::string CheckOptionsText(const std::string& text) {
  TrainOptions valid;
  valid.model = "mlp";
  valid.data = "synthetic";
  nlohmann::json json = nlohmann::json::parse(OptionsToJson(valid));
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    nlohmann::json parsed = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
    if (!json.contains(key)) return "options: no option '" + key + "'\n";
    if (parsed.is_discarded()) return "options: '" + value + "' is not JSON\n";
    json[key] = std::move(parsed);
  }
  const Result<TrainOptions> options = OptionsFromJson(json.dump(), "options.json");
  if (!options.ok()) return options.status().message() + "\n";
  const Status status = CheckOptions(*options);
  return status.ok() ? "ok\n" : status.message() + "\n";
}

}  // namespace ridge
