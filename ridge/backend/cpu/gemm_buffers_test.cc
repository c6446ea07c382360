// What a call holds is what the process's peak rises by.  Each instruction set runs in a process of
// its own, because the library decides once.
#include "ridge/backend/cpu/gemm_buffers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <optional>
#include <random>

#include "hwy/targets.h"
#include "ridge/backend/cpu/onednn.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/instructions.h"
#include "ridge/core/process.h"

namespace ridge::cpu {
namespace {

using dnnl::memory;

struct Case {
  int64_t batch = 1, m = 0, n = 0, k = 0;  // rows, columns, inner extent of a row-major product
  bool transposed_a = false, transposed_b = false;
};

memory::desc Matrix(int64_t batch, int64_t rows, int64_t columns, bool transposed) {
  const memory::dims strides =
      transposed ? memory::dims{rows * columns, 1, rows} : memory::dims{rows * columns, columns, 1};
  if (batch > 1) return {{batch, rows, columns}, memory::data_type::f32, strides};
  return {{rows, columns}, memory::data_type::f32, {strides[1], strides[2]}};
}

// The process's peak is what it holds now.
bool ForgetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

// Bytes by which one call raises the peak; nullopt when the library does not pack.
struct Seen {
  int64_t held = 0, bound = 0;
};
std::optional<Seen> Multiply(const Case& c, int threads) {
  const TeamSize team(threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const memory::desc a = Matrix(c.batch, c.m, c.k, c.transposed_a),
                     b = Matrix(c.batch, c.k, c.n, c.transposed_b),
                     y = Matrix(c.batch, c.m, c.n, false);
  dnnl::matmul::primitive_desc desc(engine, a, b, y, UserScratchpad());
  while (!AllocatesInCalls(desc.impl_info_str())) {
    if (!desc.next_impl()) return std::nullopt;
  }
  std::vector<float> storage[3];
  std::unordered_map<int, memory> args;
  const std::pair<int, memory::desc> sides[] = {
      {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, y}};
  for (size_t i = 0; i < 3; ++i) {
    storage[i].assign(sides[i].second.get_size() / 4, 1);
    args[sides[i].first] = memory(sides[i].second, engine, storage[i].data());
  }
  std::vector<std::byte> scratchpad(desc.scratchpad_desc().get_size() + 64);
  args[DNNL_ARG_SCRATCHPAD] = memory(desc.scratchpad_desc(), engine, scratchpad.data());
  const dnnl::matmul matmul(desc);
  matmul.execute(stream, args);  // makes the library generate code
  EXPECT_TRUE(ForgetPeak());
  const int64_t before = ReadProcessMemory().resident_bytes;
  matmul.execute(stream, args);
  Seen seen;
  seen.held = ReadProcessMemory().peak_resident_bytes - before;
  const GemmExtents e{c.n, c.m, c.k, c.transposed_a};
  seen.bound = c.batch > 1 ? GemmBufferBytesAlone(e, DType::kF32, threads, UsedInstructions())
                           : GemmBufferBytes(e, DType::kF32, threads, UsedInstructions());
  return seen;
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {{1, 1024, 1152, 384}, {1, 1024, 384, 1536}, {1, 64, 512, 784},
                             {1, 512, 5000, 384},  {1, 4096, 1000, 128}, {1, 1, 4096, 512},
                             {1, 4096, 1, 512},    {1, 48, 48, 9000},    {8, 128, 512, 64},
                             {1, 1000, 4000, 96},  {1, 20, 12000, 300},  {1, 300, 300, 3000}};
  std::mt19937 draws(7);  // the same numbers everywhere
  const auto extent = [&] {
    return static_cast<int64_t>(std::exp2(11.3 * static_cast<double>(draws()) / 0x1p32)) + 1;
  };
  for (int i = 0; i < 40; ++i) {
    const int64_t m = extent(), n = extent();
    cases.push_back({1, m, n, extent()});
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    cases[i].transposed_a = i % 3 == 1;
    cases[i].transposed_b = i % 4 == 2;
  }
  return cases;
}

// Run by the test below, in a process for each instruction set.
TEST(GemmBuffersAlone, DISABLED_CallsHoldNoMoreThanTheBound) {
  constexpr int64_t kElsewhere = 64 * 1024;  // stacks and small blocks
  PrepareGemm();
  int64_t packed = 0, bounds = 0, held = 0;
  for (const int threads : {1, 2, 3}) {
    for (const Case& c : Cases()) {
      const auto seen = Multiply(c, threads);
      if (!seen) continue;
      EXPECT_LE(seen->held, seen->bound + kElsewhere)
          << fmt::format("{} x [{},{}] x [{},{}], {} threads, transposed {}{}", c.batch, c.m, c.k,
                         c.k, c.n, threads, c.transposed_a, c.transposed_b);
      if (seen->held < 200'000) continue;
      ++packed;
      bounds += seen->bound;
      held += seen->held;
    }
  }
  fmt::print("{} products that pack, bound {:.3f} of what they hold\n", packed,
             static_cast<double>(bounds) / static_cast<double>(std::max<int64_t>(held, 1)));
  EXPECT_GT(packed, 10);
}

// As above.  One reading of the environment for the library's kernels, our own and the nominal
// device.
TEST(GemmBuffersAlone, DISABLED_OwnKernelsKeepToTheLibrarysInstructions) {
  const auto has = [](dnnl::cpu_isa isa) {
    const auto bits = static_cast<unsigned>(isa);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
  };
  const Instructions used = UsedInstructions();
  EXPECT_EQ(used == Instructions::kAvx512, has(dnnl::cpu_isa::avx512_core));
  EXPECT_EQ(used >= Instructions::kAvx2, has(dnnl::cpu_isa::avx2));
  LimitInstructions();
  EXPECT_EQ(used == Instructions::kAvx512,
            (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0);
  EXPECT_EQ(used >= Instructions::kAvx2, (hwy::SupportedTargets() & HWY_AVX2) != 0);
}

class GemmBuffers : public testing::TestWithParam<const char*> {};

TEST_P(GemmBuffers, CallsHoldNoMoreThanTheBound) {
#ifdef RIDGE_SANITIZED_MEMORY
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  const std::string command = fmt::format(
      "ONEDNN_MAX_CPU_ISA={} /proc/{}/exe --gtest_also_run_disabled_tests "
      "--gtest_filter=GemmBuffersAlone.* 2>&1",
      GetParam(), ::getpid());
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output(1 << 16, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  EXPECT_EQ(::pclose(pipe), 0) << output;
  EXPECT_NE(output.find("products that pack"), std::string::npos) << output;
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, GemmBuffers,
                         testing::Values("SSE41", "AVX2", "AVX512_CORE"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ridge::cpu
