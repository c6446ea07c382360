// Tensor: an owned (or shared) row-major array on the host.
//
// For constants, files and test data.  Values of a running step live in the plan's arena, not here.
// Copies share storage; storage is written only through a Tensor that was just made.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ridge/core/shape.h"

namespace ridge {

class Tensor {
 public:
  Tensor() = default;                // empty: no storage, f32[0]
  explicit Tensor(TensorType type);  // zero-filled, 64-byte aligned
  // Adopts bytes that `owner` keeps alive, such as a mapped file. REQUIRES: 64-byte alignment is
  // not assumed; type.bytes() bytes are readable.
  Tensor(TensorType type, const void* data, std::shared_ptr<const void> owner);

  static Tensor FromFloats(Dims dims, std::span<const float> values);
  static Tensor FromInts(Dims dims, std::span<const int64_t> values);  // i64
  static Tensor Scalar(DType dtype, double value);

  const TensorType& type() const { return contents_ == nullptr ? EmptyType() : contents_->type; }
  int64_t elements() const { return type().elements(); }
  int64_t bytes() const { return type().bytes(); }
  const void* data() const { return data_; }
  // REQUIRES: made by Tensor(TensorType) and not yet shared.
  void* mutable_data() { return const_cast<void*>(data_); }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }
  template <typename T>
  T* as_mutable() {
    return static_cast<T*>(mutable_data());
  }
  double at(int64_t index) const { return LoadAsDouble(type().dtype, data_, index); }
  bool same_bits(const Tensor& other) const;

 private:
  struct Contents {
    TensorType type;
    std::shared_ptr<const void> owner;
  };
  static const TensorType& EmptyType();

  // Every value of a graph carries two tensors, most of them empty: those cost nothing.
  const void* data_ = nullptr;
  std::shared_ptr<const Contents> contents_;  // nullptr: empty
};

}  // namespace ridge
