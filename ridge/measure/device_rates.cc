#include "ridge/measure/device_rates.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ridge/core/process.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/builder.h"
#include "ridge/plan/planner.h"
#include "ridge/runtime/executor.h"

namespace ridge {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kFewestRuns = 4, kMostRuns = 1000;

// Nodes as they stand: no pass joins them.
Result<std::unique_ptr<Executor>> Ready(Result<Graph> graph, Backend& backend) {
  RIDGE_RETURN_IF_ERROR(graph.status());
  RIDGE_ASSIGN_OR_RETURN(Program program, PlanProgram("bench device", {{"run", std::move(*graph)}},
                                                      backend, backend.nominal(), {}));
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor,
                         Executor::Create(std::move(program), backend));
  RIDGE_RETURN_IF_ERROR(executor->transfers().Initialize(/*seed=*/0));
  return executor;
}

// The least of `seconds(run)` for as many runs as the budget allows.
template <typename F>
Result<double> LeastSeconds(double budget_s, const F& seconds) {
  const double begin = MonotonicSeconds();
  double least = kNever;
  for (int run = 0; run < kMostRuns; ++run) {
    if (run >= kFewestRuns && MonotonicSeconds() - begin > budget_s) break;
    RIDGE_ASSIGN_OR_RETURN(const double taken, seconds());
    least = std::min(least, taken);
  }
  return least;
}

// Of the node of this operator, by the device's clock.
Result<double> LeastNodeSeconds(const std::string& op, double budget_s, Executor& executor) {
  const std::vector<PlannedNode>& nodes = executor.program().steps[0].nodes;
  const auto node = std::find_if(nodes.begin(), nodes.end(),
                                 [&](const PlannedNode& planned) { return planned.op == op; });
  RIDGE_CHECK(node != nodes.end(), "the plan has no node " + op);
  executor.SetTiming(true);
  return LeastSeconds(budget_s, [&]() -> Result<double> {
    RIDGE_RETURN_IF_ERROR(executor.Run(/*step=*/0, /*slot=*/0));
    return executor.NodeSeconds(0)[static_cast<size_t>(node - nodes.begin())];
  });
}

Result<double> ProductSeconds(Backend& backend, DType dtype, int64_t extent, double budget_s) {
  GraphBuilder b("product");
  const auto matrix = [&](const char* name) {
    return Cast(b.Parameter(name, {DType::kF32, {extent, extent}}, Init::Normal(1)), dtype);
  };
  b.Output("y", MatMul(matrix("a"), matrix("b")));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Ready(b.Build(), backend));
  return LeastNodeSeconds("matmul", budget_s, *executor);
}

// A sum of two tensors.
struct TimedSum {
  double seconds = 0;
  int64_t bytes = 0;  // read and written
};

// Of about so many bytes.
Result<TimedSum> TimeSum(Backend& backend, int64_t bytes, double budget_s) {
  constexpr int64_t kWidth = 256;
  const int64_t rows = std::max<int64_t>(1, bytes / (3 * kWidth * BytesPerElement(DType::kF32)));
  const TensorType type{DType::kF32, {rows, kWidth}};
  GraphBuilder b("sum");
  b.Output("z",
           b.Parameter("x", type, Init::Constant(1)) + b.Parameter("y", type, Init::Constant(2)));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Ready(b.Build(), backend));
  RIDGE_ASSIGN_OR_RETURN(const double seconds, LeastNodeSeconds("add", budget_s, *executor));
  return TimedSum{seconds, 3 * type.bytes()};
}

// Of a level that holds `most` bytes twice.
Result<double> SumBytesPerSecond(Backend& backend, int64_t most,
                                 const DeviceRatesOptions& options) {
  TimedSum sum;
  for (int64_t bytes = std::min(most, int64_t{3} << 20);; bytes *= 2) {
    RIDGE_ASSIGN_OR_RETURN(sum, TimeSum(backend, bytes, options.budget_s));
    if (sum.seconds >= options.long_enough_s || 2 * bytes > most) break;
  }
  return static_cast<double>(sum.bytes) / sum.seconds;
}

Result<double> ChainSeconds(Backend& backend, int nodes, double budget_s) {
  GraphBuilder b("chain");
  Value x = b.Parameter("x", {DType::kF32, {16}}, Init::Constant(1));
  for (int i = 0; i < nodes; ++i) x = Relu(x);
  b.Output("y", x);
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Ready(b.Build(), backend));
  return LeastSeconds(budget_s, [&]() -> Result<double> {
    const double begin = MonotonicSeconds();
    RIDGE_RETURN_IF_ERROR(executor->Run(/*step=*/0, /*slot=*/0));
    return MonotonicSeconds() - begin;
  });
}

// What each further kernel of a step adds, however little it does.
Result<double> SecondsBetweenKernels(Backend& backend, double budget_s) {
  constexpr int kShort = 64, kLong = 512;
  constexpr double kLeast = 1e-9;  // two chains are timed
  RIDGE_ASSIGN_OR_RETURN(const double few, ChainSeconds(backend, kShort, budget_s));
  RIDGE_ASSIGN_OR_RETURN(const double many, ChainSeconds(backend, kLong, budget_s));
  return std::max(kLeast, (many - few) / (kLong - kShort));
}

// Of one copy, by the device's clock.
template <typename F>
Result<double> LeastCopySeconds(Device& device, const F& copy, double budget_s) {
  Stream& stream = device.stream(0);
  const std::unique_ptr<Event> begin = device.MakeEvent(), end = device.MakeEvent();
  return LeastSeconds(budget_s, [&]() -> Result<double> {
    stream.Record(*begin);
    copy();
    stream.Record(*end);
    RIDGE_RETURN_IF_ERROR(stream.Synchronize());
    return SecondsBetween(*begin, *end);
  });
}

}  // namespace

Result<double> MeasureProducts(Backend& backend, DType dtype, const DeviceRatesOptions& options) {
  for (int64_t extent = 128;; extent *= 2) {
    RIDGE_ASSIGN_OR_RETURN(const double seconds,
                           ProductSeconds(backend, dtype, extent, options.budget_s));
    if (seconds >= options.long_enough_s || 2 * extent > options.most_extent)
      return 2 * std::pow(static_cast<double>(extent), 3) / seconds;
  }
}

Result<double> MeasureHostLink(Device& device, const DeviceRatesOptions& options) {
  const MemorySpace space = device.memory_space();
  if (space.host_visible) return 0.0;
  const int64_t most = RoundUp(options.most_copied_bytes, space.page_bytes);
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Memory> there, device.Allocate(most));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Memory> here, device.AllocateStaging(most));
  std::memset(here->data(), 0, static_cast<size_t>(most));
  Stream& stream = device.stream(0);
  for (int64_t bytes = std::min(most, int64_t{1} << 20);; bytes *= 2) {
    const auto upload = [&] { stream.Upload(there->data(), here->data(), bytes); };
    const auto download = [&] { stream.Download(here->data(), there->data(), bytes); };
    RIDGE_ASSIGN_OR_RETURN(const double to, LeastCopySeconds(device, upload, options.budget_s));
    RIDGE_ASSIGN_OR_RETURN(const double from, LeastCopySeconds(device, download, options.budget_s));
    const double seconds = std::max(to, from);
    if (seconds >= options.long_enough_s || 2 * bytes > most)
      return static_cast<double>(bytes) / seconds;
  }
}

Status MeasureDeviceRates(Backend& backend, const DeviceRatesOptions& options,
                          DeviceProfile& profile) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kBF16, DType::kF16}) {
    if (!backend.Multiplies(dtype)) continue;
    RIDGE_ASSIGN_OR_RETURN(profile.peak_flops_per_s[DTypeName(dtype)],
                           MeasureProducts(backend, dtype, options));
  }
  for (MemoryLevel& level : profile.memory) {
    const int64_t most = std::min(options.most_sum_bytes, level.capacity_bytes / 2);
    RIDGE_ASSIGN_OR_RETURN(level.bytes_per_s, SumBytesPerSecond(backend, most, options));
  }
  RIDGE_ASSIGN_OR_RETURN(profile.launch_s, SecondsBetweenKernels(backend, options.budget_s));
  RIDGE_ASSIGN_OR_RETURN(profile.host_link_bytes_per_s, MeasureHostLink(backend.device(), options));
  return Status();
}

}  // namespace ridge
