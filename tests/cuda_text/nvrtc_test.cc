// What NVIDIA's compiler says of the kernels' texts, where it is installed: a call of each operator
// for each architecture, and the registers that threads take.
//
//   RIDGE_CUDA_TEXT_WHOLE=1    a call of each operator and dtypes
#include "ridge/backend/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "ridge/backend/cuda/pattern_kernels.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"
#include "tests/cuda_text/case_kernels.h"

namespace ridge::cuda_text {
namespace {

// Of a block, on all architectures that are compiled for; threads get them by eights.
constexpr int kMostRegisters = 65536;

// As ptxas -v says.
struct Resources {
  std::string kernel;
  int registers = 0, spilled_bytes = 0;
};

// The number in front of `words`.
int NumberBefore(const std::string& line, const std::string& words) {
  size_t at = line.find(words);
  while (at > 0 && std::isdigit(static_cast<unsigned char>(line[at - 1])) != 0) --at;
  return std::atoi(line.c_str() + at);
}

std::vector<Resources> ResourcesOf(const std::string& log) {
  const std::string properties = "Function properties for ";
  std::vector<Resources> found;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find(properties);
    if (at != std::string::npos) found.push_back({line.substr(at + properties.size()), 0, 0});
    if (found.empty()) continue;
    if (line.find(" bytes spill stores") != std::string::npos)
      found.back().spilled_bytes = NumberBefore(line, " bytes spill stores");
    if (line.find(" registers") != std::string::npos)
      found.back().registers = NumberBefore(line, " registers");
  }
  return found;
}

// One program of all sources, each in a namespace of its own: its kernels' names are
// "op_3_softmax".
std::string OneProgram(const std::vector<CaseKernel>& kernels) {
  std::string text = "#define RIDGE_KERNEL extern \"C\" __global__\n";
  text += cuda::Prelude();
  static const std::regex name(R"((RIDGE_KERNEL (?:__launch_bounds__\(.*?\) )?void )(\w+)\()");
  for (size_t k = 0; k < kernels.size(); ++k) {
    const std::string own = "$1" + kernels[k].op->name + "_" + std::to_string(k) + "_$2(";
    text += "namespace n" + std::to_string(k) + " {\n" +
            std::regex_replace(kernels[k].text.source, name, own) + "\n}\n";
  }
  return text;
}

// Threads of a block, by the kernel's name in the program.
std::map<std::string, int> ThreadsOf(const std::vector<CaseKernel>& kernels) {
  std::map<std::string, int> threads;
  for (size_t k = 0; k < kernels.size(); ++k) {
    for (const cuda::Launch& launch : kernels[k].text.launches) {
      int& most = threads[kernels[k].op->name + "_" + std::to_string(k) + "_" + launch.function];
      most = std::max(most, launch.threads);
    }
  }
  return threads;
}

// The first call of each operator and layout, or of those and dtypes.
std::vector<CaseKernel> FirstOfEach(const std::vector<CaseKernel>& kernels, bool by_dtypes) {
  std::vector<CaseKernel> kept;
  std::set<std::string> keys;
  for (const CaseKernel& kernel : kernels) {
    std::string key = kernel.op->name + " " + cuda::LayoutNameOf(kernel.layout);
    for (const TensorType& type : kernel.call.inputs) {
      if (by_dtypes) key += std::string(" ") + DTypeName(type.dtype);
    }
    if (!kernel.text.launches.empty() && keys.insert(key).second) kept.push_back(kernel);
  }
  return kept;
}

void ExpectNoSpills(const cuda::Nvrtc& nvrtc, const std::string& architecture,
                    const std::vector<CaseKernel>& kernels) {
  const Result<cuda::Cubin> cubin =
      nvrtc.Compile(OneProgram(kernels), architecture, {"--ptxas-options=-v"});
  ASSERT_TRUE(cubin.ok()) << cubin.status().message();
  const std::vector<Resources> found = ResourcesOf(cubin->log);
  EXPECT_GE(found.size(), kernels.size()) << cubin->log.substr(0, 2000);
  const std::map<std::string, int> threads = ThreadsOf(kernels);
  int most = 0;
  for (const Resources& one : found) {
    EXPECT_EQ(one.spilled_bytes, 0) << architecture << ": " << one.kernel;
    const auto launched = threads.find(one.kernel);  // a text may have kernels for other calls
    const int block = launched == threads.end() ? 0 : launched->second;
    EXPECT_LE(RoundUp(one.registers, 8) * block, kMostRegisters)
        << architecture << ": " << one.kernel;
    most = std::max(most, one.registers);
  }
  std::printf("%s: %zu calls, %zu kernels, %zu bytes, at most %d registers\n", architecture.c_str(),
              kernels.size(), found.size(), cubin->code.size(), most);
}

TEST(CudaTextNvrtc, EveryOperatorCompilesWithoutSpillsAndCanBeLaunched) {
  const Result<cuda::Nvrtc> nvrtc = cuda::Nvrtc::Open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const std::vector<CaseKernel> all = KernelsOfCases().kernels;
  const bool whole = std::getenv("RIDGE_CUDA_TEXT_WHOLE") != nullptr;
  std::printf("NVRTC %s\n", nvrtc->version().c_str());
  for (const char* architecture : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
    ExpectNoSpills(*nvrtc, architecture, FirstOfEach(all, /*by_dtypes=*/whole));
  }
}

TEST(CudaTextNvrtc, PatternsOfMemoryCompile) {
  const Result<cuda::Nvrtc> nvrtc = cuda::Nvrtc::Open();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  for (const MemoryPattern pattern : kMemoryPatterns) {
    const std::string source =
        std::string(cuda::Prelude()) + cuda::PatternText({pattern, 4096, /*round=*/70}).source;
    for (const char* architecture : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
      const Result<cuda::Cubin> cubin =
          nvrtc->Compile(source, architecture, {"--ptxas-options=-v"});
      ASSERT_TRUE(cubin.ok()) << cubin.status().message();
      for (const Resources& one : ResourcesOf(cubin->log)) EXPECT_EQ(one.spilled_bytes, 0);
    }
  }
}

}  // namespace
}  // namespace ridge::cuda_text
