#include "tests/generate/families.h"

namespace ridge {
namespace {

// Steps that go into the epilogue of a product.
Value Epilogue(Sketch& s, Value y) {
  if (!y.valid()) return y;
  for (int64_t steps = s.dice.Below(3); steps > 0 && y.valid(); --steps) {
    const int64_t kind = s.dice.Below(3);
    if (kind == 0) y = RandomActivation(s, y);
    if (kind == 1) y = s.Add(y, s.Parameter(s.dims(y)));
    if (kind == 2) y = s.Times(y, s.dice.Between(0.3, 1.5));
  }
  return y;
}

}  // namespace

// x w + bias, as nn.Linear and as MatMul and Add.
void DrawLinear(Sketch& s) {
  const Value x = s.AnyOfRank(1, 4);
  if (!x.valid() || s.rank(x) == 0) return;
  const int64_t in = s.dims(x).back(), out = s.dice.OneOf({1, 2, 3, 4, 6});
  const Value in_rank = s.rank(x) == 1 ? s.Reshape(x, {1, in}) : x;
  const bool transposed = s.dice.Percent(50);
  const Value w = s.Parameter(transposed ? Dims{out, in} : Dims{in, out}, 0.8);
  const Value bias = s.dice.Percent(40) ? s.Parameter({out}) : Sketch::Absent();
  Value y = s.Op("matmul", {in_rank, w, bias}, {{"transpose_b", transposed}});
  if (y.valid() && s.dice.Percent(40))
    y = s.Add(y, s.Parameter(s.dice.Percent(70) ? Dims{out} : Dims{1, out}));
  s.Keep(Epilogue(s, y));
}

// Two drawn values, or one with itself.
void DrawMatmul(Sketch& s) {
  const Value a = s.AnyOfRank(2, 4);
  if (!a.valid() || s.rank(a) < 2) return;
  Value b = s.dice.Percent(40) ? a : s.Any();
  const bool transpose_a = s.dice.Percent(30);
  const int64_t k = s.extent(a, s.rank(a) - (transpose_a ? 2 : 1));
  if (s.elements(b) % k != 0) return;
  const bool transpose_b = s.dice.Percent(50);
  const int64_t n = s.elements(b) / k;
  Dims dims = transpose_b ? Dims{n, k} : Dims{k, n};
  if (b == a && s.dice.Percent(70)) {
    dims = s.dims(a);
    if ((transpose_b ? dims.back() : dims[dims.size() - 2]) != k) return;
  }
  if (dims != s.dims(b)) b = s.Reshape(b, dims);
  s.Keep(s.Op("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}));
}

namespace {

struct Window {
  std::vector<int64_t> kernel, stride, padding, dilation;

  AttrMap attrs() const {
    return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}};
  }
};

// One that fits into the spatial extents of x.
Window DrawWindow(Sketch& s, const Dims& x, int64_t largest) {
  Window w;
  std::vector<int64_t> after;
  for (size_t d = 2; d < x.size(); ++d) {
    const int64_t before = s.dice.Percent(40) ? 1 : 0;
    after.push_back(s.dice.Percent(40) ? 1 : 0);
    w.padding.push_back(before);
    const int64_t room = x[d] + before + after.back();
    w.kernel.push_back(s.dice.From(1, std::min(largest, room)));
    w.dilation.push_back(w.kernel.back() * 2 - 1 <= room && s.dice.Percent(15) ? 2 : 1);
    w.stride.push_back(s.dice.Percent(30) ? 2 : 1);
  }
  w.padding.insert(w.padding.end(), after.begin(), after.end());
  return w;
}

// Images: [B,C,H,W], or with 1 or 3 spatial dimensions.
Value Images(Sketch& s) {
  const int spatial = s.dice.Percent(70) ? 2 : static_cast<int>(s.dice.From(1, 3));
  const Value recent = s.Any();
  if (recent.valid() && s.rank(recent) == spatial + 2) return recent;
  return s.AsRank(recent, spatial + 2);
}

int64_t Groups(Sketch& s, int64_t channels) {
  if (s.dice.Percent(60)) return 1;
  return s.dice.Percent(50) ? channels : channels % 2 == 0 ? 2 : 1;
}

Dims Joined(Dims head, const std::vector<int64_t>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

}  // namespace

void DrawConv(Sketch& s) {
  const Value x = Images(s);
  if (!x.valid()) return;
  const Window window = DrawWindow(s, s.dims(x), 3);
  const int64_t channels = s.extent(x, 1), groups = Groups(s, channels);
  const int64_t out = groups * s.dice.From(1, groups == 1 ? 4 : 2);
  const Value w = s.Parameter(Joined({out, channels / groups}, window.kernel), 0.7);
  AttrMap attrs = window.attrs();
  attrs["groups"] = groups;
  const Value bias = s.dice.Percent(50) ? s.Parameter({out}) : Sketch::Absent();
  Value y = s.Op("conv", {x, w, bias}, attrs);
  if (y.valid() && s.dice.Percent(30)) {
    Dims row(s.dims(y).size(), 1);
    row[1] = out;
    y = s.Add(y, s.Parameter(row));
  }
  s.Keep(Epilogue(s, y));
}

void DrawTransposedConv(Sketch& s) {
  const Value dy = Images(s);
  if (!dy.valid()) return;
  Dims x = {s.extent(dy, 0), s.dice.From(1, 3)};
  std::vector<int64_t> kernel, stride, padding;
  for (int d = 2; d < s.rank(dy); ++d) {
    kernel.push_back(s.dice.From(1, 3));
    stride.push_back(s.dice.From(1, 2));
    padding.push_back(kernel.back() > 1 && s.dice.Percent(30) ? 1 : 0);
    x.push_back((s.extent(dy, d) - 1) * stride.back() + kernel.back() - 2 * padding.back());
    if (x.back() < 1) return;
  }
  const Value w = s.Parameter(Joined({s.extent(dy, 1), x[1]}, kernel), 0.7);
  Value y = s.Op("conv_grad_input", {dy, w},
                 {{"input_dims", x}, {"stride", stride}, {"padding", Joined(padding, padding)}});
  if (y.valid() && s.dice.Percent(50)) {
    Dims row(s.dims(y).size(), 1);
    row[1] = x[1];
    y = s.Add(y, s.Parameter(row));
  }
  s.Keep(Epilogue(s, y));
}

// The gradient operators of windows as forward nodes: gradients of gradients need them.
void DrawConvOfGradients(Sketch& s) {
  const Value x = Images(s);
  if (!x.valid() || s.rank(x) != 4) return;
  const Window window = DrawWindow(s, s.dims(x), 2);
  const int64_t kind = s.dice.Below(3);
  if (kind == 0) {
    const Dims weight = Joined({2, s.extent(x, 1)}, window.kernel);
    const Value y = s.Op("conv", {x, s.Parameter(weight, 0.7)}, window.attrs());
    AttrMap attrs = window.attrs();
    attrs["weight_dims"] = weight;
    attrs["bias"] = s.dice.Below(2);
    const std::vector<Value> made = s.Outputs("conv_grad_weight", {x, y}, attrs);
    s.Keep(made[0]);
    if (std::get<int64_t>(attrs["bias"]) != 0) s.Keep(made[1]);
    return;
  }
  AttrMap attrs = window.attrs();
  attrs["kernel"] = window.kernel;
  const std::vector<Value> pooled = s.Outputs(kind == 1 ? "max_pool" : "avg_pool", {x}, attrs);
  attrs["input_dims"] = s.dims(x);
  if (!pooled[0].valid()) return;
  const Value dy = s.Op("sin", {pooled[0]});
  s.Keep(kind == 1 ? s.Op("max_pool_grad", {pooled[1], dy}, attrs)
                   : s.Op("avg_pool_grad", {dy}, attrs));
}

void DrawPool(Sketch& s) {
  const Value x = Images(s);
  if (!x.valid()) return;
  const Window window = DrawWindow(s, s.dims(x), 3);
  AttrMap attrs = window.attrs();
  attrs["kernel"] = window.kernel;
  attrs["ceil_mode"] = s.dice.Below(2);
  const bool largest = s.dice.Percent(50);
  if (!largest) attrs["count_include_pad"] = s.dice.Below(2);
  s.Keep(s.Outputs(largest ? "max_pool" : "avg_pool", {x}, attrs)[0]);
}

void DrawConvPool(Sketch& s) {
  const Value x = s.AsRank(s.Any(), 4);
  if (!x.valid()) return;
  const int64_t out = s.dice.From(1, 3), k = s.dice.From(1, 3);
  const Value bias = s.dice.Percent(60) ? s.Parameter({out}) : Sketch::Absent();
  Value y = s.Op("conv", {x, s.Parameter({out, s.extent(x, 1), k, k}, 0.7), bias},
                 {{"padding", {1, 1, 1, 1}}});
  const bool before = s.dice.Percent(50);
  if (before) y = s.Op("relu", {y});
  y = s.Outputs("max_pool", {y}, {{"kernel", {2, 2}}, {"stride", {2, 2}}})[0];
  s.Keep(before ? y : s.Op("relu", {y}));
}

// Every row of y a weighted sum of one or two rows of x.
void DrawInterpolate(Sketch& s) {
  const Value x = s.AnyOfRank(1, 4);
  if (!x.valid()) return;
  const int64_t axis = s.dice.Below(s.rank(x)), extent = s.extent(x, static_cast<int>(axis));
  std::vector<int64_t> starts = {0}, places;
  std::vector<double> weights;
  for (int64_t row = s.dice.From(1, 5); row > 0; --row) {
    for (int64_t k = s.dice.From(1, 2); k > 0; --k) {
      places.push_back(s.dice.Below(extent));
      weights.push_back(s.dice.Between(-0.5, 1));
    }
    starts.push_back(static_cast<int64_t>(places.size()));
  }
  s.Keep(s.Op("interpolate", {x},
              {{"axis", axis}, {"starts", starts}, {"places", places}, {"weights", weights}}));
}

void DrawRegions(Sketch& s) {
  const Value x = s.AsRank(s.Any(), 4);
  if (!x.valid()) return;
  const int64_t rois = s.dice.From(1, 3), images = s.extent(x, 0) - 1;
  const double far = static_cast<double>(std::max(s.extent(x, 2), s.extent(x, 3)));
  const std::vector<int64_t> output = {s.dice.From(1, 2), s.dice.From(1, 2)};
  if (s.dice.Percent(30)) {
    // Corners at halves: they are as they are in the shortest float.
    Value boxes = s.Mul(
        s.Op("cast", {s.Integers({rois, 5}, 0, static_cast<int64_t>(2 * far))}, {{"to", "f64"}}),
        s.Constant(Tensor::Scalar(DType::kF64, 0.5)));
    if (images > 0)
      boxes = s.Mul(boxes, s.Constant([] {
        Tensor first({DType::kF64, {1, 5}});
        for (int64_t i = 1; i < 5; ++i) first.as_mutable<double>()[i] = 1;
        return first;
      }()));
    return s.Keep(s.Outputs("max_roi_pool", {x, boxes}, {{"output", output}})[0]);
  }
  // Corners in order; boxes that are learned have gradients too.
  const bool learned = s.dice.Percent(30);
  const Value low =
      learned ? s.Op("square", {s.Parameter({rois, 2})}) : s.Statistic({rois, 2}, 0, far / 2);
  const Value high = s.Add(low, s.Statistic({rois, 2}, 0.5, far / 2 + 1));
  AttrMap attrs = {{"output", output},
                   {"sampling_ratio", s.dice.From(1, 2)},
                   {"half_pixel", s.dice.Below(2)},
                   {"mode", std::string(s.dice.Percent(70) ? "avg" : "max")}};
  const Value boxes = s.Op("concat", {low, high}, {{"axis", 1}});
  const Value image = s.Integers({rois}, 0, images);
  const Value y = s.Op("roi_align", {x, boxes, image}, attrs);
  const bool max = std::get<std::string>(attrs["mode"]) == "max";
  if (!y.valid() || max || learned || s.dice.Percent(60)) return s.Keep(y);
  attrs["input_dims"] = s.dims(x);
  s.Keep(s.Outputs("roi_align_grad", {boxes, image, s.Op("sin", {y})}, attrs)[0]);
}

}  // namespace ridge
