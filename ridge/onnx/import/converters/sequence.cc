// ONNX converters: sequences of tensors, and optionals that hold a tensor.
//
// A sequence is known element by element before planning, so nothing of it is left in the graph:
// the importer keeps the elements beside a constant that stands for the list
// (OnnxImporter::AddSequence).  PyTorch's exporters write them for split and chunk, and for lists
// that grow in a loop.
#include <fmt/format.h>

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/import/converter.h"
#include "ridge/onnx/import/converters/shape.h"
#include "ridge/onnx/import/importer.h"

namespace ridge {

// A list costs as much as it is long: a loop that grows one must not fill the memory.
Result<Value> OnnxImporter::AddSequence(std::vector<Value> elements) {
  RIDGE_RETURN_IF_ERROR(ChargeUnrollBudget(static_cast<int64_t>(elements.size()) / 16 + 1));
  const Value sequence = builder_.Constant(Tensor::Scalar(DType::kBool, 0));
  RIDGE_RETURN_IF_ERROR(builder_.status());
  sequences_[sequence.id] = std::move(elements);
  return sequence;
}

const std::vector<Value>* OnnxImporter::SequenceOf(Value value) const {
  const auto found = sequences_.find(value.id);
  return found == sequences_.end() ? nullptr : &found->second;
}

namespace {

Result<Value> SetSequence(OnnxNode& n, std::vector<Value> elements) {
  return n.importer().AddSequence(std::move(elements));
}

Result<Value> ConvertSequenceConstruct(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(n.input_count()));
  return SetSequence(n, n.inputs());
}

Result<Value> ConvertSequenceEmpty(OnnxNode& n) { return SetSequence(n, {}); }

// The position in input `i` of a list of `size` that has `places` of them; negative ones count from
// the end.
Result<size_t> Position(OnnxNode& n, size_t i, size_t size, size_t places) {
  RIDGE_ASSIGN_OR_RETURN(const int64_t given, n.ConstantInt(i, "the position"));
  const auto length = static_cast<int64_t>(size), count = static_cast<int64_t>(places);
  if (given >= -length && given < count)
    return static_cast<size_t>(given < 0 ? given + length : given);
  return n.Error(fmt::format("the position is {}; the sequence has {} elements", given, size));
}

Result<Value> ConvertSequenceAt(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> list, n.Sequence(0));
  RIDGE_ASSIGN_OR_RETURN(const size_t at, Position(n, 1, list.size(), list.size()));
  return list[at];
}

Result<Value> ConvertSequenceInsert(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<Value> list, n.Sequence(0));
  size_t at = list.size();
  if (n.has_input(2)) {
    RIDGE_ASSIGN_OR_RETURN(at, Position(n, 2, list.size(), list.size() + 1));
  }
  list.insert(list.begin() + static_cast<int64_t>(at), n[1]);
  return SetSequence(n, std::move(list));
}

Result<Value> ConvertSequenceErase(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<Value> list, n.Sequence(0));
  if (list.empty()) return n.Error("the sequence is empty; there is nothing to erase");
  size_t at = list.size() - 1;
  if (n.has_input(1)) {
    RIDGE_ASSIGN_OR_RETURN(at, Position(n, 1, list.size(), list.size()));
  }
  list.erase(list.begin() + static_cast<int64_t>(at));
  return SetSequence(n, std::move(list));
}

Result<Value> ConvertSequenceLength(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> list, n.Sequence(0));
  return n.b().Constant(Tensor::Scalar(DType::kI64, static_cast<double>(list.size())));
}

// `part` with an axis of extent 1 at `axis`.
Result<Value> Widened(OnnxNode& n, Value part, int64_t axis) {
  Dims dims = part.dims();
  RIDGE_ASSIGN_OR_RETURN(const int64_t at, n.Axis(axis, static_cast<int>(dims.size()) + 1));
  dims.insert(dims.begin() + at, 1);
  for (const int64_t extent : dims) {
    if (extent == 0) return n.Unsupported("stacks tensors without elements");
  }
  return Reshape(part, dims);
}

Result<Value> ConvertConcatFromSequence(OnnxNode& n) {
  RIDGE_ASSIGN_OR_RETURN(std::vector<Value> parts, n.Sequence(0));
  if (parts.empty()) return n.Error("the sequence is empty; its elements can't be joined");
  const bool stacks = n.integer("new_axis", 0) != 0;
  const int rank = static_cast<int>(parts[0].dims().size()) + (stacks ? 1 : 0);
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis, n.Axis(n.integer("axis", 0), rank));
  for (Value& part : parts) {
    if (!stacks) continue;
    RIDGE_ASSIGN_OR_RETURN(part, Widened(n, part, axis));
  }
  return parts.size() == 1 ? parts[0] : Concat(parts, axis);
}

// Sizes along the axis: a list of them, one size for all but a smaller last one, or 1.
Result<std::vector<int64_t>> PartSizes(OnnxNode& n, int64_t extent) {
  int64_t size = 1;
  if (n.has_input(1)) {
    RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> given, n.ConstantInts(1, "split"));
    if (!n.dims(1).empty()) return given;
    RIDGE_ASSIGN_OR_RETURN(size, n.ConstantInt(1, "split"));
  }
  if (size < 1) return n.Error(fmt::format("split is {}; it must be positive", size));
  const int64_t count = extent / size + (extent % size != 0 ? 1 : 0);
  RIDGE_RETURN_IF_ERROR(n.importer().ChargeUnrollBudget(count));
  std::vector<int64_t> sizes(static_cast<size_t>(count), size);
  if (extent % size != 0) sizes.back() = extent % size;
  return sizes;
}

Result<Value> ConvertSplitToSequence(OnnxNode& n) {
  const Dims dims = n.dims(0);
  RIDGE_ASSIGN_OR_RETURN(const int64_t axis,
                         n.Axis(n.integer("axis", 0), static_cast<int>(dims.size())));
  const int64_t extent = dims[static_cast<size_t>(axis)];
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, PartSizes(n, extent));
  const bool drops_axis = !n.has_input(1) && n.integer("keepdims", 1) == 0;
  Dims narrow = dims;
  narrow.erase(narrow.begin() + axis);
  const Value x = n[0];
  std::vector<Value> parts;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > extent - begin) break;
    const Value part = Slice(x, axis, begin, begin + size, 1);
    parts.push_back(drops_axis ? Reshape(part, narrow) : part);
    begin += size;
  }
  if (parts.size() != sizes.size() || begin != extent)
    return n.Error(fmt::format("split is {} for extent {}; the sizes must add up to the extent",
                               DimsToString(sizes), extent));
  return SetSequence(n, std::move(parts));
}

// The body sees an element of each sequence, and the tensors whole.
Status ConvertSequenceMap(OnnxNode& n) {
  RIDGE_RETURN_IF_ERROR(n.Need(n.input_count() == 0 ? 1 : n.input_count()));
  const onnx::GraphProto* body = n.subgraph("body");
  if (body == nullptr) return n.Error("has no attribute 'body', a graph");
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> first, n.Sequence(0));
  std::vector<std::vector<Value>> results(n.output_count());
  for (size_t k = 0; k < first.size(); ++k) {
    std::vector<Value> inputs;
    for (size_t i = 0; i < n.input_count(); ++i) {
      inputs.push_back(n.TensorOrSequence(i));
      if (!n.IsSequence(i)) continue;
      RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> list, n.Sequence(i));
      if (list.size() != first.size())
        return n.Error(fmt::format("sequences have {} and {} elements; they must be equally long",
                                   first.size(), list.size()));
      inputs.back() = list[k];
    }
    RIDGE_RETURN_IF_ERROR(n.importer().ChargeUnrollBudget(1));
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Value> outputs, n.importer().Inline(*body, inputs));
    if (outputs.size() < results.size()) return n.Error("the body gives too few outputs");
    for (size_t i = 0; i < results.size(); ++i) results[i].push_back(outputs[i]);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    RIDGE_ASSIGN_OR_RETURN(const Value list, n.importer().AddSequence(std::move(results[i])));
    n.Set(i, list);
  }
  return n.status();
}

// An optional that holds something is that thing.
Result<Value> ConvertOptional(OnnxNode& n) {
  if (!n.has_input(0)) return n.Unsupported("an optional without contents is not read");
  return n.TensorOrSequence(0);
}

Result<Value> ConvertOptionalHasElement(OnnxNode& n) {
  return n.b().Constant(Tensor::Scalar(DType::kBool, n.has_input(0) ? 1 : 0));
}

Result<Value> ConvertOptionalGetElement(OnnxNode& n) { return n.TensorOrSequence(0); }

constexpr OnnxConverter kConverters[] = {
    {"", "ConcatFromSequence", ConvertConcatFromSequence, 1},
    {"", "Optional", ConvertOptional},
    {"", "OptionalGetElement", ConvertOptionalGetElement, 1},
    {"", "OptionalHasElement", ConvertOptionalHasElement},
    {"", "SequenceAt", ConvertSequenceAt, 2},
    {"", "SequenceConstruct", ConvertSequenceConstruct},
    {"", "SequenceEmpty", ConvertSequenceEmpty},
    {"", "SequenceErase", ConvertSequenceErase, 1},
    {"", "SequenceInsert", ConvertSequenceInsert, 2},
    {"", "SequenceLength", ConvertSequenceLength, 1},
    {"", "SequenceMap", ConvertSequenceMap},
    {"", "SplitToSequence", ConvertSplitToSequence, 1},
};

}  // namespace

std::span<const OnnxConverter> OnnxSequenceConverters() { return kConverters; }

}  // namespace ridge
