#include "ridge/plan/hardware/planned_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ridge/core/rounding.h"
#include "ridge/lower/reduced_groups.h"

namespace ridge {
namespace {

constexpr double kGb = 1e9, kTera = 1e12;
constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;

// ---- shares of the peaks

// Largest products: 0.87 of an A100's peak, 0.80 of an H100's, 0.78 of an H200's and a B200's
// (github:stas00/ml-engineering, maximum achievable matmul FLOPS).
constexpr double kLargestProducts = 0.8;
// Products of 768 columns reach 0.45 to 0.6 of the peak: half of the largest's share where the
// arithmetic alone takes so long.
constexpr double kHalfSpeedSeconds = 10e-6;
constexpr double kConvolutions = 0.65;  // of the share of a product of equal arithmetic
// Copies reach 0.9 of the memory's bandwidth (H200), pointwise kernels and norms less.
constexpr double kBandwidth = 0.85;
constexpr double kCacheOverMemory = 2.5;  // bandwidth of the last cache
constexpr double kGapSeconds = 1e-6;      // between kernels of a graph

// ---- memory

// Of the capacity: driver, page tables and, on boards without HBM, the bytes of ECC.
constexpr double kUsableHbm = 0.98, kUsableOther = 0.92;
// The largest published context of a process with lazily loaded kernels is 555 MiB.
constexpr int64_t kContextBytes = 600 * kMiB;
constexpr int64_t kHostRuntimeBytes = 64 * kMiB;
constexpr int64_t kModuleBytes = 40 << 10;  // of a kernel

bool IsCpu(const Hardware& hardware) {
  return hardware.architecture.starts_with("x86-64") || hardware.architecture.starts_with("Arm");
}

double ComputeCapability(const Hardware& hardware) {
  double value = 0;
  const std::string& text = hardware.compute_capability;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double PeakOrZero(const Hardware::Number& tera) { return tera.value_or(0) * kTera; }

// Without a rate of their own 16-bit floats are multiplied as f32.
DeviceProfile ProfileOf(const Hardware& hardware, F32Products products) {
  DeviceProfile profile;
  profile.id = hardware.id;
  profile.name = hardware.id;
  const double f32 = PeakOrZero(hardware.fp32_tflops);
  const double bf16 = std::max(f32, PeakOrZero(hardware.bf16_tflops));
  const double f16 = std::max(f32, PeakOrZero(hardware.fp16_tflops));
  const bool tf32 = products == F32Products::kTf32;
  profile.peak_flops_per_s = {{"f32", tf32 ? std::max(f32, PeakOrZero(hardware.tf32_tflops)) : f32},
                              {"bf16", bf16},
                              {"f16", f16}};
  if (hardware.fp64_tflops) profile.peak_flops_per_s["f64"] = PeakOrZero(hardware.fp64_tflops);
  const double bytes_per_s = *hardware.memory_gb_s * kGb * kBandwidth;
  if (hardware.l2_mb) {
    // Half of it: what the node reads beside the value it shares with its neighbour.
    const auto held = static_cast<int64_t>(*hardware.l2_mb * 1e6 / 2);
    profile.memory.push_back({"L2", held, kCacheOverMemory * bytes_per_s});
  }
  profile.memory.push_back({"memory", int64_t{1} << 50, bytes_per_s});
  profile.launch_s = kGapSeconds;
  profile.pointwise_flops_per_s = f32;
  profile.efficiency = {{"matmul", {{0, kLargestProducts}}},
                        {"conv", {{0, kLargestProducts * kConvolutions}}}};
  profile.ramp_s = {{"matmul", kHalfSpeedSeconds}, {"conv", kHalfSpeedSeconds}};
  profile.runtime_bytes = IsCpu(hardware) ? kHostRuntimeBytes : kContextBytes;
  profile.bytes_per_kernel = kModuleBytes;
  return profile;
}

int64_t UsableBytes(const Hardware& hardware) {
  const bool hbm = hardware.memory_type.starts_with("HBM");
  const double share = hbm ? kUsableHbm : kUsableOther;
  // Sheets of GPUs say GB and mean GiB.
  return static_cast<int64_t>(*hardware.memory_gb * share * static_cast<double>(kGiB));
}

// ---- workspaces

// Caps of cuBLASLt: what NVIDIA recommends for Hopper and later, and before.
int64_t ProductWorkspace(const Hardware& hardware) {
  return (ComputeCapability(hardware) >= 9 ? 32 : 4) * kMiB;
}

// cuDNN 9.19 copies images whose channels are no multiple of 8 into padded ones; every other
// convolution it was asked about takes 7 MB or less.
int64_t ConvWorkspace(const OpCall& call) {
  int64_t bytes = 32 * kMiB;
  const TensorType& image = call.inputs[0];
  if (image.rank() > 2 && image.dims[1] > 0 && image.dims[1] % 8 != 0)
    bytes += image.bytes() / image.dims[1] * RoundUp(image.dims[1], int64_t{8});
  return bytes;
}

// The deterministic gradient keeps 2 bytes for each pair of a query and a key, before Blackwell.
int64_t AttentionGradWorkspace(const Hardware& hardware, const OpCall& call) {
  const int64_t queries = call.inputs[0].elements();
  if (ComputeCapability(hardware) >= 10 || call.inputs[0].rank() != 4) return 64 * kMiB;
  const int64_t head = call.inputs[0].dims.back();
  const bool keys_given = call.has_input(1) && call.inputs[1].rank() == 4;
  const int64_t keys = keys_given ? call.inputs[1].dims[2] : call.inputs[0].dims[2];
  return queries / std::max<int64_t>(1, head) * keys * 2;
}

int64_t WorkspaceBytes(const Hardware& hardware, const OpDef& op, const OpCall& call) {
  if (IsCpu(hardware)) return 0;
  if (op.name == "attention_grad") return AttentionGradWorkspace(hardware, call);
  switch (op.cost_class) {
    case CostClass::kMatmul:
      return ProductWorkspace(hardware);
    case CostClass::kConv:
      return ConvWorkspace(call);
    case CostClass::kReduce:
    case CostClass::kNorm:
      return kMiB;  // partial sums
    default:
      return 0;
  }
}

// Of the rate of a product of equal arithmetic: attention with heads of 64 or 128.
double EfficiencyOf(const OpDef& op) {
  if (op.name == "attention") return 0.6;
  if (op.name == "attention_grad") return 0.5;
  return 1;
}

// A thread reads an element of every input before it writes one.
void AllowAllInPlace(const OpCall& call, KernelChoice& choice) {
  for (size_t out = 0; out < call.outputs.size(); ++out) {
    for (size_t in = 0; in < call.inputs.size(); ++in) {
      if (call.has_input(in) && call.inputs[in] == call.outputs[out])
        choice.in_place.emplace_back(static_cast<int>(out), static_cast<int>(in));
    }
  }
}

class PlannedRules : public RewriteRules {
 public:
  explicit PlannedRules(const Roofline& model, const Hardware& hardware) {
    const double f32 = PeakOrZero(hardware.fp32_tflops);
    const double half = std::max(PeakOrZero(hardware.bf16_tflops), f32);
    rates_.speed = half / f32;
    rates_.flops_per_byte = f32 / model.facts().memory_bytes_per_s;
    rates_.least_flops_per_element = 48;
  }
  bool Fuses(const OpDef& op, const OpCall&) const override {
    return op.name == "matmul" || op.name == "conv" || op.name == "batch_norm" ||
           op.name == "batch_norm_grad";
  }
  ReducedRates RatesOf(DType) const override { return rates_; }
  std::vector<DTypeGroup> ReducedGroups(const OpDef& op) const override {
    return UsualReducedGroups(op);
  }

 private:
  ReducedRates rates_;
};

}  // namespace

Result<PlannedHardware> PlanHardware(const Hardware& hardware, F32Products products) {
  std::vector<std::string> missing;
  if (!hardware.memory_gb) missing.emplace_back("memory_gb");
  if (!hardware.memory_gb_s) missing.emplace_back("memory_gb_s");
  if (!hardware.fp32_tflops) missing.emplace_back("fp32_tflops");
  if (missing.empty()) return PlannedHardware{ProfileOf(hardware, products), UsableBytes(hardware)};
  return Status(ErrorCode::kUnsupported,
                fmt::format("{}: {} {} not known, so nothing can be planned for it. hint: `ridge "
                            "devices show {} --toml` begins a file of your own",
                            hardware.id, fmt::join(missing, ", "),
                            missing.size() == 1 ? "is" : "are", hardware.id));
}

PlannedDevice::PlannedDevice(const Hardware& hardware, F32Products products)
    : hardware_(hardware),
      model_(ProfileOf(hardware, products)),
      rules_(std::make_unique<PlannedRules>(model_, hardware)) {}

// CUDA's: addresses of 256 bytes restrict no kernel, memory comes in pieces of 2 MiB.
MemorySpace PlannedDevice::memory() {
  if (IsCpu(hardware_)) return {};
  return {.alignment_bytes = 256, .page_bytes = 2 * kMiB};
}

bool PlannedDevice::Multiplies(DType operands) const {
  if (operands == DType::kBF16) return hardware_.bf16_tflops.has_value();
  if (operands == DType::kF16) return hardware_.fp16_tflops.has_value();
  return true;
}

KernelCandidates PlannedDevice::Candidates(const OpDef& op, const OpCall& call,
                                           std::span<const LayoutId>) {
  KernelChoice choice = RowMajorChoice(op, call, hardware_.id + "." + op.name);
  if (op.name == "fused") AllowAllInPlace(call, choice);
  choice.workspace_bytes = WorkspaceBytes(hardware_, op, call);
  choice.efficiency = EfficiencyOf(op);
  KernelCandidates candidates;
  candidates.choices.push_back(std::move(choice));
  return candidates;
}

KernelChoice PlannedDevice::Reorder(const TensorType&, LayoutId, LayoutId) {
  throw Bug("a planned device knows one layout");
}

}  // namespace ridge
