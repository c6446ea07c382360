#include "ridge/core/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace ridge {

const TensorType& Tensor::EmptyType() {
  static const TensorType kType{DType::kF32, {0}};
  return kType;
}

Tensor::Tensor(TensorType type) {
  constexpr std::align_val_t kAlignment{64};
  const auto bytes = static_cast<size_t>(std::max<int64_t>(type.bytes(), 1));
  void* data = ::operator new(bytes, kAlignment);
  std::memset(data, 0, bytes);
  data_ = data;
  std::shared_ptr<const void> owner(
      data, [](const void* p) { ::operator delete(const_cast<void*>(p), kAlignment); });
  contents_ = std::make_shared<Contents>(Contents{std::move(type), std::move(owner), nullptr});
}

Tensor::Tensor(TensorType type, const void* data, std::shared_ptr<const void> owner)
    : data_(data),
      contents_(std::make_shared<Contents>(Contents{std::move(type), std::move(owner), nullptr})) {}

Tensor::Tensor(TensorType type, std::shared_ptr<const TensorSource> source)
    : contents_(std::make_shared<Contents>(Contents{std::move(type), nullptr, std::move(source)})) {
}

void Tensor::CheckInMemory() const {
  RIDGE_CHECK(in_memory(), "a tensor that lies in a file is loaded before it is looked at");
}

Result<Tensor> Tensor::Load() const {
  if (in_memory()) return *this;
  Tensor tensor(type());
  RIDGE_RETURN_IF_ERROR(contents_->source->Read(0, elements(), tensor.mutable_data()));
  return tensor;
}

Status Tensor::Read(int64_t begin, int64_t end, void* to) const {
  if (!in_memory()) return contents_->source->Read(begin, end, to);
  const int64_t width = BytesPerElement(type().dtype);
  if (begin < end) {
    std::memcpy(to, static_cast<const std::byte*>(data_) + begin * width,
                static_cast<size_t>((end - begin) * width));
  }
  return Status();
}

Tensor Tensor::FromFloats(Dims dims, std::span<const float> values) {
  Tensor tensor(TensorType{DType::kF32, std::move(dims)});
  RIDGE_CHECK(tensor.elements() == static_cast<int64_t>(values.size()), "values fill the shape");
  std::copy(values.begin(), values.end(), tensor.as_mutable<float>());
  return tensor;
}

Tensor Tensor::FromInts(Dims dims, std::span<const int64_t> values) {
  Tensor tensor(TensorType{DType::kI64, std::move(dims)});
  RIDGE_CHECK(tensor.elements() == static_cast<int64_t>(values.size()), "values fill the shape");
  std::copy(values.begin(), values.end(), tensor.as_mutable<int64_t>());
  return tensor;
}

Tensor Tensor::Scalar(DType dtype, double value) {
  Tensor tensor(TensorType{dtype, {}});
  StoreFromDouble(dtype, tensor.mutable_data(), 0, value);
  return tensor;
}

bool Tensor::same_bits(const Tensor& other) const {
  if (!(type() == other.type())) return false;
  return bytes() == 0 || data() == other.data() ||
         std::memcmp(data_, other.data_, static_cast<size_t>(bytes())) == 0;
}

}  // namespace ridge
