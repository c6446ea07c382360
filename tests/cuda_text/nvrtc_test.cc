// What NVIDIA's compiler says of the kernels' texts, where it is installed: a call of each
// operator, layout and set of launched functions for each architecture, and the registers that
// threads take, against registers.txt.
//
//   RIDGE_CUDA_TEXT_WHOLE=1    of each dtypes, too: rows are equal, else no larger
//   RIDGE_CUDA_TEXT_WRITE=1    writes registers.txt
#include "ridge/backend/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "ridge/backend/cuda/pattern_kernels.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"
#include "tests/cuda_text/case_kernels.h"
#include "tests/cuda_text/registers.h"

namespace ridge::cuda_text {
namespace {

// Of a block, on all architectures that are compiled for; threads get them by eights.
constexpr int kMostRegisters = 65536;

// A kernel, as ptxas -v says.
struct Compiled {
  std::string kernel;
  int registers = 0, spilled_bytes = 0;
};

// The working folder where nobody says another.
std::string SourceFolder() {
  const char* const source = std::getenv("RIDGE_SOURCE_DIR");
  return source == nullptr ? "." : source;
}

// The system's, else that of scripts/setup.sh --test-tools.
Result<cuda::Nvrtc> OpenNvrtc() {
  cuda::LibrarySearch search = cuda::SearchForToolkit();
  search.behind.push_back(SourceFolder() + "/build/deps/nvrtc/nvidia/cu13/lib");
  return cuda::Nvrtc::Open(search);
}

// The number in front of `words`.
int NumberBefore(const std::string& line, const std::string& words) {
  size_t at = line.find(words);
  while (at > 0 && std::isdigit(static_cast<unsigned char>(line[at - 1])) != 0) --at;
  return std::atoi(line.c_str() + at);
}

std::vector<Compiled> CompiledIn(const std::string& log) {
  const std::string properties = "Function properties for ";
  std::vector<Compiled> found;
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

std::set<std::string> FunctionsOf(const CaseKernel& kernel) {
  std::set<std::string> functions;
  for (const cuda::Launch& launch : kernel.text.launches) functions.insert(launch.function);
  return functions;
}

// The first call of each operator, layout and set of launched functions, or of those and dtypes.
std::vector<CaseKernel> FirstOfEach(const std::vector<CaseKernel>& kernels, bool by_dtypes) {
  std::vector<CaseKernel> kept;
  std::set<std::string> keys;
  for (const CaseKernel& kernel : kernels) {
    std::string key = kernel.op->name + " " + cuda::LayoutNameOf(kernel.layout);
    for (const std::string& function : FunctionsOf(kernel)) key += " " + function;
    for (const TensorType& type : kernel.call.inputs) {
      if (by_dtypes) key += std::string(" ") + DTypeName(type.dtype);
    }
    if (!kernel.text.launches.empty() && keys.insert(key).second) kept.push_back(kernel);
  }
  return kept;
}

// "softmax row_major softmax".
std::string FamilyOf(const CaseKernel& kernel, const std::string& function) {
  return kernel.op->name + " " + cuda::LayoutNameOf(kernel.layout) + " " + function;
}

// That of "softmax_3_softmax"; "" of a function that is no kernel.
std::string FamilyOf(const std::string& name, const std::vector<CaseKernel>& kernels) {
  static const std::regex number("_([0-9]+)_");
  std::smatch match;
  if (!std::regex_search(name, match, number)) return "";
  return FamilyOf(kernels.at(std::stoul(match[1])), match.suffix().str());
}

// Adds to `families` what the kernels take; each can be launched.
void CompileFor(size_t architecture, const cuda::Nvrtc& nvrtc,
                const std::vector<CaseKernel>& kernels,
                std::map<std::string, Resources>& families) {
  const std::string name = kArchitectures[architecture];
  const Result<cuda::Cubin> cubin =
      nvrtc.Compile(OneProgram(kernels), name, {"--ptxas-options=-v"});
  ASSERT_TRUE(cubin.ok()) << cubin.status().message();
  const std::vector<Compiled> found = CompiledIn(cubin->log);
  EXPECT_GE(found.size(), kernels.size()) << cubin->log.substr(0, 2000);
  const std::map<std::string, int> threads = ThreadsOf(kernels);
  for (const Compiled& one : found) {
    const auto launched = threads.find(one.kernel);  // a text may have kernels for other calls
    const int block = launched == threads.end() ? 0 : launched->second;
    EXPECT_LE(RoundUp(one.registers, 8) * block, kMostRegisters) << name << ": " << one.kernel;
    const std::string family = FamilyOf(one.kernel, kernels);
    if (family.empty()) {
      EXPECT_EQ(one.spilled_bytes, 0) << name << ": " << one.kernel;
      continue;
    }
    Resources& row = families[family];
    row.registers[architecture] = std::max(row.registers[architecture], one.registers);
    row.spilled_bytes = std::max(row.spilled_bytes, one.spilled_bytes);
  }
  std::printf("%s: %zu calls, %zu kernels, %zu bytes\n", name.c_str(), kernels.size(), found.size(),
              cubin->code.size());
}

std::string TablePath() { return SourceFolder() + "/tests/cuda_text/registers.txt"; }

RegisterTable ReadTable() {
  std::ifstream file(TablePath());
  EXPECT_TRUE(file.is_open()) << TablePath() << " can't be read. hint: RIDGE_SOURCE_DIR=FOLDER";
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Result<RegisterTable> table = ParseRegisters(text);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? *table : RegisterTable();
}

void ExpectRegisters(const RegisterTable& want, const RegisterTable& have, bool whole) {
  for (const auto& [family, row] : have.families) {
    const auto at = want.families.find(family);
    ASSERT_NE(at, want.families.end()) << family << " has no row in registers.txt";
    for (size_t a = 0; a < kArchitectures.size(); ++a) {
      const int most = at->second.registers[a], found = row.registers[a];
      EXPECT_TRUE(whole ? found == most : found <= most)
          << family << " on " << kArchitectures[a] << ": " << found << " registers, " << most
          << " in registers.txt";
    }
  }
  EXPECT_TRUE(!whole || want.families.size() == have.families.size()) << "a row has no kernel";
}

// Spills are compared whatever compiled them.
void ExpectAsInTable(const RegisterTable& have, bool whole) {
  const RegisterTable want = ReadTable();
  for (const auto& [family, row] : have.families) {
    const auto at = want.families.find(family);
    const int allowed = at == want.families.end() ? 0 : at->second.spilled_bytes;
    EXPECT_LE(row.spilled_bytes, allowed) << family << " spills";
  }
  if (want.version == have.version) return ExpectRegisters(want, have, whole);
  std::printf("registers are not compared: registers.txt is of NVRTC %s\n", want.version.c_str());
}

TEST(CudaTextNvrtc, EveryOperatorCompilesAndTakesTheRegistersOfItsRow) {
  const Result<cuda::Nvrtc> nvrtc = OpenNvrtc();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const bool whole = std::getenv("RIDGE_CUDA_TEXT_WHOLE") != nullptr;
  const std::vector<CaseKernel> kernels = FirstOfEach(KernelsOfCases().kernels, whole);
  RegisterTable table{nvrtc->version(), {}};
  std::printf("NVRTC %s\n", table.version.c_str());
  for (size_t a = 0; a < kArchitectures.size(); ++a) CompileFor(a, *nvrtc, kernels, table.families);
  const bool all = whole && std::getenv("RIDGE_CUDA_TEXT_OPS") == nullptr;
  if (all && std::getenv("RIDGE_CUDA_TEXT_WRITE") != nullptr)
    std::ofstream(TablePath()) << FormatRegisters(table);
  ExpectAsInTable(table, all);
}

TEST(CudaTextNvrtc, EveryFunctionThatACaseLaunchesHasARow) {
  const RegisterTable table = ReadTable();
  std::set<std::string> launched, without;
  for (const CaseKernel& kernel : KernelsOfCases().kernels) {
    for (const std::string& function : FunctionsOf(kernel))
      launched.insert(FamilyOf(kernel, function));
  }
  for (const std::string& family : launched) {
    if (!table.families.contains(family)) without.insert(family);
  }
  EXPECT_EQ(without, std::set<std::string>());
  EXPECT_FALSE(launched.empty());
}

TEST(CudaTextNvrtc, TextsWithIndicesOf64BitsCompileAndCanBeLaunched) {
  const Result<cuda::Nvrtc> nvrtc = OpenNvrtc();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  const std::vector<CaseKernel> kernels = FirstOfEach(WideKernels(), /*by_dtypes=*/false);
  std::map<std::string, Resources> families;
  CompileFor(/*architecture=*/1, *nvrtc, kernels, families);
}

TEST(CudaTextNvrtc, TheTableOfRegistersIsReadAsItIsWritten) {
  const RegisterTable table{"13.0", {{"add row_major add", {{16, 18, 20, 22}, 8}}}};
  const Result<RegisterTable> read = ParseRegisters(FormatRegisters(table));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(FormatRegisters(*read), FormatRegisters(table));
  EXPECT_FALSE(ParseRegisters("add row_major add: 16 18").ok());
}

TEST(CudaTextNvrtc, PatternsOfMemoryCompile) {
  const Result<cuda::Nvrtc> nvrtc = OpenNvrtc();
  if (!nvrtc.ok()) GTEST_SKIP() << nvrtc.status().message();
  for (const MemoryPattern pattern : kMemoryPatterns) {
    const std::string source =
        std::string(cuda::Prelude()) + cuda::PatternText({pattern, 4096, /*round=*/70}).source;
    for (const char* architecture : kArchitectures) {
      const Result<cuda::Cubin> cubin =
          nvrtc->Compile(source, architecture, {"--ptxas-options=-v"});
      ASSERT_TRUE(cubin.ok()) << cubin.status().message();
      for (const Compiled& one : CompiledIn(cubin->log)) EXPECT_EQ(one.spilled_bytes, 0);
    }
  }
}

}  // namespace
}  // namespace ridge::cuda_text
