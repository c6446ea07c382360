#include "ridge/train/load/class_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ridge/core/files.h"

namespace ridge {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 26;

// Numbers between commas or white space; none when one of them is no number.
std::optional<std::vector<double>> ParseNumbers(const std::string& text) {
  std::vector<double> numbers;
  const char *at = text.data(), *const end = at + text.size();
  const auto parts = [](char c) { return c == ',' || std::isspace(static_cast<unsigned char>(c)); };
  while (true) {
    at = std::find_if_not(at, end, parts);
    if (at == end) return numbers;
    double number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || (rest != end && !parts(*rest))) return std::nullopt;
    numbers.push_back(number);
    at = rest;
  }
}

Status CheckWeights(const std::string& where, const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight >= 0) || !std::isfinite(weight)) {
      return InvalidArgument(
          fmt::format("{}: the weight {} is not a finite number of at least 0", where, weight));
    }
    sum += weight;
  }
  if (sum > 0) return Status();
  return InvalidArgument(where + ": no weight is above 0, so nothing counts");
}

Result<std::vector<double>> ReadWeights(const std::string& given) {
  std::optional<std::vector<double>> numbers = ParseNumbers(given);
  std::string where = "--class-weights";
  if (!numbers) {
    Result<std::string> text = ReadFile(given, kMostBytes);
    if (!text.ok()) {
      return InvalidArgument(
          fmt::format("--class-weights is '{}', which is neither auto, nor numbers such as "
                      "1,2.5,1, nor a file: {}",
                      given, text.status().message()));
    }
    where = given;
    numbers = ParseNumbers(*text);
    if (!numbers)
      return Status(ErrorCode::kInvalidData, where + ": holds more than numbers between commas");
  }
  RIDGE_RETURN_IF_ERROR(CheckWeights(where, *numbers));
  return *numbers;
}

}  // namespace

Result<LossShape> LossShapeOf(const TrainOptions& options) {
  LossShape shape;
  shape.label_smoothing = options.label_smoothing;
  shape.focal_gamma = options.focal;
  shape.dice = options.dice;
  for (const std::string& text : options.class_weight) {
    double number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    shape.class_weights.push_back(number);
  }
  if (!shape.class_weights.empty() || options.class_weights.empty()) return shape;
  shape.class_weights_come = options.class_weights == "auto";
  if (shape.class_weights_come) return shape;
  RIDGE_ASSIGN_OR_RETURN(shape.class_weights, ReadWeights(options.class_weights));
  return shape;
}

}  // namespace ridge
