#include "ridge/use/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ridge/core/random.h"

namespace ridge {
namespace {

// [0, 1) with 53 random bits.
double UniformAt(uint64_t seed, int64_t position) {
  const RandomKey key = {seed, StableHash("generate"), 0};
  const auto block = DrawBlock(key, /*sample=*/0, static_cast<uint64_t>(position));
  const uint64_t bits = (static_cast<uint64_t>(block[0]) << 32 | block[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

// Tokens by falling logits, NaN last.
std::vector<int64_t> Ranked(std::span<const float> logits) {
  std::vector<int64_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), int64_t{0});
  const auto at = [&](int64_t token) {
    const float logit = logits[static_cast<size_t>(token)];
    return std::isnan(logit) ? -INFINITY : logit;
  };
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](int64_t a, int64_t b) { return at(a) > at(b); });
  return tokens;
}

// exp(logit / temperature), the largest as 1.
std::vector<double> Weights(std::span<const float> logits, const std::vector<int64_t>& tokens,
                            double temperature) {
  const double largest = logits[static_cast<size_t>(tokens[0])];
  std::vector<double> weights;
  for (int64_t token : tokens) {
    const double weight = std::exp((logits[static_cast<size_t>(token)] - largest) / temperature);
    weights.push_back(std::isnan(weight) ? 0 : weight);
  }
  return weights;
}

// How many of the first weights sum to at least `share` of all.
size_t Nucleus(const std::vector<double>& weights, double share) {
  const double wanted = share * std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum >= wanted) return i + 1;
  }
  return weights.size();
}

}  // namespace

Status CheckSampling(const SamplingOptions& options) {
  const auto wrong = [](const char* name, double value, const char* should) {
    return InvalidArgument(fmt::format("{} is {}; it must be {}", name, value, should));
  };
  if (!(options.temperature >= 0) || std::isinf(options.temperature))
    return wrong("--temperature", options.temperature, "at least 0");
  if (options.top_k < 0)
    return wrong("--top-k", static_cast<double>(options.top_k), "at least 0 (0: all tokens)");
  if (!(options.top_p > 0 && options.top_p <= 1))
    return wrong("--top-p", options.top_p, "above 0 and at most 1");
  return Status();
}

int64_t SampleToken(std::span<const float> logits, const SamplingOptions& options,
                    int64_t position) {
  std::vector<int64_t> tokens = Ranked(logits);
  if (options.temperature == 0) return tokens[0];
  if (options.top_k > 0) tokens.resize(std::min(tokens.size(), static_cast<size_t>(options.top_k)));
  std::vector<double> weights = Weights(logits, tokens, options.temperature);
  weights.resize(Nucleus(weights, options.top_p));
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double left = UniformAt(options.seed, position) * all;
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return tokens[i];
  }
  return tokens[0];
}

}  // namespace ridge
