// Reorders between the layouts of tensors, on the host.
#include <gtest/gtest.h>

#include <cstring>

#include "ridge/backend/cpu/host_device.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/backend/reference/reference_backend.h"
#include "tests/cuda_text/text_backend.h"

namespace ridge::cuda_text {
namespace {

// Around the tile of 64 or 32 elements, and with few channels or positions.
std::vector<TensorType> Types() {
  std::vector<TensorType> types;
  for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const Dims& dims : {Dims{2, 3, 5, 7}, Dims{2, 64, 8, 8}, Dims{1, 65, 3, 21},
                             Dims{3, 33, 32}, Dims{1, 31, 3, 3, 4}, Dims{2, 70, 1, 2}})
      types.push_back({dtype, dims});
  }
  return types;
}

Tensor Numbered(const TensorType& type) {
  Tensor tensor(type);
  for (int64_t i = 0; i < type.elements(); ++i)
    StoreFromDouble(type.dtype, tensor.mutable_data(), i, static_cast<double>(i % 251));
  return tensor;
}

// Both orders of blocks and threads leave the same bytes in a result that begins as 0xFF.
Tensor Reordered(Backend& backend, const Tensor& from, LayoutId layout) {
  const LayoutId to = layout == kRowMajor ? cuda::kChannelsLast : kRowMajor;
  const KernelChoice choice = backend.Reorder(from.type(), layout, to);
  const auto kernel = backend.CreateReorder(from.type(), choice);
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  const auto bytes = static_cast<size_t>(from.bytes());
  Tensor forward(from.type()), backward(from.type()), workspace({DType::kU8, {0}});
  for (Tensor* result : {&forward, &backward}) {
    const void* const in = from.data();
    void* const out = std::memset(result->mutable_data(), 0xFF, bytes);
    const Status status = cpu::RunOnHost(**kernel, {{&in, 1}, {&out, 1}, workspace.mutable_data()});
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(std::memcmp(forward.data(), backward.data(), bytes), 0) << TypeToString(from.type());
  return backward;
}

// Element c of position p of sample n lies at (n * positions + p) * channels + c.
void ExpectChannelsLast(const Tensor& from, const Tensor& stored) {
  const TensorType& type = from.type();
  const int64_t channels = type.dims[1], positions = type.elements() / type.dims[0] / channels;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const int64_t n = i / positions / channels, c = i / positions % channels, p = i % positions;
    ASSERT_EQ(stored.at((n * positions + p) * channels + c), from.at(i))
        << TypeToString(type) << " element " << i;
  }
}

TEST(CudaText, ReordersPlaceChannelsLastAndBack) {
  std::vector<std::string> sources;
  for (const TensorType& type : Types()) {
    for (const LayoutId from : {kRowMajor, cuda::kChannelsLast})
      sources.push_back(cuda::ReorderText(type, from).source);
  }
  const auto program = TextProgram::Compile(sources);
  ASSERT_TRUE(program.ok()) << program.status().message();
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  const std::unique_ptr<Backend> backend = MakeTextBackend(*reference, **program);
  for (const TensorType& type : Types()) {
    const Tensor from = Numbered(type);
    const Tensor stored = Reordered(*backend, from, kRowMajor);
    ExpectChannelsLast(from, stored);
    const Tensor back = Reordered(*backend, stored, cuda::kChannelsLast);
    EXPECT_EQ(std::memcmp(from.data(), back.data(), static_cast<size_t>(type.bytes())), 0)
        << TypeToString(type);
  }
}

}  // namespace
}  // namespace ridge::cuda_text
