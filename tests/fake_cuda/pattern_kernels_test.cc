// Patterns in a GPU's memory: the words are those of the host, and what is wrong is found.
#include "ridge/backend/cuda/pattern_kernels.h"

#include "ridge/core/test_folder.h"
#include "ridge/measure/bench_memory.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

constexpr int64_t kBytes = 2 << 20;  // a page of the fake's
constexpr int64_t kWords = kBytes / 8;

class CudaPatterns : public testing::Test {
 protected:
  CudaPatterns()
      : gpu_(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}}),
        compiler_(cuda::KernelCompiler::Open(gpu_.device->gpu(), folder_.path(),
                                             {.before = {RIDGE_FAKE_CUDA_FOLDER}, .behind = {}})),
        memory_(Allocated(*gpu_.device, kBytes)),
        found_(Allocated(*gpu_.device, sizeof(PatternErrors) * kPatternParts)) {}

  PatternKernels Make(const PatternCall& call) {
    Result<PatternKernels> kernels = cuda::MakeCudaPatternKernels(*gpu_.device, *compiler_, call);
    EXPECT_TRUE(kernels.ok()) << kernels.status().message();
    return std::move(*kernels);
  }
  Stream& stream() { return gpu_.device->stream(0); }
  void Write(const PatternKernels& kernels) {
    void* const to[] = {memory_->data()};
    ASSERT_TRUE(kernels.write->Enqueue(stream(), {{}, to}).ok());
  }
  // All parts together.
  PatternErrors Verify(const PatternKernels& kernels) {
    const void* const in[] = {memory_->data()};
    void* const to[] = {found_->data()};
    EXPECT_TRUE(kernels.verify->Enqueue(stream(), {in, to}).ok());
    std::vector<PatternErrors> parts(kPatternParts);
    stream().Download(parts.data(), found_->data(), sizeof(PatternErrors) * kPatternParts);
    EXPECT_TRUE(stream().Synchronize().ok());
    PatternErrors all;
    for (const PatternErrors& part : parts) {
      all.words += part.words;
      all.first_word = std::min(all.first_word, part.first_word);
    }
    return all;
  }

  const TempFolder folder_;
  FakeGpu gpu_;
  Result<cuda::KernelCompiler> compiler_;
  std::unique_ptr<Memory> memory_, found_;
};

TEST_F(CudaPatterns, HaveTheWordsOfTheHost) {
  for (const MemoryPattern pattern : kMemoryPatterns) {
    const PatternCall call = {pattern, kBytes, /*round=*/3};
    const PatternKernels kernels = Make(call);
    Write(kernels);
    std::vector<uint64_t> words(kWords);
    stream().Download(words.data(), memory_->data(), kBytes);
    ASSERT_TRUE(stream().Synchronize().ok());
    for (size_t i = 0; i < words.size(); ++i)
      ASSERT_EQ(words[i], PatternWord(call, i)) << MemoryPatternName(pattern) << " " << i;
    EXPECT_EQ(Verify(kernels).words, 0);
  }
}

TEST_F(CudaPatterns, CountTheWordsThatChangedAndFindTheFirst) {
  for (const MemoryPattern pattern : {MemoryPattern::kAddress, MemoryPattern::kRandom}) {
    const PatternCall call = {pattern, kBytes, /*round=*/0};
    const PatternKernels kernels = Make(call);
    Write(kernels);
    const uint64_t damaged[] = {PatternWord(call, kWords - 1) ^ 1, PatternWord(call, 777) ^ 1};
    stream().Upload(memory_->data() + 8 * (kWords - 1), &damaged[0], 8);
    stream().Upload(memory_->data() + 8 * 777, &damaged[1], 8);
    const PatternErrors errors = Verify(kernels);
    EXPECT_EQ(errors.words, 2) << MemoryPatternName(pattern);
    EXPECT_EQ(errors.first_word, 777) << MemoryPatternName(pattern);
  }
}

TEST_F(CudaPatterns, FailAsTheDeviceDoes) {
  const Variables failing(Settings{{"RIDGE_FAKE_CUDA_FAIL", "cuLaunchKernel:3:1"}});
  FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}});
  const auto result = BenchMemory(
      *gpu.device,
      [&](const PatternCall& call) {
        return cuda::MakeCudaPatternKernels(*gpu.device, *compiler_, call);
      },
      {kBytes, 1}, nullptr);
  EXPECT_EQ(result.status().message(),
            "cuda:0: cuLaunchKernel failed: CUDA_ERROR_INVALID_VALUE (1)");
}

}  // namespace
}  // namespace ridge::fake_cuda
