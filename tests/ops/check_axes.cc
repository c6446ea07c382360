#include "tests/ops/check_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/graph/axes.h"

namespace ridge {
namespace {

constexpr double kRelative = 1e-12;  // sums of parts, in f64

struct Array {
  TensorType type;
  std::vector<double> values;
};

// The rows of an array.
Array Cut(const Array& from, const Rows& rows) {
  const auto axis = static_cast<size_t>(rows.axis);
  const Dims& dims = from.type.dims;
  const int64_t outer = ElementCount(Dims(dims.begin(), dims.begin() + rows.axis));
  const int64_t inner = ElementCount(Dims(dims.begin() + rows.axis + 1, dims.end()));
  Array part{from.type, {}};
  part.type.dims[axis] = rows.count;
  for (int64_t o = 0; o < outer; ++o) {
    const auto begin = from.values.begin() + (o * dims[axis] + rows.first) * inner;
    part.values.insert(part.values.end(), begin, begin + rows.count * inner);
  }
  return part;
}

bool SameBits(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::string Compare(const Array& got, const Array& want, double relative) {
  if (got.type != want.type)
    return fmt::format("is {}, not {}", TypeToString(got.type), TypeToString(want.type));
  for (size_t k = 0; k < want.values.size(); ++k) {
    const double a = got.values[k], b = want.values[k];
    if (SameBits(a, b) || std::abs(a - b) <= relative * std::max(1.0, std::abs(b))) continue;
    return fmt::format("has {} at {}, not {}", a, k, b);
  }
  return "";
}

class AxesProbe {
 public:
  AxesProbe(const OpDef& op, const OpCase& op_case) : op_(op), case_(op_case) {
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      if (case_.inputs[i] == OpCall::Absent()) {
        inputs_.push_back({OpCall::Absent(), {}});
        continue;
      }
      const Tensor tensor = CaseInput(case_, i);
      Array input{case_.inputs[i], std::vector<double>(static_cast<size_t>(tensor.elements()))};
      for (int64_t k = 0; k < tensor.elements(); ++k)
        input.values[static_cast<size_t>(k)] = tensor.at(k);
      inputs_.push_back(std::move(input));
    }
  }

  std::string Run() {
    Result<OpCall> call = InferCase(op_, case_);
    if (!call.ok()) return call.status().message();
    call_ = *std::move(call);
    if (std::string wrong = Evaluate(inputs_, call_.attrs, whole_); !wrong.empty()) return wrong;
    for (const Factor& factor : AxesOf(op_, call_)) {
      for (int64_t parts : {2, 3}) {
        if (std::string wrong = CheckParts(factor, parts); !wrong.empty()) return wrong;
      }
    }
    for (int d = 0; d < call_.outputs[0].rank(); ++d) {
      if (std::string wrong = CheckRows(d); !wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  // The outputs of a call of these inputs.
  std::string Evaluate(const std::vector<Array>& inputs, const AttrMap& attrs,
                       std::vector<Array>& outputs) const {
    OpCall call{call_.where, {}, {}, attrs};
    std::vector<const double*> in;
    for (const Array& input : inputs) {
      call.inputs.push_back(input.type);
      in.push_back(input.type == OpCall::Absent() ? nullptr : input.values.data());
    }
    Result<std::vector<TensorType>> types = InferCall(op_, call);
    if (!types.ok()) return types.status().message();
    call.outputs = *types;
    outputs.clear();
    std::vector<double*> out;
    for (const TensorType& type : *types)
      outputs.push_back({type, std::vector<double>(static_cast<size_t>(type.elements()))});
    for (Array& output : outputs) out.push_back(output.values.data());
    RunReference(op_, call, in, out);
    return "";
  }

  static int64_t Extent(const TensorType& type, int axis) {
    return axis == Factor::kNone ? 1 : type.dims[static_cast<size_t>(axis)];
  }

  static bool Divides(const TensorType& type, int axis, int64_t parts) {
    const int64_t extent = Extent(type, axis);
    return extent == 1 || (extent > 0 && extent % parts == 0);
  }

  // Whether each dimension has as many parts, and one is more than a single row.
  bool Divides(const Factor& factor, int64_t parts) const {
    bool all = true, any = false;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      all = all && Divides(inputs_[i].type, factor.inputs[i], parts);
      any = any || Extent(inputs_[i].type, factor.inputs[i]) > 1;
    }
    if (!any && factor.over != Factor::Over::kNothing) return false;
    for (size_t k = 0; k < whole_.size(); ++k)
      all = all && Divides(whole_[k].type, factor.outputs[k], parts);
    return all;
  }

  static Array Part(const Array& whole, int axis, int64_t part, int64_t parts) {
    const int64_t extent = Extent(whole.type, axis);
    if (extent == 1) return whole;
    return Cut(whole, {axis, part * extent / parts, extent / parts});
  }

  std::string CheckParts(const Factor& factor, int64_t parts) const {
    if (factor.offset_attr != nullptr || !Divides(factor, parts)) return "";
    std::vector<Array> sums;
    for (int64_t part = 0; part < parts; ++part) {
      std::vector<Array> inputs, outputs;
      for (size_t i = 0; i < inputs_.size(); ++i)
        inputs.push_back(Part(inputs_[i], factor.inputs[i], part, parts));
      AttrMap attrs = call_.attrs;
      if (op_.dims_attr != nullptr)
        attrs[op_.dims_attr] = Part(whole_[0], factor.outputs[0], part, parts).type.dims;
      if (op_.draws) inputs.back().values[2] += double(part * whole_[0].type.dims[0] / parts);
      if (std::string wrong = Evaluate(inputs, attrs, outputs); !wrong.empty()) return wrong;
      if (factor.over != Factor::Over::kNothing) {
        AddTo(outputs, factor.over == Factor::Over::kMean ? 1.0 / double(parts) : 1, sums);
      } else if (std::string wrong = ComparePart(factor, outputs, part, parts); !wrong.empty()) {
        return wrong;
      }
    }
    return factor.over == Factor::Over::kNothing ? "" : CompareSums(factor, sums);
  }

  static void AddTo(const std::vector<Array>& outputs, double weight, std::vector<Array>& sums) {
    const bool first = sums.empty();
    if (first) sums = outputs;
    for (size_t k = 0; k < outputs.size(); ++k) {
      for (size_t e = 0; e < outputs[k].values.size(); ++e)
        sums[k].values[e] = (first ? 0 : sums[k].values[e]) + weight * outputs[k].values[e];
    }
  }

  std::string ComparePart(const Factor& factor, const std::vector<Array>& outputs, int64_t part,
                          int64_t parts) const {
    for (size_t k = 0; k < outputs.size(); ++k) {
      const std::string wrong =
          Compare(outputs[k], Part(whole_[k], factor.outputs[k], part, parts), 0);
      if (!wrong.empty()) {
        return fmt::format("axes: output {} of part {} of {} along dimension {} {}", k, part, parts,
                           factor.outputs[k], wrong);
      }
    }
    return "";
  }

  std::string CompareSums(const Factor& factor, const std::vector<Array>& sums) const {
    for (size_t k = 0; k < sums.size(); ++k) {
      const std::string wrong = Compare(sums[k], whole_[k], kRelative);
      if (!wrong.empty()) {
        return fmt::format("axes: output {} summed over dimension {} of input 0 {}", k,
                           factor.inputs[0], wrong);
      }
    }
    return "";
  }

  std::string CheckRows(int axis) const {
    const int64_t extent = whole_[0].type.dims[static_cast<size_t>(axis)];
    for (const Rows& rows : {Rows{axis, 0, extent / 2}, Rows{axis, extent / 2, extent / 2}}) {
      if (rows.count == 0) continue;
      const std::optional<SlicedCall> call = CallForRows(op_, call_, rows);
      if (!call) continue;
      std::vector<Array> inputs = inputs_, outputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (call->inputs[i]) inputs[i] = Cut(inputs[i], *call->inputs[i]);
      }
      if (std::string wrong = Evaluate(inputs, call->attrs, outputs); !wrong.empty()) return wrong;
      const std::string wrong = Compare(outputs[0], Cut(whole_[0], rows), 0);
      if (!wrong.empty())
        return fmt::format("axes: rows {} to {} of dimension {}: the call {}", rows.first,
                           rows.end(), axis, wrong);
    }
    return "";
  }

  const OpDef& op_;
  const OpCase& case_;
  OpCall call_;
  std::vector<Array> inputs_, whole_;
};

}  // namespace

std::string CheckAxes(const OpDef& op, const OpCase& op_case) {
  return AxesProbe(op, op_case).Run();
}

}  // namespace ridge
