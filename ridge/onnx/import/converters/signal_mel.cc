// ONNX converter: MelWeightMatrix, computed at import.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/onnx/import/converters/signal.h"

namespace ridge {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 22;

struct MelCall {
  int64_t bins = 0;  // of the mel scale
  int64_t dft_length = 0;
  int64_t sample_rate = 0;
  double low_hertz = 0, high_hertz = 0;
  int64_t spectrum() const { return dft_length / 2 + 1; }
};

Result<MelCall> ReadCall(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(5));
  MelCall call;
  RIDGE_ASSIGN_OR_RETURN(call.bins, n.ConstantInt(0, "num_mel_bins"));
  RIDGE_ASSIGN_OR_RETURN(call.dft_length, n.ConstantInt(1, "dft_length"));
  RIDGE_ASSIGN_OR_RETURN(call.sample_rate, n.ConstantInt(2, "sample_rate"));
  RIDGE_ASSIGN_OR_RETURN(call.low_hertz, n.ConstantNumber(3, "lower_edge_hertz"));
  RIDGE_ASSIGN_OR_RETURN(call.high_hertz, n.ConstantNumber(4, "upper_edge_hertz"));
  const bool sizes = call.bins >= 1 && call.bins <= kMostElements && call.dft_length >= 1 &&
                     call.dft_length <= kMostElements && call.sample_rate >= 1;
  if (!sizes || call.bins * call.spectrum() > kMostElements) {
    return n.Error(
        fmt::format("num_mel_bins is {}, dft_length {}, sample_rate {}; they must be at "
                    "least 1, and the matrix at most 2^22 elements",
                    call.bins, call.dft_length, call.sample_rate));
  }
  if (call.low_hertz >= 0 && call.low_hertz <= call.high_hertz && std::isfinite(call.high_hertz)) {
    return call;
  }
  return n.Error(
      fmt::format("the edges are {} and {} Hz; they must be finite, at least 0 and in "
                  "order",
                  call.low_hertz, call.high_hertz));
}

double MelOfHertz(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double HertzOfMel(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// Where the bins + 2 edges of the triangles lie in the spectrum; ONNX divides by bins + 2.
std::vector<int64_t> Edges(const MelCall& call) {
  const double low = MelOfHertz(call.low_hertz), high = MelOfHertz(call.high_hertz);
  const double step = (high - low) / static_cast<double>(call.bins + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < call.bins + 2; ++i) {
    const double hertz = HertzOfMel(low + static_cast<double>(i) * step);
    const double place = std::floor(static_cast<double>(call.dft_length + 1) * hertz /
                                    static_cast<double>(call.sample_rate));
    // Edges beyond the spectrum reach nothing.
    const double last = static_cast<double>(call.spectrum());
    edges.push_back(static_cast<int64_t>(std::min(place, last)));
  }
  return edges;
}

// The triangle from `left` over `center` to `right`, at j.
double Triangle(int64_t left, int64_t center, int64_t right, int64_t j) {
  if (j == center) return 1;
  const bool rises = j < center;
  const int64_t width = rises ? center - left : right - center;
  const int64_t height = rises ? j - left : right - j;
  return static_cast<double>(height) / static_cast<double>(width);
}

}  // namespace

Result<Value> ConvertMelWeightMatrix(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const MelCall call, ReadCall(n));
  RIDGE_ASSIGN_OR_RETURN(const DType dtype, SignalDType(n));
  const std::vector<int64_t> edges = Edges(call);
  Tensor weights({dtype, {call.spectrum(), call.bins}});
  for (int64_t i = 0; i < call.bins; ++i) {
    const auto e = static_cast<size_t>(i);
    const int64_t left = edges[e], center = edges[e + 1], right = edges[e + 2];
    const int64_t end = std::min(std::max(right, center + 1), call.spectrum());
    for (int64_t j = left; j < end; ++j) {
      StoreFromDouble(dtype, weights.mutable_data(), j * call.bins + i,
                      Triangle(left, center, right, j));
    }
  }
  return n.b().Constant(std::move(weights), "mel_weights");
}

}  // namespace ridge
