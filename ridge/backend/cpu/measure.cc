// Measures the numbers of a profile.
//
// A point of a curve is the rate of a kernel of this backend, divided by the peak and by the
// kernel's own efficiency, because the planner multiplies by both.  Curves of the light classes
// (elementwise, reduce, pool, norm, optimizer) are shares of the same peak; for large tensors the
// planner's bandwidth term takes over.
#include "ridge/backend/cpu/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/machine_facts.h"
#include "ridge/backend/cpu/onednn.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/backend/cpu/timed_call.h"
#include "ridge/core/instructions.h"
#include "ridge/core/process.h"
#include "ridge/core/threads.h"

namespace ridge {
namespace {

using cpu::CacheBytes;
using cpu::CpuFacts;
using cpu::RandomBytes;
using cpu::TimedCall;
using dnnl::memory;
using Ints = std::vector<int64_t>;

TensorType F32(Dims dims) { return {DType::kF32, std::move(dims)}; }

// What a dtype's matmul takes and gives.
struct MatmulTypes {
  memory::data_type a, b, c;
};
MatmulTypes TypesFor(DType dtype) {
  using Type = memory::data_type;
  if (dtype == DType::kBF16) return {Type::bf16, Type::bf16, Type::bf16};
  if (dtype == DType::kI8) return {Type::u8, Type::s8, Type::s32};
  return {Type::f32, Type::f32, Type::f32};
}

struct Rounds {
  double budget_s;
  int least_rounds;
};

// How rates are measured: by all threads and the wall clock, or, beside other processes, by one
// thread and its own seconds, which go on only while it has a core.
struct Way {
  int threads;  // of the backend
  bool alone = false;
  cpu::Watch watch = {};
  int team() const { return alone ? 1 : threads; }
};

// FLOP/s of c = a * b of n^3, b packed; 0 without a fast kernel.
double MatmulFlops(Way& way, DType dtype, int64_t n, Rounds rounds) try {
  const cpu::TeamSize team(way.team());
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const MatmulTypes types = TypesFor(dtype);
  using Tag = memory::format_tag;
  dnnl::matmul::primitive_desc desc(engine, {{n, n}, types.a, Tag::ab}, {{n, n}, types.b, Tag::any},
                                    {{n, n}, types.c, Tag::ab});
  if (std::string(desc.impl_info_str()).rfind("ref", 0) == 0) return 0;
  const dnnl::matmul matmul(desc);
  Tensor storage[3];
  std::unordered_map<int, memory> args;
  const std::pair<int, memory::desc> sides[] = {{DNNL_ARG_SRC, desc.src_desc()},
                                                {DNNL_ARG_WEIGHTS, desc.weights_desc()},
                                                {DNNL_ARG_DST, desc.dst_desc()}};
  for (size_t i = 0; i < 3; ++i) {
    storage[i] = RandomBytes(static_cast<int64_t>(sides[i].second.get_size()));
    args[sides[i].first] = memory(sides[i].second, engine, storage[i].mutable_data());
  }
  matmul.execute(stream, args);  // warms up
  const double best = cpu::ShortestTime(way.watch, rounds.budget_s, rounds.least_rounds,
                                        [&] { matmul.execute(stream, args); });
  return 2.0 * static_cast<double>(n * n * n) / best;
} catch (const dnnl::error&) {
  return 0;
}

// `bytes` in all three arrays of all threads together.
double TriadRate(Way& way, int64_t bytes, double budget_s) {
  const int threads = way.team();
  const int64_t count = std::max<int64_t>(bytes / 12, 64);
  Tensor storage[3];
  float* array[3];
  for (int i = 0; i < 3; ++i) {
    storage[i] = RandomBytes(count * 4);
    array[i] = storage[i].as_mutable<float>();
  }
  // Small arrays are swept often within one region, so that opening it costs nothing.
  const int64_t sweeps = std::max<int64_t>(1, (int64_t{4} << 20) / (count * 12));
  const double best = cpu::ShortestTime(way.watch, budget_s, /*least_rounds=*/3, [&] {
    cpu::ForEachPart(threads, [&](int part) {
      const cpu::Range range = cpu::PartOf(count, threads, part, 16);
      for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
        cpu::Triad(array[1] + range.begin, array[2] + range.begin, 0.5F, array[0] + range.begin,
                   range.end - range.begin);
      }
    });
  });
  return static_cast<double>(count * 12 * sweeps) / best;
}

// One kernel at one size.
struct Sample {
  const char* cost_class;
  const char* op;
  std::vector<TensorType> inputs;
  AttrMap attrs;
  bool in_quick;
};

void AddMatmuls(std::vector<Sample>& samples) {
  for (const int64_t n : {32, 64, 128, 256, 512, 1024}) {
    samples.push_back({"matmul", "matmul", {F32({n, n}), F32({n, n})}, {}, n == 64 || n == 256});
  }
}

void AddConvs(std::vector<Sample>& samples) {
  for (const int64_t size : {7, 14, 28, 56}) {
    const AttrMap attrs = {{"padding", Ints{1, 1, 1, 1}}};
    samples.push_back({"conv",
                       "conv",
                       {F32({2, 32, size, size}), F32({32, 32, 3, 3})},
                       attrs,
                       size == 14 || size == 28});
    samples.push_back(
        {"conv", "conv", {F32({16, 64, size, size}), F32({64, 64, 3, 3})}, attrs, false});
  }
}

// Columns of 512, rows from a cache line to past the last cache's share of a node.
void AddLight(std::vector<Sample>& samples) {
  for (const int64_t rows : {2, 64, 512, 4096}) {
    const TensorType x = F32({rows, 512});
    const bool in_quick = rows == 64 || rows == 512;
    samples.push_back({"elementwise", "relu", {x}, {}, in_quick});
    samples.push_back({"reduce", "reduce_sum", {x}, {{"axes", Ints{1}}}, in_quick});
    samples.push_back({"norm", "layer_norm", {x}, {}, in_quick});
    samples.push_back(
        {"optimizer", "adam_update", {x, x, x, x, F32({}), {DType::kI64, {}}}, {}, in_quick});
    samples.push_back({"pool",
                       "max_pool",
                       {F32({rows, 32, 4, 4})},
                       {{"kernel", Ints{2, 2}}, {"stride", Ints{2, 2}}},
                       in_quick});
  }
}

// The pools' best layout is the one that convolutions leave.
LayoutId BlockedLayout(Backend& backend) {
  const auto conv = TimedCall::Make(backend, "conv", {F32({1, 32, 4, 4}), F32({32, 32, 3, 3})}, {});
  return conv.ok() ? conv->choice().output_layouts.at(0) : kRowMajor;
}

// A quarter of what each class reaches on cores of the last ten years.  Less means that another
// process had the core: a kernel on two threads then waits whole time slices.
struct ClassFloor {
  const char* cost_class;
  double share;
};
constexpr ClassFloor kFloors[] = {{"matmul", 0.1},    {"conv", 0.2},  {"elementwise", 0.015},
                                  {"reduce", 0.02},   {"norm", 0.03}, {"pool", 0.005},
                                  {"optimizer", 0.03}};

double FloorOf(const char* cost_class) {
  for (const ClassFloor& floor : kFloors) {
    if (std::string_view(floor.cost_class) == cost_class) return floor.share;
  }
  return 0;
}

Status MeasureCurves(Backend& backend, Way& way, bool quick, DeviceProfile& profile) {
  std::vector<Sample> samples;
  AddMatmuls(samples);
  AddConvs(samples);
  AddLight(samples);
  const double peak = profile.peak_flops_per_s.at("f32");
  const LayoutId blocked = BlockedLayout(backend);
  for (Sample& s : samples) {
    if (quick && !s.in_quick) continue;
    std::vector<LayoutId> available;
    if (std::string(s.op) == "max_pool") available = {blocked};
    RIDGE_ASSIGN_OR_RETURN(TimedCall timed,
                           TimedCall::Make(backend, s.op, s.inputs, s.attrs, available, way.alone));
    const double seconds = timed.Best(way.watch, quick ? 0.001 : 0.1);
    const double work = std::max(seconds - profile.launch_s, seconds / 4);
    const auto flops = static_cast<double>(timed.cost().flops);
    const double share = flops / work / peak / timed.choice().efficiency;
    profile.efficiency[s.cost_class].push_back(
        {flops, std::clamp(share, FloorOf(s.cost_class), 1.0)});
  }
  for (auto& [name, curve] : profile.efficiency) {
    std::sort(curve.begin(), curve.end(),
              [](const auto& a, const auto& b) { return a.flops < b.flops; });
  }
  return Status();
}

// Levels count half of the shared cache: other processes and code use it too.
// One thread has its share of the caches, but nearly the whole bandwidth of the memory.
void MeasureMemory(Way& way, bool quick, DeviceProfile& profile) {
  const int threads = way.threads;
  const CacheBytes caches = cpu::ReadCaches(AllowedCpus(threads));
  const double budget_s = quick ? 0.001 : 0.2;
  const auto add = [&](const char* level, int64_t capacity, int64_t touched) {
    const double rate = TriadRate(way, way.alone ? touched / threads : touched, budget_s);
    const bool shared = touched > caches.l3;
    profile.memory.push_back({level, capacity, way.alone && !shared ? rate * threads : rate});
  };
  add("L1", caches.l1, caches.l1 * 3 / 4);
  add("L2", caches.l2, caches.l2 / 2);
  if (caches.l3 / 2 > caches.l2) add("L3", caches.l3 / 2, std::max(caches.l2 * 2, caches.l3 / 4));
  add("DRAM", AvailableMemoryBytes(), (quick ? 2 : 4) * caches.l3);
  // A larger level is never faster: a disturbed measurement must not make it look so.
  for (size_t i = profile.memory.size() - 1; i-- > 0;) {
    profile.memory[i].bytes_per_s =
        std::max(profile.memory[i].bytes_per_s, profile.memory[i + 1].bytes_per_s);
  }
}

void MeasurePeaks(Way& way, bool quick, DeviceProfile& profile) {
  const int64_t n = quick ? 512 : 2048;
  const Rounds rounds = {.budget_s = quick ? 0.005 : 1, .least_rounds = 5};
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI8}) {
    const double peak = MatmulFlops(way, dtype, n, rounds) * way.threads / way.team();
    if (peak > 0) profile.peak_flops_per_s[DTypeName(dtype)] = peak;
  }
}

// Different kernels of each family, in different sizes: none is in oneDNN's cache.
Status CreateKernels(Backend& backend, int64_t first, int64_t count) {
  for (int64_t k = first; k < first + count; ++k) {
    const int64_t c = 16 * (k + 1);
    const TensorType x = F32({1, c, 3, 3}), w = F32({16, c, 3, 3}), dy = F32({1, 16, 1, 1});
    RIDGE_RETURN_IF_ERROR(TimedCall::Make(backend, "conv", {x, w}, {}).status());
    RIDGE_RETURN_IF_ERROR(
        TimedCall::Make(backend, "conv_grad_weight", {x, dy}, {{"weight_dims", w.dims}}).status());
    RIDGE_RETURN_IF_ERROR(
        TimedCall::Make(backend, "matmul", {F32({8, c}), F32({c, 8 + k})}, {}).status());
    RIDGE_RETURN_IF_ERROR(TimedCall::Make(backend, "add", {x, x}, {}).status());
  }
  return Status();
}

// Resident growth; the smaller the process still is, the truer the numbers, so this comes first.
Status MeasureFootprint(Backend& backend, bool quick, DeviceProfile& profile) {
  RIDGE_RETURN_IF_ERROR(CreateKernels(backend, 0, 2));  // brings in the library's code
  const int64_t before = ReadProcessMemory().resident_bytes;
  const int64_t rounds = quick ? 4 : 16;
  RIDGE_RETURN_IF_ERROR(CreateKernels(backend, 2, rounds));
  const int64_t growth = ReadProcessMemory().resident_bytes - before;
  profile.runtime_bytes = before;
  profile.bytes_per_kernel = std::max<int64_t>(growth / (4 * rounds), 1024);
  return Status();
}

// What opening a region for more threads adds is not seen by one: a microsecond then.
Status MeasureLaunch(Backend& backend, Way& way, bool quick, DeviceProfile& profile) {
  RIDGE_ASSIGN_OR_RETURN(TimedCall tiny,
                         TimedCall::Make(backend, "relu", {F32({16})}, {}, {}, way.alone));
  profile.launch_s = tiny.Best(way.watch, quick ? 0.001 : 0.05);
  if (way.threads > way.team()) profile.launch_s = std::max(profile.launch_s, 1e-6);
  return Status();
}

Status MeasureRates(Backend& backend, Way& way, bool quick, DeviceProfile& profile) {
  profile.peak_flops_per_s.clear();
  profile.memory.clear();
  profile.efficiency.clear();
  RIDGE_RETURN_IF_ERROR(MeasureLaunch(backend, way, quick, profile));
  MeasurePeaks(way, quick, profile);
  MeasureMemory(way, quick, profile);
  // A curve is a share of what the same threads reach.
  DeviceProfile team = profile;
  for (auto& [dtype, peak] : team.peak_flops_per_s)
    peak *= static_cast<double>(way.team()) / way.threads;
  RIDGE_RETURN_IF_ERROR(MeasureCurves(backend, way, quick, team));
  profile.efficiency = std::move(team.efficiency);
  return Status();
}

// What was seen since `begin_s`, and how long products of all threads wait for a core.
Steadiness SteadinessOf(Way& way, bool quick, double busy_s, double own_s, double begin_s) {
  Steadiness steadiness{.known = true};
  const double wall_s = MonotonicSeconds() - begin_s;
  const double cores = std::max(1, AllowedCores());
  const double others_s = (BusySeconds() - busy_s) - (ProcessorSeconds() - own_s);
  steadiness.others_share = std::clamp(others_s / (wall_s * cores), 0.0, 1.0);
  const double product_s = MonotonicSeconds(), product_own_s = ProcessorSeconds();
  (void)MatmulFlops(way, DType::kF32, 512, {.budget_s = quick ? 0.02 : 0.1, .least_rounds = 5});
  steadiness.processor_share =
      (ProcessorSeconds() - product_own_s) / ((MonotonicSeconds() - product_s) * way.threads);
  std::vector<double>& spreads = way.watch.spreads;
  if (!spreads.empty()) {
    const auto middle = spreads.begin() + static_cast<int64_t>(spreads.size() / 2);
    std::nth_element(spreads.begin(), middle, spreads.end());
    steadiness.spread = *middle;
  }
  return steadiness;
}

}  // namespace

std::string CpuProfileId(int threads) {
  const CpuFacts facts = cpu::ReadCpuFacts();
  std::string id = fmt::format("cpu-{}-{}-{}-{}", facts.vendor, facts.family, facts.model, threads);
  const Instructions used = UsedInstructions();
  return used == CpuInstructions() ? id : id + "-" + InstructionsName(used);
}

Result<DeviceProfile> MeasureCpu(Backend& backend, bool quick) {
  DeviceProfile profile;
  profile.threads = backend.threads();
  profile.id = CpuProfileId(profile.threads);
  profile.instructions = InstructionSetName(cpu::LibraryInstructions());
  profile.name = fmt::format("{} ({} thread{})", cpu::ReadCpuFacts().model_name, profile.threads,
                             profile.threads == 1 ? "" : "s");
  profile.quick = quick;
  profile.made_at = UtcText(WallSeconds());
  RIDGE_RETURN_IF_ERROR(MeasureFootprint(backend, quick, profile));
  const double begin_s = MonotonicSeconds(), busy_s = BusySeconds(), own_s = ProcessorSeconds();
  Way way{profile.threads};
  RIDGE_RETURN_IF_ERROR(MeasureRates(backend, way, quick, profile));
  profile.steadiness = SteadinessOf(way, quick, busy_s, own_s, begin_s);
  if (IsSteady(profile.steadiness)) return profile;
  Way alone{profile.threads, /*alone=*/true, {.now = ThreadSeconds}};
  RIDGE_RETURN_IF_ERROR(MeasureRates(backend, alone, quick, profile));
  return profile;
}

double BestMatmulFlops(int threads, DType dtype) {
  Way way{threads};
  return MatmulFlops(way, dtype, 2048, {.budget_s = 0, .least_rounds = 20});
}

double BestTriadBytesPerS(int threads) {
  Way way{threads};
  return TriadRate(way, 4 * cpu::ReadCaches(AllowedCpus(threads)).l3, 0.3);
}

}  // namespace ridge
