#include "tests/golden/golden_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "ridge/core/files.h"
#include "tests/golden/counter.h"

namespace ridge {
namespace {

using nlohmann::json;

std::map<std::string, GoldenTensor> ParseTensors(const json& object) {
  std::map<std::string, GoldenTensor> tensors;
  for (const auto& [name, tensor] : object.items()) {
    GoldenTensor& t = tensors[name];
    t.dims = tensor.at("dims").get<Dims>();
    t.norm = tensor.at("norm").get<double>();
    t.sum = tensor.at("sum").get<double>();
    t.largest = tensor.at("max").get<double>();
    t.values = tensor.at("values").get<std::vector<double>>();
  }
  return tensors;
}

GoldenFile Parse(const json& root) {
  GoldenFile file;
  file.model = root.at("model").get<std::string>();
  file.batch = root.at("batch").get<int64_t>();
  file.lr = root.at("lr").get<double>();
  file.momentum = root.at("momentum").get<double>();
  file.losses = root.at("losses").get<std::vector<double>>();
  file.gradients = ParseTensors(root.at("gradients"));
  file.statistics = ParseTensors(root.at("statistics"));
  return file;
}

std::string IndexText(const Dims& dims, int64_t position) {
  Dims index(dims.size());
  for (size_t axis = dims.size(); axis-- > 0;) {
    index[axis] = position % dims[axis];
    position /= dims[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

// Of a scale that may be zero: then both must be.
double Relative(double difference, double scale) {
  if (difference == 0) return 0;
  return std::abs(difference) / scale;
}

void CompareTotals(const GoldenTensor& golden, const TensorType& type, const void* data,
                   GoldenDifference& difference) {
  double squares = 0, sum = 0;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double x = LoadAsDouble(type.dtype, data, i);
    squares += x * x;
    sum += x;
  }
  const double terms = std::sqrt(static_cast<double>(type.elements()));
  const double scale = std::max(golden.norm, golden.largest);  // the norm, but of rounding alone
  difference.norm = Relative(std::sqrt(squares) - golden.norm, scale);
  difference.sum = Relative(sum - golden.sum, terms * scale);
}

void CompareValues(const GoldenTensor& golden, const TensorType& type, const void* data,
                   GoldenDifference& difference) {
  const auto positions =
      CounterPositions(type.elements(), static_cast<int64_t>(golden.values.size()));
  for (size_t k = 0; k < positions.size(); ++k) {
    const double ours = LoadAsDouble(type.dtype, data, positions[k]);
    const double value = Relative(ours - golden.values[k], golden.largest);
    if (value <= difference.value) continue;  // false for a NaN
    difference.value = std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
    difference.position = positions[k];
    difference.ours = ours;
    difference.golden = golden.values[k];
  }
}

}  // namespace

Result<GoldenFile> ReadGoldenFile(const std::string& name) {
  const char* root = std::getenv("RIDGE_SOURCE_DIR");
  const std::string path =
      fmt::format("{}/tests/golden/{}.json", root == nullptr ? "." : root, name);
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    return Parse(json::parse(text));
  } catch (const json::exception& e) {
    return Status(ErrorCode::kInvalidData, fmt::format("{}: {}", path, e.what()));
  }
}

double GoldenDifference::Largest() const {
  const double largest = std::max(value, std::max(norm, sum));
  const bool nan = std::isnan(value) || std::isnan(norm) || std::isnan(sum);
  return nan ? std::numeric_limits<double>::infinity() : largest;
}

std::string GoldenDifference::ToString() const {
  return fmt::format(
      "largest difference {:.1e} of the largest element, at {}: {:.9g} against PyTorch's {:.9g}; "
      "norm differs by {:.1e}, sum by {:.1e}",
      value, IndexText(dims, position), ours, golden, norm, sum);
}

GoldenDifference CompareWithGolden(const GoldenTensor& golden, const TensorType& type,
                                   const void* data) {
  GoldenDifference difference;
  difference.dims = golden.dims;
  CompareTotals(golden, type, data, difference);
  CompareValues(golden, type, data, difference);
  return difference;
}

}  // namespace ridge
