#include "ridge/train/load/onnx_dims.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/data/batch_spec.h"
#include "ridge/onnx/training/training_info.h"

namespace ridge {
namespace {

std::string InputText(const OnnxValueInfo& info) {
  std::string dims;
  for (const OnnxDim& dim : info.dims) {
    dims += dims.empty() ? "" : ",";
    dims += dim.extent < 0 ? dim.name : fmt::format("{}", dim.extent);
  }
  return fmt::format("input '{}' {}[{}]", info.name, DTypeName(info.dtype), dims);
}

class Binder {
 public:
  Binder(const OnnxModel& model, const ModelRequest& request)
      : model_(model), request_(request), inputs_(model.inputs()), dims_(request.dims) {
    if (!request.use_file_optimizer || !request.training) return;
    for (OnnxValueInfo& info : TrainingStepInputs(model)) inputs_.push_back(std::move(info));
  }

  Result<std::map<std::string, int64_t>> Bind() {
    for (const OnnxValueInfo& info : inputs_) {
      if (!info.supported) continue;  // the import refuses it
      RIDGE_RETURN_IF_ERROR(request_.arrays.empty() ? BindToBatch(info) : BindToArray(info));
    }
    for (const OnnxValueInfo& info : inputs_) RIDGE_RETURN_IF_ERROR(CheckBound(info));
    return std::move(dims_);
  }

 private:
  Status Usage(const std::string& text) const {
    return InvalidArgument(fmt::format("{}: {}", model_.name(), text));
  }

  // --dim has precedence; two sources must agree.
  Status Set(const OnnxValueInfo& info, const OnnxDim& dim, int64_t extent, const char* source) {
    if (dim.extent >= 0) return Status();
    const auto [at, is_new] = dims_.emplace(dim.name, extent);
    if (is_new || at->second == extent) return Status();
    return Usage(
        fmt::format("{}: '{}' is {} by {}, and {} elsewhere. hint: one --dim {}=N "
                    "and inputs that agree with it",
                    InputText(info), dim.name, extent, source, at->second, dim.name));
  }

  Status BindToArray(const OnnxValueInfo& info) {
    for (const auto& [name, tensor] : request_.arrays) {
      if (name != info.name || !info.has_shape) continue;
      const Dims& dims = tensor.type().dims;
      if (dims.size() != info.dims.size()) continue;  // refused with the graph's own type
      for (size_t i = 0; i < dims.size(); ++i)
        RIDGE_RETURN_IF_ERROR(Set(info, info.dims[i], dims[i], "the array given"));
    }
    return Status();
  }

  Status BindToBatch(const OnnxValueInfo& info) {
    if (info.dims.empty()) return Status();
    const OnnxDim& batch = info.dims[0];
    if (batch.extent >= 0 && batch.extent != request_.batch) {
      return Usage(
          fmt::format("{}: the file is written for a batch of {}; --batch is {}. "
                      "hint: --batch {}, or export it with a named first dimension",
                      InputText(info), batch.extent, request_.batch, batch.extent));
    }
    RIDGE_RETURN_IF_ERROR(Set(info, batch, request_.batch, "--batch"));
    const Field* field = FindField(info);
    if (field == nullptr) return Status();
    const Dims dims = AsRank(field->type.dims, info);
    for (size_t i = 1; i < info.dims.size() && dims.size() + 1 == info.dims.size(); ++i)
      RIDGE_RETURN_IF_ERROR(Set(info, info.dims[i], dims[i - 1], "the data"));
    return Status();
  }

  // An image without channels, [28,28], can become [1,28,28]; one with channels last, [28,28,3],
  // becomes [3,28,28].
  static Dims AsRank(Dims dims, const OnnxValueInfo& info) {
    if (dims.size() + 2 == info.dims.size() && info.dims[1].extent == 1)
      dims.insert(dims.begin(), 1);
    if (dims.size() == 3 && info.dims.size() == 4 && info.dims[1].extent == dims[2] &&
        info.dims[1].extent != dims[0])
      std::rotate(dims.begin(), dims.begin() + 2, dims.end());
    return dims;
  }

  static bool CanHold(const Field& field, const OnnxValueInfo& info) {
    const Dims dims = AsRank(field.type.dims, info);
    if (dims.size() + 1 != info.dims.size()) return false;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (info.dims[i + 1].extent >= 0 && info.dims[i + 1].extent != dims[i]) return false;
    }
    return IsFloat(info.dtype) || !IsFloat(field.type.dtype);
  }

  const Field* FindField(const OnnxValueInfo& info) const {
    if (const Field* named = FindFieldByName(info.name, request_.fields)) return named;
    const Field* found = nullptr;
    for (const Field& field : request_.fields) {
      if (!CanHold(field, info) || IsOthers(field)) continue;
      if (found != nullptr) return nullptr;
      found = &field;
    }
    return found;
  }

  bool IsOthers(const Field& field) const {
    return std::any_of(inputs_.begin(), inputs_.end(), [&](const OnnxValueInfo& info) {
      return FindFieldByName(info.name, request_.fields) == &field;
    });
  }

  Status CheckBound(const OnnxValueInfo& info) const {
    for (const OnnxDim& dim : info.dims) {
      if (dim.extent >= 0 || dims_.contains(dim.name) || IsGiven(info.name)) continue;
      return Usage(
          fmt::format("{}: dimension '{}' has no size, and neither --batch nor the data "
                      "give one. hint: --dim {}=N",
                      InputText(info), dim.name, dim.name));
    }
    return Status();
  }

  bool IsGiven(const std::string& name) const {
    return std::any_of(request_.arrays.begin(), request_.arrays.end(),
                       [&](const NamedTensor& array) { return array.first == name; });
  }

  const OnnxModel& model_;
  const ModelRequest& request_;
  std::vector<OnnxValueInfo> inputs_;  // of the graph, and of the file's own training step
  std::map<std::string, int64_t> dims_;
};

}  // namespace

Result<std::map<std::string, int64_t>> BindOnnxDims(const OnnxModel& model,
                                                    const ModelRequest& request) {
  return Binder(model, request).Bind();
}

}  // namespace ridge
