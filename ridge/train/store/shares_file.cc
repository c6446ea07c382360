#include "ridge/train/store/shares_file.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

bool IsDeal(const std::vector<int64_t>& dealt, size_t ranks, int64_t slices) {
  return dealt.size() == ranks && *std::min_element(dealt.begin(), dealt.end()) >= 1 &&
         std::accumulate(dealt.begin(), dealt.end(), int64_t{0}) == slices;
}

}  // namespace

Status AddShares(const std::string& path, const SharesLine& line) {
  const Json json = {{"step", line.step},
                     {"slices", line.slices},
                     {"slices_before", line.slices_before},
                     {"compute_s", line.compute_s}};
  std::ofstream file(path, std::ios::app);
  file << json.dump() << "\n" << std::flush;
  if (file) return Status();
  return Status(ErrorCode::kUnavailable, path + ": cannot be written");
}

std::optional<std::vector<int64_t>> NewestShares(const std::string& path, size_t ranks,
                                                 int64_t slices) {
  std::optional<std::vector<int64_t>> newest;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    try {
      std::vector<int64_t> dealt = Json::parse(line).at("slices").get<std::vector<int64_t>>();
      if (IsDeal(dealt, ranks, slices)) newest = std::move(dealt);
    } catch (const std::exception&) {  // of JSON, or of a shape
      continue;
    }
  }
  return newest;
}

}  // namespace ridge
