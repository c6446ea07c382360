// Each rule answers one question: if every input is cut into slices along its sample axis, does the
// concatenation of the slices' outputs equal the output of the whole?  Operators of one kind share
// a rule, so one table holds all of them; an operator that is missing from it is never sliced.
#include "ridge/graph/sample_laws.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/reduce.h"
#include "ridge/graph/ops/shared/slice.h"

namespace ridge {
namespace {

using Axes = std::vector<int>;

bool IsReduced(int axis) { return axis == kMeanOfSamples || axis == kSumOfSamples; }

bool AnyReduced(const SampleCall& s) {
  return std::any_of(s.inputs.begin(), s.inputs.end(), IsReduced);
}

bool WithoutSamples(const SampleCall& s) {
  return std::all_of(s.inputs.begin(), s.inputs.end(), [](int axis) { return axis == kNoSamples; });
}

Axes EveryOutput(const SampleCall& s, int axis) { return Axes(s.call.outputs.size(), axis); }

bool OnlyFirstHasSamples(const SampleCall& s) {
  return s.inputs[0] >= 0 && std::all_of(s.inputs.begin() + 1, s.inputs.end(),
                                         [](int axis) { return axis == kNoSamples; });
}

Axes PointwiseSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return EveryOutput(s, kNoSamples);
  if (AnyReduced(s)) return {};
  const int rank = s.call.outputs[0].rank();
  int axis = kNoSamples;  // of the output
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    if (s.inputs[i] < 0) continue;
    const int here = s.inputs[i] + rank - s.call.inputs[i].rank();
    if (axis >= 0 && here != axis) return {};
    axis = here;
  }
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const int at = axis - (rank - s.call.inputs[i].rank());
    const bool varies =
        s.call.has_input(i) && at >= 0 && s.call.inputs[i].dims[static_cast<size_t>(at)] != 1;
    if (s.inputs[i] < 0 && varies) return {};  // one number a sample that belongs to none
  }
  return EveryOutput(s, axis);
}

// mean(x) + c = mean(x + c); sums add up with sums only.
Axes SumSamples(const SampleCall& s) {
  if (!AnyReduced(s)) return PointwiseSamples(s);
  const auto all = [&](auto test) { return std::all_of(s.inputs.begin(), s.inputs.end(), test); };
  if (!IsFloat(s.call.outputs[0].dtype)) return {};
  if (all([](int axis) { return axis == kSumOfSamples; })) return EveryOutput(s, kSumOfSamples);
  if (all([](int axis) { return axis == kMeanOfSamples || axis == kNoSamples; }))
    return EveryOutput(s, kMeanOfSamples);
  return {};
}

Axes ProductSamples(const SampleCall& s) {
  if (!AnyReduced(s)) return PointwiseSamples(s);
  if (s.inputs[1] == kNoSamples) return EveryOutput(s, s.inputs[0]);
  return s.inputs[0] == kNoSamples ? EveryOutput(s, s.inputs[1]) : Axes();
}

Axes QuotientSamples(const SampleCall& s) {
  if (!AnyReduced(s)) return PointwiseSamples(s);
  return s.inputs[1] == kNoSamples ? EveryOutput(s, s.inputs[0]) : Axes();
}

Axes FirstDimSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return EveryOutput(s, kNoSamples);
  return OnlyFirstHasSamples(s) && s.inputs[0] == 0 ? EveryOutput(s, 0) : Axes();
}

Axes AlongAxisSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return EveryOutput(s, kNoSamples);
  return OnlyFirstHasSamples(s) && s.inputs[0] != CallAxis(s.call) ? EveryOutput(s, s.inputs[0])
                                                                   : Axes();
}

Axes TrailingSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return EveryOutput(s, kNoSamples);
  return OnlyFirstHasSamples(s) && s.inputs[0] < CallAxis(s.call) ? EveryOutput(s, s.inputs[0])
                                                                  : Axes();
}

// Rows that are not samples (a batch times a length) would draw what other rows draw.
Axes DrawnSamples(const SampleCall& s) {
  const TensorType& y = s.call.outputs[0];
  const bool rows = y.rank() > 0 && y.dims[0] == s.batch;
  const bool given = std::any_of(s.inputs.begin(), s.inputs.end(),
                                 [](int axis) { return axis != kNoSamples && axis != 0; });
  return rows && !given ? EveryOutput(s, 0) : Axes();
}

Axes ReducedSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return EveryOutput(s, kNoSamples);
  const Result<std::vector<bool>> reduced = ReducedAxes(s.call);
  const int axis = s.inputs[0];
  if (axis < 0 || !reduced.ok() || (*reduced)[static_cast<size_t>(axis)]) return {};
  if (s.call.integer("keep_dims") != 0) return EveryOutput(s, axis);
  const auto gone = std::count(reduced->begin(), reduced->begin() + axis, true);
  return EveryOutput(s, axis - static_cast<int>(gone));
}

Axes LinearReducedSamples(const SampleCall& s, int over) {
  if (IsReduced(s.inputs[0])) return EveryOutput(s, s.inputs[0]);
  const Result<std::vector<bool>> reduced = ReducedAxes(s.call);
  if (s.inputs[0] < 0 || !reduced.ok() || !(*reduced)[static_cast<size_t>(s.inputs[0])])
    return ReducedSamples(s);
  return IsFloat(s.call.outputs[0].dtype) ? EveryOutput(s, over) : Axes();
}

Axes RecurrentSamples(const SampleCall& s, std::span<const size_t> states) {
  if (WithoutSamples(s)) return EveryOutput(s, kNoSamples);
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const bool state = std::find(states.begin(), states.end(), i) != states.end();
    const int expected = i == 0 ? 1 : state ? 0 : kNoSamples;
    if (s.call.has_input(i) && s.inputs[i] != expected) return {};
  }
  return EveryOutput(s, 1);
}

// Rounding to integers would not be linear; floats are near enough to themselves.
Axes CastSamples(const SampleCall& s) {
  return IsFloat(s.call.inputs[0].dtype) ? SumSamples(s) : PointwiseSamples(s);
}

Axes SumsSamples(const SampleCall& s) { return LinearReducedSamples(s, kSumOfSamples); }

Axes MeansSamples(const SampleCall& s) { return LinearReducedSamples(s, kMeanOfSamples); }

// argmax.
Axes KeptSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return {kNoSamples};
  const Result<int> axis = NormalizeAxis(s.call.integer("axis"), s.call.inputs[0].rank(), "");
  const int samples = s.inputs[0];
  if (samples < 0 || !axis.ok() || samples == *axis) return {};
  return {samples > *axis && s.call.integer("keep_dims") == 0 ? samples - 1 : samples};
}

// softmax_cross_entropy: each row of logits with its label.
Axes RowSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return {kNoSamples};
  const bool rows = s.inputs[0] >= 0 && s.inputs[0] < s.call.inputs[1].rank();
  return rows && s.inputs[0] == s.inputs[1] ? Axes{s.inputs[0]} : Axes();
}

// The sample axis is one of the indices of a table, or one of x that is not indexed.
Axes GatheredSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return {kNoSamples};
  const int axis = CallAxis(s.call), x = s.inputs[0], indices = s.inputs[1];
  if (x == kNoSamples && indices >= 0) return {axis + indices};
  if (indices != kNoSamples || x < 0 || x == axis) return {};
  return {x < axis ? x : x + s.call.inputs[1].rank() - 1};
}

// attention: dimension 0 of all; the mask may be the same for every sample.
Axes HeadSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return EveryOutput(s, kNoSamples);
  for (size_t i = 0; i < 3; ++i) {  // packed: all in one
    if (s.call.has_input(i) && s.inputs[i] != 0) return {};
  }
  if (!s.call.has_input(3)) return EveryOutput(s, 0);
  const TensorType& mask = s.call.inputs[3];
  const bool shared = s.inputs[3] == kNoSamples && (mask.rank() < 4 || mask.dims[0] == 1);
  const bool own = s.inputs[3] == 0 && mask.rank() == 4;
  return shared || own ? EveryOutput(s, 0) : Axes();
}

// transpose.
Axes MovedSamples(const SampleCall& s) {
  if (s.inputs[0] < 0) return {s.inputs[0]};
  const std::vector<int64_t>& permutation = s.call.integers("permutation");
  if (permutation.empty()) return {s.call.inputs[0].rank() - 1 - s.inputs[0]};
  const auto at = std::find(permutation.begin(), permutation.end(), s.inputs[0]);
  return {static_cast<int>(at - permutation.begin())};
}

// concat.
Axes JoinedSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return {kNoSamples};
  const int axis = s.inputs[0];
  const bool same = std::all_of(s.inputs.begin(), s.inputs.end(), [&](int i) { return i == axis; });
  return same && axis >= 0 && axis != CallAxis(s.call) ? Axes{axis} : Axes();
}

// pad.
Axes PaddedSamples(const SampleCall& s) {
  if (s.inputs[0] == kNoSamples) return {kNoSamples};
  if (s.inputs[0] < 0) return {};
  const auto axis = static_cast<size_t>(s.inputs[0]);
  const bool padded = s.call.integers("before")[axis] != 0 || s.call.integers("after")[axis] != 0;
  return padded ? Axes() : Axes{s.inputs[0]};
}

// expand: a value that is repeated once a sample belongs to the samples from then on.
Axes RepeatedSamples(const SampleCall& s) {
  const Dims &x = s.call.inputs[0].dims, &y = s.call.outputs[0].dims;
  const auto added = static_cast<int>(y.size() - x.size());
  if (s.inputs[0] >= 0) return {s.inputs[0] + added};
  if (s.inputs[0] != kNoSamples) return {s.inputs[0]};
  for (int d = 0; d < static_cast<int>(y.size()); ++d) {
    const bool stretched = d < added || x[static_cast<size_t>(d - added)] == 1;
    if (stretched && y[static_cast<size_t>(d)] == s.batch) return {d};
  }
  return {kNoSamples};
}

// reshape: samples keep their order and their elements when an axis of y begins where theirs begins
// in x, and splits evenly into as many.
Axes RegroupedSamples(const SampleCall& s) {
  if (s.inputs[0] < 0) return {s.inputs[0]};
  const Dims &x = s.call.inputs[0].dims, &y = s.call.outputs[0].dims;
  if (s.call.inputs[0].elements() == 0) return {};
  const int64_t before = ElementCount(Dims(x.begin(), x.begin() + s.inputs[0]));
  int64_t here = 1;
  for (size_t d = 0; d < y.size() && here <= before; here *= y[d++]) {
    if (here == before && y[d] % s.batch == 0) return {static_cast<int>(d)};
  }
  return {};
}

// slice: what leaves the samples whole at any number of them.
Axes WholeSamples(const SampleCall& s) {
  const int axis = s.inputs[0];
  if (axis < 0) return {axis};
  const Result<std::vector<SliceRange>> ranges = SliceRanges(s.call, s.call.inputs[0].dims);
  if (!ranges.ok()) return {};
  const SliceRange& range = (*ranges)[static_cast<size_t>(axis)];
  const bool whole = range.start == 0 && range.step == 1 &&
                     range.count == s.call.inputs[0].dims[static_cast<size_t>(axis)];
  return whole ? Axes{axis} : Axes();
}

constexpr size_t kBias = 2;  // of matmul

// The axis of y that dimension `axis` of operand i of a matmul becomes; none for what is summed.
std::optional<int> AxisInProduct(const OpCall& call, size_t i, int axis) {
  const int rank = call.outputs[0].rank(), from_end = call.inputs[i].rank() - axis;
  if (from_end > 2) return rank - from_end;
  const bool transposed = call.integer(i == 0 ? "transpose_a" : "transpose_b") != 0;
  const int kept = (i == 0) != transposed ? 2 : 1;  // rows of a, columns of b
  if (from_end != kept) return std::nullopt;
  return i == 0 ? rank - 2 : rank - 1;
}

// matmul: samples are rows of a, columns of b, or among the dimensions before both.
Axes ProductRowSamples(const SampleCall& s) {
  if (WithoutSamples(s)) return {kNoSamples};
  const int rank = s.call.outputs[0].rank();
  std::optional<int> axis;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    if (s.inputs[i] == kNoSamples) continue;
    if (i >= kBias || s.inputs[i] < 0) return {};
    const std::optional<int> here = AxisInProduct(s.call, i, s.inputs[i]);
    if (!here || (axis && *axis != *here) || (axis && *here >= rank - 2)) return {};
    axis = here;
  }
  if (*axis == rank - 1 && s.call.has_input(kBias)) return {};
  for (size_t i = 0; i < kBias && *axis < rank - 2; ++i) {
    const int at = *axis - (rank - s.call.inputs[i].rank());
    if (s.inputs[i] < 0 && at >= 0 && s.call.inputs[i].dims[static_cast<size_t>(at)] != 1)
      return {};
  }
  return {*axis};
}

Axes LstmSamples(const SampleCall& s) {
  static constexpr size_t kStates[] = {2, 3};
  return RecurrentSamples(s, kStates);
}

Axes GruSamples(const SampleCall& s) {
  static constexpr size_t kStates[] = {2};
  return RecurrentSamples(s, kStates);
}

const SampleLaw* FindLaw(const std::string& op) {
  static const std::map<std::string_view, SampleLaw> kLaws = {
      {"add", {SumSamples}},
      {"sub", {SumSamples}},
      {"neg", {SumSamples}},
      {"cast", {CastSamples}},
      {"mul", {ProductSamples}},
      {"div", {QuotientSamples}},
      {"reduce_sum", {SumsSamples}},
      {"reduce_mean", {MeansSamples}},
      {"reduce_max", {ReducedSamples}},
      {"reduce_min", {ReducedSamples}},
      {"reduce_prod", {ReducedSamples}},
      {"argmax", {KeptSamples}},
      {"softmax", {AlongAxisSamples}},
      {"log_softmax", {AlongAxisSamples}},
      {"cumsum", {AlongAxisSamples}},
      {"cumprod", {AlongAxisSamples}},
      {"top_k", {AlongAxisSamples}},
      {"interpolate", {AlongAxisSamples}},
      {"layer_norm", {TrailingSamples}},
      {"rms_norm", {TrailingSamples}},
      {"conv", {FirstDimSamples}},
      {"conv_grad_input", {FirstDimSamples, "input_dims"}},
      {"conv_pool", {FirstDimSamples}},
      {"max_pool", {FirstDimSamples}},
      {"avg_pool", {FirstDimSamples}},
      {"batch_norm_inference", {FirstDimSamples}},
      {"matmul", {ProductRowSamples}},
      {"attention", {HeadSamples}},
      {"softmax_cross_entropy", {RowSamples}},
      {"gather", {GatheredSamples}},
      {"reshape", {RegroupedSamples, "dims"}},
      {"expand", {RepeatedSamples, "dims"}},
      {"transpose", {MovedSamples}},
      {"slice", {WholeSamples}},
      {"concat", {JoinedSamples}},
      {"pad", {PaddedSamples}},
      {"dropout", {DrawnSamples}},
      {"random_uniform", {DrawnSamples, "dims"}},
      {"random_normal", {DrawnSamples, "dims"}},
      {"lstm", {LstmSamples}},
      {"gru", {GruSamples}},
      {"rnn", {GruSamples}},
  };
  const auto found = kLaws.find(op);
  return found == kLaws.end() ? nullptr : &found->second;
}

}  // namespace

std::vector<int> SampleAxesAfter(const OpDef& op, const SampleCall& s) {
  if (const SampleLaw* law = FindLaw(op.name); law != nullptr) return law->axes(s);
  if (WithoutSamples(s)) return EveryOutput(s, kNoSamples);
  return op.elementwise != nullptr ? PointwiseSamples(s) : std::vector<int>();
}

const char* DimsAttr(const OpDef& op) {
  const SampleLaw* law = FindLaw(op.name);
  return law == nullptr ? nullptr : law->dims_attr;
}

}  // namespace ridge
