// ONNX converters: Fourier transforms, windows, mel weights.
//
// A transform is one product with a table: a complex number is two neighbours of the last axis, so
// [.., N, c] @ [N * c, K * d] over flattened pairs gives [.., K, d].  That brings the gradient and
// a fast kernel; lengths of audio frames (256 to 2048) keep the tables small.
#include "ridge/onnx/import/converters/signal.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/converter.h"

namespace ridge {
namespace {

constexpr int64_t kLongestWindow = int64_t{1} << 22;

// a0 - a1 cos(2 pi k / N) + a2 cos(4 pi k / N), where N is the size, or size - 1 when symmetric.
Result<Value> ConvertCosineWindow(OnnxNode& n, double a0, double a1, double a2) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  RIDGE_ASSIGN_OR_RETURN(const int64_t size, n.ConstantInt(0, "size"));
  RIDGE_ASSIGN_OR_RETURN(const DType dtype, SignalDType(n));
  if (size < 0 || size > kLongestWindow) {
    return n.Error(fmt::format("size is {}; it must be in [0, {}]", size, kLongestWindow));
  }
  const int64_t period = n.integer("periodic", 1) != 0 ? size : size - 1;
  Tensor window({dtype, {size}});
  for (int64_t k = 0; k < size; ++k) {
    // A symmetric window of one element has no period: its only element is the first.
    const double turn = period > 0 ? static_cast<double>(k) / static_cast<double>(period) : 0;
    const double angle = 2 * std::numbers::pi * turn;
    const double value = a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle);
    StoreFromDouble(dtype, window.mutable_data(), k, value);
  }
  return n.b().Constant(std::move(window), "window");
}

Result<Value> ConvertBlackman(OnnxNode& n) { return ConvertCosineWindow(n, 0.42, 0.5, 0.08); }
Result<Value> ConvertHann(OnnxNode& n) { return ConvertCosineWindow(n, 0.5, 0.5, 0); }
Result<Value> ConvertHamming(OnnxNode& n) {
  return ConvertCosineWindow(n, 25.0 / 46.0, 21.0 / 46.0, 0);
}

constexpr OnnxConverter kConverters[] = {
    {"", "BlackmanWindow", ConvertBlackman},         {"", "DFT", ConvertDft},
    {"", "HammingWindow", ConvertHamming},           {"", "HannWindow", ConvertHann},
    {"", "MelWeightMatrix", ConvertMelWeightMatrix}, {"", "STFT", ConvertStft},
};

}  // namespace

std::span<const OnnxConverter> OnnxSignalConverters() { return kConverters; }

Result<DType> SignalDType(OnnxNode& n) {
  const int64_t type = n.integer("output_datatype", 1);
  const std::optional<DType> dtype =
      type >= 0 && type < 128 ? DTypeFromOnnx(static_cast<int>(type)) : std::nullopt;
  if (dtype) return *dtype;
  return n.Error(fmt::format("output_datatype is {}; it must be a number type", type));
}

}  // namespace ridge
