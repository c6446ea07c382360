// ONNX converters: parts of tensors and how they are put together.
#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "ridge/onnx/import/converters/shape.h"

namespace ridge {

Status ConvertConcat(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(n.input_count() == 0 ? 1 : n.input_count()));
  const std::vector<Value> parts = n.inputs();
  const int64_t axis = n.integer("axis", 1);
  n.Set(0, parts.size() == 1 ? parts[0] : n.b().Op("concat", parts, {{"axis", axis}}));
  return n.status();
}

namespace {

// As equal as can be: all but the last of one size.
std::vector<int64_t> EqualParts(int64_t extent, int64_t count) {
  const int64_t size = (extent + count - 1) / count;
  std::vector<int64_t> sizes;
  for (int64_t left = extent; count > 0; --count) {
    sizes.push_back(std::min(size, left));
    left -= sizes.back();
  }
  return sizes;
}

Result<std::vector<int64_t>> SplitSizes(OnnxNode& n, int64_t extent) {
  std::vector<int64_t> sizes;
  if (n.has_attr("split")) {
    sizes = n.integers("split");
  } else if (n.has_input(1)) {
    RIDGE_ASSIGN_OR_RETURN(sizes, n.KnownInts(1, "split"));
  } else {
    const auto outputs = static_cast<int64_t>(n.output_count());
    const int64_t count = n.integer("num_outputs", outputs);
    if (count != outputs || count < 1) {
      return n.Error(fmt::format("num_outputs is {}; the node has {} outputs", count, outputs));
    }
    return EqualParts(extent, count);
  }
  int64_t sum = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > extent - sum) break;
    sum += size;
  }
  if (sum == extent && sizes.size() == n.output_count()) return sizes;
  return n.Error(
      fmt::format("split is {} for {} outputs and extent {}; it must have one size for "
                  "each output, and they must add up to the extent",
                  DimsToString(sizes), n.output_count(), extent));
}

}  // namespace

Status ConvertSplit(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  const Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis,
                         n.Axis(n.integer("axis", 0), static_cast<int>(dims.size())));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                         SplitSizes(n, dims[static_cast<size_t>(axis)]));
  const Value x = n.input(0);
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (n.wants(i)) n.Set(i, OnnxSliceAxis(n.b(), x, axis, begin, begin + sizes[i]));
    begin += sizes[i];
  }
  return n.status();
}

Status ConvertSlice(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(n.opset() < 10 ? 1 : 3));
  AttrMap attrs;
  if (n.opset() < 10) {
    attrs = {{"starts", n.integers("starts")},
             {"ends", n.integers("ends")},
             {"axes", n.integers("axes")}};
  } else {
    RIDGE_ASSIGN_OR_RETURN(attrs["starts"], n.KnownInts(1, "starts"));
    RIDGE_ASSIGN_OR_RETURN(attrs["ends"], n.KnownInts(2, "ends"));
    if (n.has_input(3)) {
      RIDGE_ASSIGN_OR_RETURN(attrs["axes"], n.KnownInts(3, "axes"));
    }
    if (n.has_input(4)) {
      RIDGE_ASSIGN_OR_RETURN(attrs["steps"], n.KnownInts(4, "steps"));
    }
  }
  n.Set(0, n.b().Op("slice", {n.input(0)}, std::move(attrs)));
  return n.status();
}

namespace {

Result<std::vector<int64_t>> TileRepeats(OnnxNode& n, const Dims& dims) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  RIDGE_ASSIGN_OR_RETURN(std::vector<int64_t> repeats, n.KnownInts(1, "repeats"));
  if (repeats.size() != dims.size()) {
    return n.Error(
        fmt::format("repeats is {}; the input has rank {}", DimsToString(repeats), dims.size()));
  }
  Dims whole = dims;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (repeats[d] < 0 || (dims[d] > 0 && repeats[d] > (int64_t{1} << 48) / dims[d])) {
      return n.Error(fmt::format("repeats is {} for {}; too large, or negative",
                                 DimsToString(repeats), DimsToString(dims)));
    }
    whole[d] *= repeats[d];
  }
  if (Status status = CheckDims(whole); !status.ok()) return n.Error(status.message());
  return repeats;
}

}  // namespace

// One axis at a time, the last first: [outer, 1, extent * inner] stretched to [outer, repeats, ..].
Status ConvertTile(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, TileRepeats(n, dims));
  Value x = n.input(0);
  for (size_t d = dims.size(); d-- > 0;) {
    if (repeats[d] == 1) continue;
    const int64_t outer = OnnxExtent(dims, 0, d), rest = OnnxExtent(dims, d, dims.size());
    x = ReshapeExactly(n.b(), x, {outer, 1, rest});
    x = n.b().Expand(x, {outer, repeats[d], rest});
    dims[d] *= repeats[d];
    x = ReshapeExactly(n.b(), x, dims);
  }
  n.Set(0, x);
  return n.status();
}

namespace {

// [batch, channels, height, width] and a block size that fits.
Result<int64_t> BlockSize(OnnxNode& n) {
  const Dims dims = n.dims(0);
  const int64_t size = n.integer("blocksize", 0);
  if (dims.size() == 4 && size >= 1 && size <= (1 << 20)) return size;
  return n.Error(
      fmt::format("blocksize is {}, the input is {}; it needs rank 4, and blocksize "
                  "must be in [1, 2^20]",
                  size, DimsToString(dims)));
}

}  // namespace

Status ConvertDepthToSpace(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  RIDGE_ASSIGN_OR_RETURN(const int64_t s, BlockSize(n));
  const Dims d = n.dims(0);
  if (d[1] % (s * s) != 0) {
    return n.Error(fmt::format("{} channels can't be split into blocks of {}", d[1], s * s));
  }
  const std::string mode = n.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    return n.Error(fmt::format("mode is \"{}\"; it must be DCR or CRD", mode));
  }
  const int64_t depth = d[1] / (s * s);
  GraphBuilder& b = n.b();
  Value x = n.input(0);
  if (mode == "DCR") {
    x = ReshapeExactly(b, x, {d[0], s, s, depth, d[2], d[3]});
    x = b.Transpose(x, {0, 3, 4, 1, 5, 2});
  } else {
    x = ReshapeExactly(b, x, {d[0], depth, s, s, d[2], d[3]});
    x = b.Transpose(x, {0, 1, 4, 2, 5, 3});
  }
  n.Set(0, ReshapeExactly(b, x, {d[0], depth, d[2] * s, d[3] * s}));
  return n.status();
}

Status ConvertSpaceToDepth(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(1));
  RIDGE_ASSIGN_OR_RETURN(const int64_t s, BlockSize(n));
  const Dims d = n.dims(0);
  if (d[2] % s != 0 || d[3] % s != 0) {
    return n.Error(fmt::format("{} can't be cut into blocks of {}", DimsToString(d), s));
  }
  GraphBuilder& b = n.b();
  Value x = ReshapeExactly(b, n.input(0), {d[0], d[1], d[2] / s, s, d[3] / s, s});
  x = b.Transpose(x, {0, 3, 5, 1, 2, 4});
  n.Set(0, ReshapeExactly(b, x, {d[0], d[1] * s * s, d[2] / s, d[3] / s}));
  return n.status();
}

namespace {

Status CheckReverse(OnnxNode& n, int64_t batch_axis, int64_t time_axis) {
  const Dims dims = n.dims(0), lens = n.dims(1);
  if (dims.size() < 2 || batch_axis + time_axis != 1 || batch_axis * time_axis != 0) {
    return n.Error(
        fmt::format("batch_axis is {}, time_axis is {}, the input is {}; one must be 0, "
                    "the other 1",
                    batch_axis, time_axis, DimsToString(dims)));
  }
  const int64_t batch = dims[static_cast<size_t>(batch_axis)];
  if (lens == Dims{batch}) return Status();
  return n.Error(fmt::format("sequence_lens is {}; the batch has {}", DimsToString(lens), batch));
}

}  // namespace

// Rows (batch, time) of x are taken from the place where the reversed sequence has them.
Status ConvertReverseSequence(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  const int64_t batch_axis = n.integer("batch_axis", 1), time_axis = n.integer("time_axis", 0);
  RIDGE_RETURN_IF_ERROR(CheckReverse(n, batch_axis, time_axis));
  const Dims dims = n.dims(0);
  const int64_t batch = dims[static_cast<size_t>(batch_axis)];
  const int64_t length = dims[static_cast<size_t>(time_axis)];
  GraphBuilder& b = n.b();
  const bool by_batch = batch_axis == 0;
  RIDGE_ASSIGN_OR_RETURN(const Value times, OnnxIota(n, length));
  RIDGE_ASSIGN_OR_RETURN(const Value samples, OnnxIota(n, batch));
  const Value t = ReshapeExactly(b, times, by_batch ? Dims{1, length} : Dims{length, 1});
  const Dims of_batch = by_batch ? Dims{batch, 1} : Dims{1, batch};
  const Value s = ReshapeExactly(b, samples, of_batch);
  const Value len = ReshapeExactly(b, b.Cast(n.input(1), DType::kI64), of_batch);
  const Value reversed = b.Sub(b.AddScalar(len, -1), t);
  const Value from = b.Where(b.Op("less", {t, len}), reversed, t);
  const Value row = by_batch ? b.Add(b.MulScalar(s, static_cast<double>(length)), from)
                             : b.Add(b.MulScalar(from, static_cast<double>(batch)), s);
  if (!b.ok()) return n.status();
  const int64_t inner = OnnxExtent(dims, 2, dims.size());
  const Value rows = ReshapeExactly(b, n.input(0), {batch * length, inner});
  const Value y = b.Op("gather", {rows, ReshapeExactly(b, row, {batch * length})});
  n.Set(0, ReshapeExactly(b, y, dims));
  return n.status();
}

}  // namespace ridge
