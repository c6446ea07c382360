#include "ridge/onnx/import/node.h"

#include <fmt/format.h>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/random.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/importer.h"

namespace ridge {

OnnxNode::OnnxNode(OnnxImporter& importer, const onnx::NodeProto& proto, int64_t opset)
    : importer_(importer), proto_(proto), opset_(opset) {}

GraphBuilder& OnnxNode::b() { return importer_.b(); }
const std::string& OnnxNode::op_type() const { return proto_.op_type(); }
bool OnnxNode::ok() const { return importer_.b().ok(); }
Status OnnxNode::status() const { return importer_.b().status(); }
void OnnxNode::Fail(Status status) { importer_.b().Fail(std::move(status)); }

std::string OnnxNode::where() const { return OnnxWhere(proto_); }

Status OnnxNode::Error(const std::string& text) const {
  return Status(ErrorCode::kInvalidModel, where() + ": " + text);
}

Status OnnxNode::Unsupported(const std::string& text) const {
  return Status(ErrorCode::kUnsupported, where() + ": " + text);
}

size_t OnnxNode::input_count() const {
  int count = proto_.input_size();
  while (count > 0 && proto_.input(count - 1).empty()) --count;
  return static_cast<size_t>(count);
}

bool OnnxNode::has_input(size_t i) const {
  return i < static_cast<size_t>(proto_.input_size()) && !proto_.input(static_cast<int>(i)).empty();
}

Value OnnxNode::operator[](size_t i) {
  const Value value = TensorOrSequence(i);
  if (importer_.SequenceOf(value) == nullptr) return value;
  Fail(Error(fmt::format("input {} '{}' is a sequence of tensors; it must be a tensor", i,
                         proto_.input(static_cast<int>(i)))));
  return {};
}

bool OnnxNode::IsSequence(size_t i) { return importer_.SequenceOf(TensorOrSequence(i)) != nullptr; }

Result<std::vector<Value>> OnnxNode::Sequence(size_t i) {
  const std::vector<Value>* elements = importer_.SequenceOf(TensorOrSequence(i));
  RIDGE_RETURN_IF_ERROR(status());
  if (elements != nullptr) return *elements;
  return Error(fmt::format("input {} '{}' is a tensor; it must be a sequence of tensors", i,
                           has_input(i) ? proto_.input(static_cast<int>(i)) : std::string()));
}

Value OnnxNode::TensorOrSequence(size_t i) {
  if (!has_input(i)) return {};
  const std::string& name = proto_.input(static_cast<int>(i));
  const Value value = importer_.ValueOf(name);
  if (!value.valid() && importer_.b().ok()) {
    Fail(
        Error(fmt::format("input {} '{}' is made by no node before it, and is neither an input "
                          "nor an initializer",
                          i, name)));
  }
  return value;
}

std::vector<Value> OnnxNode::inputs() {
  std::vector<Value> values(input_count());
  for (size_t i = 0; i < values.size(); ++i) values[i] = (*this)[i];
  return values;
}

Status OnnxNode::Need(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!has_input(i)) {
      return Error(fmt::format("has no input {}; {} needs {}", i, op_type(), count));
    }
    if (importer_.Find(proto_.input(static_cast<int>(i))) == nullptr) {
      (*this)[i];
      return status();
    }
  }
  return Status();
}

TensorType OnnxNode::type(size_t i) {
  if (!has_input(i)) return TensorType{DType::kF32, {}};
  const OnnxBinding* binding = importer_.Find(proto_.input(static_cast<int>(i)));
  if (binding == nullptr) return TensorType{DType::kF32, {}};
  if (binding->value.valid()) return binding->value.type();
  if (binding->initializer != nullptr) return binding->initializer->type();
  return TensorType{DType::kF32, {}};
}

Value OnnxNode::Statistic(size_t i) {
  if (!has_input(i)) return {};
  return importer_.StatisticOf(proto_.input(static_cast<int>(i)));
}

const Tensor* OnnxNode::ConstantInput(size_t i) {
  if (!has_input(i)) return nullptr;
  return importer_.ConstantOf(proto_.input(static_cast<int>(i)));
}

const Tensor* OnnxNode::FixedInput(size_t i) {
  if (!has_input(i)) return nullptr;
  return importer_.FixedOf(proto_.input(static_cast<int>(i)));
}

namespace {

Status NotConstant(const OnnxNode& node, size_t i, const char* what) {
  return node.Unsupported(fmt::format(
      "{} (input {}, '{}') depends on data; it must be known before planning", what, i,
      static_cast<int>(i) < node.proto().input_size() ? node.proto().input(static_cast<int>(i))
                                                      : std::string()));
}

// Lists longer than this are no shapes, axes or scales.
constexpr int64_t kMostConstant = int64_t{1} << 22;

}  // namespace

Result<std::vector<int64_t>> OnnxNode::ConstantInts(size_t i, const char* what) {
  const Tensor* tensor = ConstantInput(i);
  if (tensor == nullptr || tensor->elements() > kMostConstant) return NotConstant(*this, i, what);
  std::vector<int64_t> values;
  for (int64_t k = 0; k < tensor->elements(); ++k) {
    int64_t value = 0;
    if (tensor->type().dtype == DType::kI64) {
      value = tensor->as<int64_t>()[k];
    } else {
      StoreFromDouble(DType::kI64, &value, 0, tensor->at(k));
    }
    values.push_back(value);
  }
  return values;
}

Result<std::vector<double>> OnnxNode::ConstantNumbers(size_t i, const char* what) {
  const Tensor* tensor = ConstantInput(i);
  if (tensor == nullptr || tensor->elements() > kMostConstant) return NotConstant(*this, i, what);
  std::vector<double> values;
  for (int64_t k = 0; k < tensor->elements(); ++k) values.push_back(tensor->at(k));
  return values;
}

Result<int64_t> OnnxNode::ConstantInt(size_t i, const char* what) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<int64_t> values, ConstantInts(i, what));
  if (values.size() == 1) return values[0];
  return Error(fmt::format("{} has {} elements; it must be one number", what, values.size()));
}

Result<double> OnnxNode::ConstantNumber(size_t i, const char* what) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<double> values, ConstantNumbers(i, what));
  if (values.size() == 1) return values[0];
  return Error(fmt::format("{} has {} elements; it must be one number", what, values.size()));
}

const onnx::AttributeProto* OnnxNode::Find(const std::string& name, int type) {
  for (const onnx::AttributeProto& attr : proto_.attribute()) {
    if (attr.name() != name) continue;
    if (attr.type() == type || attr.type() == onnx::AttributeProto::UNDEFINED) return &attr;
    Fail(Error(fmt::format("attribute '{}' has type {}; it must be {}", name,
                           onnx::AttributeProto::AttributeType_Name(attr.type()),
                           onnx::AttributeProto::AttributeType_Name(
                               static_cast<onnx::AttributeProto::AttributeType>(type)))));
    return nullptr;
  }
  return nullptr;
}

bool OnnxNode::has_attr(const std::string& name) const {
  for (const onnx::AttributeProto& attr : proto_.attribute()) {
    if (attr.name() == name) return true;
  }
  return false;
}

int64_t OnnxNode::integer(const std::string& name, int64_t fallback) {
  const auto* attr = Find(name, onnx::AttributeProto::INT);
  return attr == nullptr ? fallback : attr->i();
}

double OnnxNode::number(const std::string& name, double fallback) {
  const auto* attr = Find(name, onnx::AttributeProto::FLOAT);
  return attr == nullptr ? fallback : static_cast<double>(attr->f());
}

std::string OnnxNode::text(const std::string& name, const std::string& fallback) {
  const auto* attr = Find(name, onnx::AttributeProto::STRING);
  return attr == nullptr ? fallback : attr->s();
}

std::vector<int64_t> OnnxNode::integers(const std::string& name, std::vector<int64_t> fallback) {
  const auto* attr = Find(name, onnx::AttributeProto::INTS);
  if (attr == nullptr) return fallback;
  return {attr->ints().begin(), attr->ints().end()};
}

std::vector<double> OnnxNode::numbers(const std::string& name, std::vector<double> fallback) {
  const auto* attr = Find(name, onnx::AttributeProto::FLOATS);
  if (attr == nullptr) return fallback;
  return {attr->floats().begin(), attr->floats().end()};
}

std::vector<std::string> OnnxNode::texts(const std::string& name) {
  const auto* attr = Find(name, onnx::AttributeProto::STRINGS);
  if (attr == nullptr) return {};
  return {attr->strings().begin(), attr->strings().end()};
}

Result<Tensor> OnnxNode::tensor(const std::string& name) {
  const auto* attr = Find(name, onnx::AttributeProto::TENSOR);
  if (attr == nullptr) return Error(fmt::format("has no attribute '{}', a tensor", name));
  Result<Tensor> tensor = CopyTensor(attr->t(), importer_.model().external_files());
  if (!tensor.ok()) {
    return Status(tensor.status().code(), where() + ": " + tensor.status().message());
  }
  return tensor;
}

const onnx::GraphProto* OnnxNode::subgraph(const std::string& name) const {
  for (const onnx::AttributeProto& attr : proto_.attribute()) {
    if (attr.name() == name && attr.has_g()) return &attr.g();
  }
  return nullptr;
}

Result<int64_t> OnnxNode::Axis(int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
  return Error(fmt::format("axis is {} but the input has rank {}; it must be in [{}, {}]", axis,
                           rank, -rank, rank - 1));
}

Result<std::vector<int64_t>> OnnxNode::Axes(const char* attr, size_t i, int rank,
                                            std::vector<int64_t> fallback) {
  std::vector<int64_t> axes = std::move(fallback);
  if (has_attr(attr)) {
    axes = integers(attr);
  } else if (has_input(i)) {
    RIDGE_ASSIGN_OR_RETURN(axes, ConstantInts(i, attr));
  }
  for (int64_t& axis : axes) {
    RIDGE_ASSIGN_OR_RETURN(axis, Axis(axis, rank));
  }
  return axes;
}

size_t OnnxNode::output_count() const { return static_cast<size_t>(proto_.output_size()); }

bool OnnxNode::wants(size_t i) const {
  return i < output_count() && !proto_.output(static_cast<int>(i)).empty();
}

void OnnxNode::Set(size_t i, Value v) {
  if (wants(i) && ok() && v.valid()) importer_.Bind(proto_.output(static_cast<int>(i)), v);
}

bool OnnxNode::training() const { return importer_.options().training; }

bool OnnxNode::batch_norm_frozen() const {
  return importer_.options().batch_norm == OnnxBatchNorm::kFrozen;
}

Value OnnxNode::Rng() { return importer_.Rng(); }

int64_t OnnxNode::Stream() const {
  const std::string& output = proto_.output_size() > 0 ? proto_.output(0) : proto_.name();
  return static_cast<int64_t>(StableHash(output) & 0xFFFFFFFF);
}

}  // namespace ridge
