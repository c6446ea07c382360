// ONNX converters: parts of tensors and how they are put together.
#include <fmt/format.h>

#include <limits>
#include <numeric>

#include "ridge/onnx/import/converters/shape.h"

namespace ridge {

Result<Value> ConvertConcat(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(n.input_count() == 0 ? 1 : n.input_count()));
  const std::vector<Value> parts = n.inputs();
  const int64_t axis = n.integer("axis", 1);
  return parts.size() == 1 ? parts[0] : Concat(parts, axis);
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
    RIDGE_ASSIGN_OR_RETURN(sizes, n.ConstantInts(1, "split"));
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
  const Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis,
                         n.Axis(n.integer("axis", 0), static_cast<int>(dims.size())));
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                         SplitSizes(n, dims[static_cast<size_t>(axis)]));
  const Value x = n[0];
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (n.wants(i)) n.Set(i, Slice(x, axis, begin, begin + sizes[i], 1));
    begin += sizes[i];
  }
  return n.status();
}

Result<Value> ConvertSlice(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(n.opset() < 10 ? 1 : 3));
  AttrMap attrs;
  if (n.opset() < 10) {
    attrs = {{"starts", n.integers("starts")},
             {"ends", n.integers("ends")},
             {"axes", n.integers("axes")}};
  } else {
    RIDGE_ASSIGN_OR_RETURN(attrs["starts"], n.ConstantInts(1, "starts"));
    RIDGE_ASSIGN_OR_RETURN(attrs["ends"], n.ConstantInts(2, "ends"));
    if (n.has_input(3)) {
      RIDGE_ASSIGN_OR_RETURN(attrs["axes"], n.ConstantInts(3, "axes"));
    }
    if (n.has_input(4)) {
      RIDGE_ASSIGN_OR_RETURN(attrs["steps"], n.ConstantInts(4, "steps"));
    }
  }
  return Op("slice", {n[0]}, std::move(attrs));
}

namespace {

Result<std::vector<int64_t>> TileRepeats(OnnxNode& n, const Dims& dims) {
  RIDGE_RETURN_IF_ERROR(n.Need(2));
  RIDGE_ASSIGN_OR_RETURN(std::vector<int64_t> repeats, n.ConstantInts(1, "repeats"));
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
Result<Value> ConvertTile(OnnxNode& n) {
  Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, TileRepeats(n, dims));
  Value x = n[0];
  for (size_t d = dims.size(); d-- > 0;) {
    if (repeats[d] == 1) continue;
    const int64_t outer = OnnxElementCount(dims, 0, d),
                  rest = OnnxElementCount(dims, d, dims.size());
    x = ReshapeExactly(x, {outer, 1, rest});
    x = Expand(x, {outer, repeats[d], rest});
    dims[d] *= repeats[d];
    x = ReshapeExactly(x, dims);
  }
  return x;
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

Result<Value> ConvertDepthToSpace(OnnxNode& n) {
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
  Value x = n[0];
  if (mode == "DCR") {
    x = ReshapeExactly(x, {d[0], s, s, depth, d[2], d[3]});
    x = Transpose(x, {0, 3, 4, 1, 5, 2});
  } else {
    x = ReshapeExactly(x, {d[0], depth, s, s, d[2], d[3]});
    x = Transpose(x, {0, 1, 4, 2, 5, 3});
  }
  return ReshapeExactly(x, {d[0], depth, d[2] * s, d[3] * s});
}

Result<Value> ConvertSpaceToDepth(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t s, BlockSize(n));
  const Dims d = n.dims(0);
  if (d[2] % s != 0 || d[3] % s != 0) {
    return n.Error(fmt::format("{} can't be cut into blocks of {}", DimsToString(d), s));
  }
  Value x = ReshapeExactly(n[0], {d[0], d[1], d[2] / s, s, d[3] / s, s});
  x = Transpose(x, {0, 3, 5, 1, 2, 4});
  return ReshapeExactly(x, {d[0], d[1] * s * s, d[2] / s, d[3] / s});
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
  const int64_t batch_axis = n.integer("batch_axis", 1), time_axis = n.integer("time_axis", 0);
  RIDGE_RETURN_IF_ERROR(CheckReverse(n, batch_axis, time_axis));
  const Dims dims = n.dims(0);
  const int64_t batch = dims[static_cast<size_t>(batch_axis)];
  const int64_t length = dims[static_cast<size_t>(time_axis)];
  GraphBuilder& b = n.b();
  const bool by_batch = batch_axis == 0;
  RIDGE_ASSIGN_OR_RETURN(const Value times, OnnxIota(n, length));
  RIDGE_ASSIGN_OR_RETURN(const Value samples, OnnxIota(n, batch));
  const Value t = ReshapeExactly(times, by_batch ? Dims{1, length} : Dims{length, 1});
  const Dims of_batch = by_batch ? Dims{batch, 1} : Dims{1, batch};
  const Value s = ReshapeExactly(samples, of_batch);
  const Value len = ReshapeExactly(Cast(n[1], DType::kI64), of_batch);
  const Value reversed = len + -1 - t;
  const Value from = Where(t < len, reversed, t);
  const Value row =
      by_batch ? s * static_cast<double>(length) + from : from * static_cast<double>(batch) + s;
  if (!b.ok()) return n.status();
  const int64_t inner = OnnxElementCount(dims, 2, dims.size());
  const Value rows = ReshapeExactly(n[0], {batch * length, inner});
  const Value y = Gather(rows, ReshapeExactly(row, {batch * length}));
  n.Set(0, ReshapeExactly(y, dims));
  return n.status();
}

}  // namespace ridge
