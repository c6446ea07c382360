// Tensor: an owned (or shared) row-major array on the host.
//
// For constants, files and test data.  Values of a running step live in the plan's arena, not here.
// Copies share storage; storage is written only through a Tensor that was just made.
//
// The numbers of large weights stay in their file (tensor_file.h): such a tensor has a type and can
// be Read() or Load()ed, and its data() has no address.  Constants of a graph are in memory.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ridge/core/shape.h"
#include "ridge/core/status.h"

namespace ridge {

// Where the numbers of a tensor are until they are wanted.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // Puts elements [begin, end), row-major, to an address.  Thread-safe.  Gives the same bits each
  // time, or fails: what was written means nothing then.
  virtual Status Read(int64_t begin, int64_t end, void* to) const = 0;
};

class Tensor {
 public:
  Tensor() = default;                // empty: no storage, f32[0]
  explicit Tensor(TensorType type);  // zero-filled, 64-byte aligned
  // Adopts bytes that `owner` keeps alive, such as a mapped file. REQUIRES: 64-byte alignment is
  // not assumed; type.bytes() bytes are readable.
  Tensor(TensorType type, const void* data, std::shared_ptr<const void> owner);
  // Numbers that are read when they are wanted.
  Tensor(TensorType type, std::shared_ptr<const TensorSource> source);

  static Tensor FromFloats(Dims dims, std::span<const float> values);
  static Tensor FromInts(Dims dims, std::span<const int64_t> values);  // i64
  static Tensor Scalar(DType dtype, double value);

  const TensorType& type() const { return contents_ == nullptr ? EmptyType() : contents_->type; }
  int64_t elements() const { return type().elements(); }
  int64_t bytes() const { return type().bytes(); }
  bool in_memory() const { return contents_ == nullptr || contents_->source == nullptr; }
  // Itself, or a copy in memory of what a source gives.  The numbers are read at each call.
  Result<Tensor> Load() const;
  // Elements [begin, end), from memory or from the source.
  Status Read(int64_t begin, int64_t end, void* to) const;

  // All below REQUIRE: in_memory().
  const void* data() const {
    if (data_ == nullptr) CheckInMemory();
    return data_;
  }
  // REQUIRES: made by Tensor(TensorType) and not yet shared.
  void* mutable_data() { return const_cast<void*>(data_); }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data());
  }
  template <typename T>
  T* as_mutable() {
    return static_cast<T*>(mutable_data());
  }
  double at(int64_t index) const { return LoadAsDouble(type().dtype, data(), index); }
  bool same_bits(const Tensor& other) const;

 private:
  struct Contents {
    TensorType type;
    std::shared_ptr<const void> owner;
    std::shared_ptr<const TensorSource> source;  // nullptr: in memory
  };
  static const TensorType& EmptyType();
  void CheckInMemory() const;

  // Every value of a graph carries two tensors, most of them empty: those cost nothing.
  const void* data_ = nullptr;
  std::shared_ptr<const Contents> contents_;  // nullptr: empty
};

}  // namespace ridge
