#include "ridge/data/memory_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ridge/core/threads.h"

namespace ridge {
namespace {

// Labels above this are numbers of something else, not classes.
constexpr int64_t kMostClasses = int64_t{1} << 24;

int64_t CountClasses(const Tensor& values) {
  const DType dtype = values.type().dtype;
  if (values.type().rank() != 1 || !IsInteger(dtype)) return 0;
  double least = 0;
  double largest = 0;
  for (int64_t i = 0; i < values.elements(); ++i) {
    least = std::min(least, values.at(i));
    largest = std::max(largest, values.at(i));
  }
  return least < 0 || largest >= kMostClasses ? 0 : static_cast<int64_t>(largest) + 1;
}

Status CheckFirstDims(const std::string& name, const std::vector<NamedTensor>& fields) {
  const auto& [first_name, first] = fields.front();
  for (const auto& [field_name, tensor] : fields) {
    if (tensor.type().rank() == 0) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}: '{}' is a single {}, a field needs one entry a sample", name,
                                field_name, DTypeName(tensor.type().dtype)));
    }
    if (tensor.type().dims[0] == first.type().dims[0]) continue;
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: '{}' is {}, '{}' is {}; the first dimension (samples) must be "
                              "equal",
                              name, first_name, TypeToString(first.type()), field_name,
                              TypeToString(tensor.type())));
  }
  if (first.type().dims[0] > 0) return Status();
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: holds 0 samples, at least 1 is needed", name));
}

}  // namespace

Result<Tensor> MakeTensor(const std::string& where, TensorType type) {
  constexpr int64_t kWorthAsking = 1 << 20;  // asking reads several files of /proc
  const int64_t available = type.bytes() < kWorthAsking ? kWorthAsking : AvailableMemoryBytes();
  if (type.bytes() > available) {
    return Status(ErrorCode::kOutOfMemory,
                  fmt::format("{}: {} needs {} bytes, {} bytes are available", where,
                              TypeToString(type), type.bytes(), available));
  }
  return Tensor(std::move(type));
}

Result<SourcePtr> MemorySource::Create(const std::string& name, std::vector<NamedTensor> fields,
                                       TextLines lines) {
  if (fields.empty()) return Status(ErrorCode::kInvalidData, name + ": holds no arrays");
  RIDGE_RETURN_IF_ERROR(CheckFirstDims(name, fields));
  const int64_t size = fields.front().second.type().dims[0];
  std::vector<Field> descriptions;
  std::vector<Tensor> tensors;
  for (auto& [field_name, tensor] : fields) {
    const TensorType& type = tensor.type();
    const TensorType sample{type.dtype, Dims(type.dims.begin() + 1, type.dims.end())};
    descriptions.push_back({field_name, sample, CountClasses(tensor)});
    tensors.push_back(std::move(tensor));
  }
  return SourcePtr(
      new MemorySource(name, std::move(descriptions), size, std::move(tensors), std::move(lines)));
}

MemorySource::MemorySource(std::string name, std::vector<Field> fields, int64_t size,
                           std::vector<Tensor> tensors, TextLines lines)
    : Source(std::move(name), std::move(fields), size),
      tensors_(std::move(tensors)),
      lines_(std::move(lines)) {}

std::string MemorySource::Origin(int64_t index) const {
  const auto at = static_cast<size_t>(index);
  if (at >= lines_.lines.size()) return Source::Origin(index);
  return fmt::format("{}:{}", lines_.path, lines_.lines[at]);
}

const void* MemorySource::View(int64_t index, int field) const {
  const auto f = static_cast<size_t>(field);
  return tensors_[f].as<char>() + index * fields()[f].type.bytes();
}

Status MemorySource::Read(SampleAt at, int field, std::span<char>, void* out) const {
  const int64_t bytes = fields()[static_cast<size_t>(field)].type.bytes();
  std::memcpy(out, View(at.index, field), static_cast<size_t>(bytes));
  return Status();
}

int64_t MemorySource::resident_bytes() const {
  auto bytes = static_cast<int64_t>(lines_.lines.capacity() * sizeof(uint32_t));
  for (const Tensor& tensor : tensors_) bytes += tensor.bytes();
  return bytes;
}

}  // namespace ridge
