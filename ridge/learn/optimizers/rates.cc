#include "ridge/learn/optimizers/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ridge/core/glob.h"
#include "ridge/core/split.h"
#include "ridge/graph/name_patterns.h"

namespace ridge {

Result<std::vector<RateFactor>> ParseRateFactors(const std::string& text) {
  std::vector<RateFactor> factors;
  if (text.empty()) return factors;
  for (const std::string_view part : SplitAt(text, ',')) {
    const size_t equals = std::min(part.rfind('='), part.size());
    RateFactor factor{std::string(part.substr(0, equals)), 0};
    const char* const end = part.data() + part.size();
    const auto [rest, error] =
        std::from_chars(part.data() + std::min(equals + 1, part.size()), end, factor.factor);
    const bool positive = factor.factor > 0 && std::isfinite(factor.factor);
    if (factor.pattern.empty() || error != std::errc() || rest != end || !positive) {
      return InvalidArgument(
          fmt::format("--lr-for is '{}': '{}' is not PATTERN=X with X above 0. hint: --lr-for "
                      "'body.*=0.1,head.*=10'",
                      text, part));
    }
    factors.push_back(std::move(factor));
  }
  return factors;
}

Status CheckRateFactors(const std::vector<RateFactor>& factors, const Graph& graph) {
  std::vector<std::string> names;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    if (graph.value(id).trainable) names.push_back(graph.value(id).name);
  }
  for (const RateFactor& factor : factors) {
    const auto matches = [&](const std::string& name) {
      return MatchesPattern(name, factor.pattern);
    };
    if (std::none_of(names.begin(), names.end(), matches))
      return NoNameMatches(graph.name, "--lr-for ", factor.pattern, names);
  }
  return Status();
}

double RateFactorOf(const std::vector<RateFactor>& factors, const std::string& name) {
  for (const RateFactor& factor : factors) {
    if (MatchesPattern(name, factor.pattern)) return factor.factor;
  }
  return 1;
}

}  // namespace ridge
