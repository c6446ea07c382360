// ONNX converters: DFT and STFT, as products with tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/onnx/import/converters/signal.h"

namespace ridge {
namespace {

constexpr int64_t kMostTableElements = int64_t{1} << 24;

// What one table maps: `count` numbers of `parts` parts (1 real, 2 complex) to `bins` numbers.
struct Transform {
  int64_t count = 0;
  int64_t parts = 1;
  int64_t length = 0;  // of the transform; the input is cut or padded with zeros to it
  int64_t bins = 0;
  bool inverse = false;
  bool real_output = false;  // inverse of a one-sided spectrum

  int64_t out_parts() const { return real_output ? 1 : 2; }
};

// How often input k of a one-sided spectrum counts: its mirror image is not stored.
double MirrorFactor(const Transform& t, int64_t k) {
  if (!t.real_output) return 1;
  if (2 * k > t.length) return 0;  // not part of a spectrum of this length
  return k == 0 || 2 * k == t.length ? 1 : 2;
}

// input k, bin m: exp(-+ 2 pi i k m / length), as [[cos, sin], [-sin, cos]] on (re, im) pairs.
void FillEntry(const Transform& t, int64_t k, int64_t m, Tensor& table) {
  const int64_t turn = (k * m) % t.length;  // exact, where k * m as a double loses digits
  const double sign = t.inverse ? 1 : -1;
  const double angle =
      sign * 2 * std::numbers::pi * static_cast<double>(turn) / static_cast<double>(t.length);
  const double factor = MirrorFactor(t, k) / (t.inverse ? static_cast<double>(t.length) : 1.0);
  const double re = factor * std::cos(angle), im = factor * std::sin(angle);
  const int64_t width = t.bins * t.out_parts();
  const double entry[2][2] = {{re, im}, {-im, re}};
  for (int64_t p = 0; p < t.parts; ++p) {
    for (int64_t q = 0; q < t.out_parts(); ++q) {
      StoreFromDouble(table.type().dtype, table.mutable_data(),
                      (k * t.parts + p) * width + m * t.out_parts() + q, entry[p][q]);
    }
  }
}

Status CheckTable(OnnxNode& n, const Transform& t) {
  const int64_t most = kMostTableElements;
  const bool sizes = t.length >= 1 && t.length <= most && t.count <= most && t.bins <= most;
  if (sizes && t.count * t.bins <= most / (t.parts * t.out_parts())) return Status();
  if (t.length < 1) {
    return n.Error(fmt::format("the length is {}; it must be at least 1", t.length));
  }
  return n.Unsupported(
      fmt::format("a transform of {} to {} numbers needs a table of more than "
                  "2^24 elements",
                  t.count, t.bins));
}

// [count * parts, bins * out_parts]; rows beyond the transform's length are zeros.
Tensor MakeTable(const Transform& t, DType dtype) {
  Tensor table({dtype, {t.count * t.parts, t.bins * t.out_parts()}});
  for (int64_t k = 0; k < std::min(t.count, t.length); ++k) {
    for (int64_t m = 0; m < t.bins; ++m) FillEntry(t, k, m, table);
  }
  return table;
}

// x [.., count, parts] -> [.., bins, out_parts]
Value Apply(GraphBuilder& b, Value x, const Transform& t) {
  if (!b.ok()) return {};
  const TensorType type = x.type();
  Dims out = type.dims;
  out[out.size() - 2] = t.bins;
  out[out.size() - 1] = t.out_parts();
  const int64_t numbers = t.count * t.parts;
  if (type.elements() == 0 || numbers == 0) return Expand(b.Scalar(type.dtype, 0), out);
  const Value flat = ReshapeExactly(x, {type.elements() / numbers, numbers});
  const Value y = MatMul(flat, b.Constant(MakeTable(t, type.dtype), "fourier"));
  return ReshapeExactly(y, out);
}

// Input 0 as a float [.., n, 1 or 2].
Status CheckSignal(OnnxNode& n, int rank) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  const TensorType type = n.type(0);
  const bool fits = IsFloat(type.dtype) && type.rank() >= rank &&
                    (type.dims.back() == 1 || type.dims.back() == 2);
  if (fits) return Status();
  return n.Error(
      fmt::format("input 0 is {}; it must be a float with at least {} dimensions, the "
                  "last of 1 (real) or 2 (complex)",
                  TypeToString(type), rank));
}

// The order of dimensions that brings `axis` before the last; its own inverse.
std::vector<int64_t> SwapBeforeLast(int64_t axis, int rank) {
  std::vector<int64_t> order;
  for (int64_t d = 0; d < rank; ++d) order.push_back(d);
  std::swap(order[static_cast<size_t>(axis)], order[static_cast<size_t>(rank) - 2]);
  return order;
}

// Since opset 20 the axis is input 2, and the default is the last before the parts.
Result<int64_t> DftAxis(OnnxNode& n, int rank) {
  int64_t axis = n.opset() < 20 ? n.integer("axis", 1) : -2;
  if (n.opset() >= 20 && n.has_input(2)) {
    RIDGE_ASSIGN_OR_RETURN(axis, n.ConstantInt(2, "axis"));
  }
  RIDGE_ASSIGN_OR_RETURN(axis, n.Axis(axis, rank));
  if (axis < rank - 1) return axis;
  return n.Error(fmt::format("axis is {}; the last dimension holds the parts of a number", axis));
}

Result<Transform> ReadDft(OnnxNode& n, int64_t axis) {
  const Dims dims = n.dims(0);
  Transform t;
  t.count = dims[static_cast<size_t>(axis)];
  t.parts = dims.back();
  t.inverse = n.integer("inverse", 0) != 0;
  const bool onesided = n.integer("onesided", 0) != 0;
  t.real_output = t.inverse && onesided;
  t.length = t.real_output ? 2 * (t.count - 1) : t.count;
  if (n.has_input(1)) {
    RIDGE_ASSIGN_OR_RETURN(t.length, n.ConstantInt(1, "dft_length"));
  }
  if (onesided && !t.inverse && t.parts == 2) {
    return n.Error("onesided is 1 and the input complex; its spectrum has no mirror image");
  }
  t.bins = onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  RIDGE_RETURN_IF_ERROR(CheckTable(n, t));
  return t;
}

}  // namespace

Result<Value> ConvertDft(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(CheckSignal(n, 2));
  const int rank = n.type(0).rank();
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, DftAxis(n, rank));
  RIDGE_ASSIGN_OR_RETURN(const Transform t, ReadDft(n, axis));
  GraphBuilder& b = n.b();
  const Value x = n[0];
  const bool moves = axis != rank - 2;
  const std::vector<int64_t> order = SwapBeforeLast(axis, rank);
  const Value y = Apply(b, moves ? Transpose(x, order) : x, t);
  return moves ? Transpose(y, order) : y;
}

namespace {

struct StftCall {
  Transform transform;
  int64_t step = 0;
  int64_t frames = 0;
};

// Inputs: signal, frame_step, window, frame_length.
Result<int64_t> FrameLength(OnnxNode& n) {
  if (n.has_input(3)) return n.ConstantInt(3, "frame_length");
  if (n.has_input(2) && n.type(2).rank() == 1) return n.dims(2)[0];
  return n.Error("has neither a window [n] nor a frame_length");
}

Result<StftCall> ReadStft(OnnxNode& n) {
  const Dims dims = n.dims(0);
  StftCall call;
  Transform& t = call.transform;
  RIDGE_ASSIGN_OR_RETURN(call.step, n.ConstantInt(1, "frame_step"));
  RIDGE_ASSIGN_OR_RETURN(t.length, FrameLength(n));
  if (call.step < 1 || t.length < 1 || t.length > dims[1]) {
    return n.Error(
        fmt::format("frame_step is {} and frame_length {}; they must be at least 1, and "
                    "a frame at most the {} samples",
                    call.step, t.length, dims[1]));
  }
  t.count = t.length;
  t.parts = dims[2];
  // A complex signal has both sides whatever the attribute says.
  const bool onesided = n.integer("onesided", 1) != 0 && t.parts == 1;
  t.bins = onesided ? t.length / 2 + 1 : t.length;
  call.frames = (dims[1] - t.length) / call.step + 1;
  RIDGE_RETURN_IF_ERROR(CheckTable(n, t));
  if (call.frames <= kMostTableElements / t.length) return call;
  return n.Unsupported(
      fmt::format("{} frames of {} samples; at most 2^24 together", call.frames, t.length));
}

// signal [B, n, parts] -> [B, frames, length, parts]
Value TakeFrames(GraphBuilder& b, Value signal, const StftCall& call) {
  const int64_t length = call.transform.length;
  Tensor places({DType::kI32, {call.frames, length}});
  for (int64_t f = 0; f < call.frames; ++f) {
    for (int64_t k = 0; k < length; ++k) {
      places.as_mutable<int32_t>()[f * length + k] = static_cast<int32_t>(f * call.step + k);
    }
  }
  return Gather(signal, b.Constant(std::move(places), "frames"), 1);
}

}  // namespace

Result<Value> ConvertStft(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(CheckSignal(n, 3));
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  const TensorType type = n.type(0);
  if (type.rank() != 3 || type.dims[1] > (int64_t{1} << 30)) {
    return n.Error(fmt::format("input 0 is {}; it must be [batch, at most 2^30 samples, 1 or 2]",
                               TypeToString(type)));
  }
  RIDGE_ASSIGN_OR_RETURN(const StftCall call, ReadStft(n));
  GraphBuilder& b = n.b();
  const int64_t length = call.transform.length;
  if (n.has_input(2) && n.dims(2) != Dims{length}) {
    return n.Error(fmt::format("window is {}; it must be [{}], the frame_length",
                               TypeToString(n.type(2)), length));
  }
  Value frames = TakeFrames(b, n[0], call);
  if (n.has_input(2)) {
    const Value window = ReshapeExactly(Cast(n[2], type.dtype), {length, 1});
    frames = frames * window;
  }
  return Apply(b, frames, call.transform);
}

}  // namespace ridge
