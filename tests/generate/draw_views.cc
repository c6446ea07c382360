#include "tests/generate/families.h"

namespace ridge {

// To another rank, without extents of 1, or with one more of them.
void DrawReshape(Sketch& s) {
  const Value x = s.Any();
  Dims dims = s.dims(x);
  const int64_t kind = s.dice.Below(3);
  if (kind == 0) {
    dims = s.RandomFactors(s.elements(x), static_cast<int>(s.dice.From(1, 5)));
  } else if (kind == 1) {
    std::erase(dims, 1);
  } else {
    dims.insert(dims.begin() + s.dice.Below(s.rank(x) + 1), 1);
  }
  if (s.dice.Percent(20) && !dims.empty())
    dims[static_cast<size_t>(s.dice.Below(static_cast<int64_t>(dims.size())))] = -1;
  s.Keep(s.Reshape(x, dims));
}

void DrawTranspose(Sketch& s) {
  const Value x = s.AnyOfRank(2, 4);
  const bool reversed = s.dice.Percent(15);
  s.Keep(s.Transpose(x, reversed ? std::vector<int64_t>{} : s.dice.Shuffled(s.rank(x))));
}

void DrawSlice(Sketch& s) {
  const Value x = s.AnyOfRank(1, 4);
  std::vector<int64_t> axes, starts, ends, steps;
  for (int axis = 0; axis < s.rank(x); ++axis) {
    const int64_t extent = s.extent(x, axis);
    if (extent == 1 || s.dice.Percent(50)) continue;
    const int64_t begin = s.dice.Below(extent), end = s.dice.From(begin + 1, extent);
    const bool backward = s.dice.Percent(20);
    axes.push_back(s.dice.Percent(20) ? axis - s.rank(x) : axis);
    starts.push_back(backward ? end - 1 : begin);
    ends.push_back(backward ? begin - 1 - extent : end);
    if (backward && begin > 0) ends.back() = begin - 1;
    steps.push_back((backward ? -1 : 1) * s.dice.From(1, 2));
  }
  const char* op = "slice";
  AttrMap attrs = {{"axes", axes}, {"starts", starts}, {"ends", ends}, {"steps", steps}};
  if (axes.empty()) return;
  const Value y = s.Op(op, {x}, attrs);
  if (!y.valid() || s.dice.Percent(85)) return s.Keep(y);
  attrs["dims"] = s.dims(x);  // and back into zeros
  s.Keep(s.Op("slice_grad", {y}, attrs));
}

void DrawExpand(Sketch& s) {
  const Value x = s.Any();
  Dims dims = s.dims(x);
  for (int64_t& extent : dims) {
    if (extent == 1 && s.dice.Percent(50)) extent = s.dice.From(2, 3);
  }
  while (dims.size() < 4 && s.dice.Percent(30)) dims.insert(dims.begin(), s.dice.From(1, 3));
  s.Keep(s.Op("expand", {x}, {{"dims", dims}}));
}

void DrawPad(Sketch& s) {
  const Value x = s.Any();
  std::vector<int64_t> before, after;
  for (int axis = 0; axis < s.rank(x); ++axis) {
    before.push_back(s.dice.Percent(30) ? s.dice.From(1, 2) : 0);
    after.push_back(s.dice.Percent(30) ? s.dice.From(1, 2) : 0);
  }
  const double value = s.dice.Percent(50) ? 0.0 : s.dice.Between(-1, 1);
  s.Keep(s.Op("pad", {x}, {{"before", before}, {"after", after}, {"value", value}}));
}

void DrawConcat(Sketch& s) {
  const Value x = s.AnyOfRank(1, 4);
  if (!x.valid()) return;
  const int64_t axis = s.dice.Below(s.rank(x)), count = s.dice.From(1, 3);
  std::vector<Value> parts = {x};
  for (int64_t i = 0; i < count; ++i) {
    Dims dims = s.dims(x);
    const int64_t kind = s.dice.Below(3);
    if (kind == 0) {
      parts.push_back(x);
    } else if (kind == 1) {
      parts.push_back(RandomActivation(s, x));
    } else {
      dims[static_cast<size_t>(axis)] = s.dice.From(1, 3);
      parts.push_back(s.Parameter(dims));
    }
    if (s.dice.Percent(30)) std::swap(parts.back(), parts.front());
  }
  s.Keep(s.Op("concat", parts, {{"axis", s.dice.Percent(20) ? axis - s.rank(x) : axis}}));
}

void DrawSplit(Sketch& s) {
  const Value x = s.AnyOfRank(1, 4);
  if (!x.valid()) return;
  const int64_t axis = s.dice.Below(s.rank(x)), extent = s.extent(x, static_cast<int>(axis));
  if (extent < 2) return;
  const int64_t at =
      extent % 2 == 0 && s.dice.Percent(60) ? extent / 2 : s.dice.From(1, extent - 1);
  const Value low = s.Slice(x, axis, 0, at), high = s.Slice(x, axis, at, extent);
  if (!low.valid() || !high.valid()) return;
  if (s.dims(low) == s.dims(high) && s.dice.Percent(50))
    return s.Keep(s.Mul(low, s.Op("sigmoid", {high})));  // a gated linear unit
  s.Keep(low);
  if (s.dice.Percent(50)) s.Keep(high);
  if (s.dice.Percent(50))
    s.Keep(s.Op("concat", {high, RandomActivation(s, low)}, {{"axis", axis}}));
}

}  // namespace ridge
