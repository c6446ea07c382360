#include "ridge/plan/hardware/planned_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/core/small_float.h"
#include "ridge/graph/expression.h"
#include "ridge/graph/ops/shared/attention.h"
#include "ridge/graph/ops/shared/conv.h"
#include "ridge/graph/ops/shared/epilogue.h"
#include "ridge/lower/group_updates.h"
#include "ridge/lower/reduced_groups.h"
#include "ridge/plan/hardware/conv_workspaces.h"
#include "ridge/plan/hardware/padded_channels.h"

namespace ridge {
namespace {

constexpr double kHopper = 9;  // compute capability
constexpr double kGb = 1e9, kTera = 1e12;
constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;

// ---- shares of the peaks

// Largest products: 0.87 of an A100's peak, 0.80 of an H100's, 0.78 of an H200's and a B200's
// (github:stas00/ml-engineering, maximum achievable matmul FLOPS).
constexpr double kLargestProducts = 0.8;
// Of products of f32 without matrix units.
constexpr double kLargestF32Products = 0.9;
// Products of 768 columns reach 0.45 to 0.6 of the peak: half of the largest's share where the
// arithmetic alone takes so long.
constexpr double kHalfSpeedSeconds = 10e-6;
constexpr double kConvolutions = 0.85;  // of the share of a product of equal arithmetic
// By which cuDNN's Winograd kernels are faster where images of f32 pass a 3x3 window of stride 1:
// F(2x2,3x3) has 2.25 times fewer multiplications (Lavin and Gray, arXiv:1509.09308).  That its
// transforms leave two thirds of that is an estimate, fitted to no training.
constexpr double kWinograd = 1.5;
// Copies reach 0.9 of the memory's bandwidth (H200), pointwise kernels and norms less.
constexpr double kBandwidth = 0.85;
constexpr double kCacheOverMemory = 2.5;  // bandwidth of the last cache
constexpr double kGapSeconds = 1e-6;      // between kernels of a graph

// ---- eager programs

// Of the bytes of a result, what a pointwise step reads and writes: one or two operands, one
// result.
constexpr double kPointwiseTraffic = 2.5;
// Autocast runs layer norms in f32: bytes an element of the casts on both sides.
constexpr double kAutocastTraffic = 12;
// Times the scores of attention are read or written where each step is a kernel: product, scale,
// mask, softmax, dropout, product; backwards two products more and no mask.
constexpr double kScorePasses = 10, kScoreGradPasses = 11;
// A program that keeps its images channels-first lets cuDNN copy them for each 16-bit convolution:
// "every time a convolution is called, cuDNN performs a transpose" (Composer's page on channels
// last); 1,450 against 2,150 images a second of ResNet-50 (github:NVIDIA/apex, issue 1445).
constexpr int64_t kImagesOfConv = 3;     // two operands, one result
constexpr double kImageCopyTraffic = 4;  // bytes an element of 16 bits: read and written

// ---- padded channels

constexpr LayoutId kPaddedChannels = 1;
// By which a copy in the workspace counts more than one of its own: of two readers of an image the
// first pays for the copy alone.
constexpr double kTieSeconds = 1e-9;

// ---- linear layers in 8 bits

// Bytes an element of an operand, of which two products read: its maximum is read, then it is read
// again and written twice, as rows and as columns, since Hopper multiplies 8 bits by columns only.
constexpr double kFp8CastTraffic = 3;
constexpr int64_t kFp8Multiple = 16;  // of each extent (cuBLASLt)

// ---- power

// Watts that a TFLOP/s of 16-bit products takes, by how the chip is made; tf32 takes twice that.
struct ProductPower {
  const char* architecture;  // begins so
  bool hbm;
  double watts_per_tflops;
};
// A100: 271 TFLOP/s at 400 W, H100: 794 at 700, B200: 1745 at 1000, MI300X: 668 at 750
// (github:stas00/ml-engineering, maximum achievable matmul FLOPS).  RTX PRO 6000 Max-Q: 229 at 300
// (github:waynehacking8/blackwell-tensorcore-kernels), for Ada too, which is made alike.  V100, T4
// and A10: the clock that their power guarantees, 105, 24 and 65 TFLOP/s.
constexpr ProductPower kProductPowers[] = {
    {"Volta", true, 2.85},     {"Turing", false, 2.9},     {"Ampere", true, 1.48},
    {"Ampere", false, 2.3},    {"Ada", false, 1.31},       {"Hopper", true, 0.88},
    {"Blackwell", true, 0.57}, {"Blackwell", false, 1.31}, {"CDNA3", true, 1.12},
};

// ---- memory

// Of the capacity: driver, page tables and, on boards without HBM, the bytes of ECC.
constexpr double kUsableHbm = 0.98, kUsableOther = 0.92;
// Published contexts of a process with lazily loaded kernels: 107 MiB (RTX 4060 Ti) to 555 MiB (RTX
// PRO 6000; both github:ggml-org/llama.cpp, pull request 23604).
constexpr int64_t kContextBytes = 600 * kMiB, kLeastContextBytes = 107 * kMiB;
constexpr int64_t kHostRuntimeBytes = 64 * kMiB;
constexpr int64_t kModuleBytes = 40 << 10;  // of a kernel

double PeakOrZero(const Hardware::Number& tera) { return tera.value_or(0) * kTera; }

bool HasHbm(const Hardware& hardware) { return hardware.memory_type.starts_with("HBM"); }

// FLOP/s of 16-bit products that the device's power sustains; without bound where that is unknown.
double SustainedFlops(const Hardware& hardware) {
  for (const ProductPower& row : kProductPowers) {
    const bool alike =
        hardware.architecture.starts_with(row.architecture) && HasHbm(hardware) == row.hbm;
    // The rates are those of products, the roofline's are peaks of which products reach a share.
    if (alike && hardware.power_w)
      return *hardware.power_w / row.watts_per_tflops * kTera / kLargestProducts;
  }
  return std::numeric_limits<double>::infinity();
}

// FLOP/s of products of 8 bits, which take half the power of those of 16.
double Fp8Flops(const Hardware& hardware) {
  return std::min(PeakOrZero(hardware.fp8_tflops), 2 * SustainedFlops(hardware));
}

double Fp8Speed(const Hardware& hardware) {
  return Fp8Flops(hardware) / std::min(PeakOrZero(hardware.bf16_tflops), SustainedFlops(hardware));
}

// A product of 16 bits with one matrix on its right side, or one of its gradients; a head, too.
bool IsLinearLayer(const OpDef& op, const OpCall& call) {
  if (op.name != "matmul" || call.inputs[1].rank() > 2) return false;
  const auto is_narrow = [](const TensorType& type) { return BytesPerElement(type.dtype) == 2; };
  const auto fits = [](const TensorType& type) {
    return type.rank() >= 2 && type.dims.back() % kFp8Multiple == 0 &&
           type.elements() / type.dims.back() % kFp8Multiple == 0;
  };
  const TensorType &a = call.inputs[0], &b = call.inputs[1];
  return is_narrow(a) && is_narrow(b) && fits(a) && fits(b) && fits(call.outputs[0]);
}

// What the roofline takes as the peak of f32, of which products reach kLargestProducts.
double F32Peak(const Hardware& hardware, F32Products products) {
  const double tf32 = std::min(PeakOrZero(hardware.tf32_tflops), SustainedFlops(hardware) / 2);
  const double exact =
      std::max(PeakOrZero(hardware.fp32_tflops) * kLargestF32Products / kLargestProducts,
               PeakOrZero(hardware.fp32_matrix_tflops));
  return products == F32Products::kTf32 ? std::max(tf32, exact) : exact;
}

// A program sees each die as a device.
double Dies(const Hardware& hardware) { return std::max(1.0, hardware.dies.value_or(1)); }

// Without a rate of their own 16-bit floats are multiplied as f32.  A program that takes longer
// sees slower rates.
DeviceProfile ProfileOf(const Hardware& hardware, const DeviceUse& use) {
  DeviceProfile profile;
  profile.id = hardware.id;
  profile.name = hardware.id;
  const double slower = Dies(hardware) * use.software.scale;
  const double f32 = F32Peak(hardware, use.products);
  const double sustained = SustainedFlops(hardware);
  const double bf16 = std::max(f32, std::min(sustained, PeakOrZero(hardware.bf16_tflops)));
  const double f16 = std::max(f32, std::min(sustained, PeakOrZero(hardware.fp16_tflops)));
  profile.peak_flops_per_s = {
      {"f32", f32 / slower}, {"bf16", bf16 / slower}, {"f16", f16 / slower}};
  if (hardware.fp64_tflops)
    profile.peak_flops_per_s["f64"] = PeakOrZero(hardware.fp64_tflops) / slower;
  const double bytes_per_s = *hardware.memory_gb_s * kGb * kBandwidth / slower;
  if (hardware.l2_mb) {
    // Half of it: what the node reads beside the value it shares with its neighbour.
    const auto held = static_cast<int64_t>(*hardware.l2_mb * 1e6 / 2);
    profile.memory.push_back({"L2", held, kCacheOverMemory * bytes_per_s});
  }
  profile.memory.push_back({"memory", int64_t{1} << 50, bytes_per_s});
  profile.launch_s = (use.software.eager ? kEagerLaunchSeconds : kGapSeconds) * use.software.scale;
  profile.pointwise_flops_per_s = PeakOrZero(hardware.fp32_tflops) / slower;
  profile.efficiency = {{"matmul", {{0, kLargestProducts}}},
                        {"conv", {{0, kLargestProducts * kConvolutions}}}};
  const double ramp_s = kHalfSpeedSeconds * use.software.scale;
  profile.ramp_s = {{"matmul", ramp_s}, {"conv", ramp_s}};
  profile.runtime_bytes = IsCpu(hardware) ? kHostRuntimeBytes : kContextBytes;
  profile.bytes_per_kernel = kModuleBytes;
  return profile;
}

double SheetPeak(const Hardware& hardware, const DeviceUse& use) {
  const Hardware::Number& f32 = use.products == F32Products::kTf32 && hardware.tf32_tflops
                                    ? hardware.tf32_tflops
                                    : hardware.fp32_tflops;
  const Hardware::Number& own = use.operands == DType::kBF16  ? hardware.bf16_tflops
                                : use.operands == DType::kF16 ? hardware.fp16_tflops
                                                              : f32;
  return PeakOrZero(own ? own : f32) / Dies(hardware);
}

int64_t UsableBytes(const Hardware& hardware) {
  if (!hardware.memory_gb) return 0;
  const double share = HasHbm(hardware) ? kUsableHbm : kUsableOther;
  // Sheets of GPUs say GB and mean GiB.
  const double gib = *hardware.memory_gb / Dies(hardware);
  return static_cast<int64_t>(gib * share * static_cast<double>(kGiB));
}

// Of the rate of a product of equal arithmetic.  Heads of 64 have half the arithmetic beside each
// exponential: on units for products as fast as Hopper's they wait for it.  240 TFLOP/s of cuDNN's
// attention and 176 of its deterministic gradient, at 1,024 tokens on an H200
// (bench/results/2026-11-27-gpu-steps-beside-torch-h200.json).
double AttentionShareOf(const OpDef& op, const OpCall& call, double capability) {
  const bool backward = op.name == "attention_grad";
  if (!backward && op.name != "attention") return 1;
  if (capability >= kHopper && ExtentsOf(call).head_dim <= 64) return backward ? 0.22 : 0.3;
  return backward ? 0.5 : 0.6;
}

// Of a convolution without groups, or of one of its gradients; else none.
std::optional<ConvGeometry> DenseConv(const OpDef& op, const OpCall& call) {
  std::optional<ConvGeometry> geometry = AskedGeometry(op, call);
  if (geometry && geometry->groups > 1) geometry.reset();
  return geometry;
}

// 1x3x3 windows over planes are 3x3 ones.
bool HasWinograd(const ConvGeometry& geometry) {
  const SlidingWindow& window = geometry.window;
  return window.y().IsWinograd() && window.x().IsWinograd() && window.z().kernel == 1;
}

constexpr int kAddedInput = 3;  // of a product

// Whether a product adds another tensor first: cuBLASLt does it in that tensor's bytes.
bool AddsFirst(const OpDef& op, const OpCall& call) {
  return op.name == "matmul" && call.text("epilogue").starts_with("add") &&
         call.inputs.size() == kAddedInput + 1;
}

// Of a node that joins several, those beside the one that its cost counts.  Casts are no steps:
// where they are joined, 16-bit kernels read and write what they need.
int64_t PointwiseSteps(const OpDef& op, const OpCall& call) {
  if (op.name == "fused") {
    const std::vector<ExpressionStep> steps = ParseExpression(call.text("expr"))->steps;
    const auto casts = std::count_if(steps.begin(), steps.end(), [](const ExpressionStep& step) {
      return step.op->name == "cast";
    });
    return std::max<int64_t>(0, static_cast<int64_t>(steps.size()) - casts - 1);
  }
  if (!call.attrs.contains("epilogue")) return 0;
  return static_cast<int64_t>(ParseEpilogue(call.text("epilogue"), call.where)->size());
}

double ScorePasses(const OpDef& op) {
  if (op.name == "attention") return kScorePasses;
  return op.name == "attention_grad" ? kScoreGradPasses : 0;
}

class PlannedRules : public RewriteRules {
 public:
  PlannedRules(const Roofline& model, const Hardware& hardware, const DeviceUse& use)
      : eager_(use.software.eager),
        cuda_(ComputeCapability(hardware) > 0 && !eager_),
        kernels_(cuda_ ? use.kernels : nullptr),
        f32_(PeakOrZero(hardware.fp32_tflops)),
        bf16_(std::max(PeakOrZero(hardware.bf16_tflops), f32_)),
        f16_(std::max(PeakOrZero(hardware.fp16_tflops), f32_)),
        flops_per_byte_(f32_ / model.facts().memory_bytes_per_s) {}
  bool Fuses(const OpDef& op, const OpCall& call) const override {
    if (kernels_ != nullptr) return kernels_->Fuses(op, call);
    return op.name == "matmul" || op.name == "conv" || op.name == "batch_norm" ||
           op.name == "batch_norm_grad" ||
           (cuda_ && (op.name == "softmax_cross_entropy" || op.name == "scatter"));
  }
  // On CUDA `cast` alone knows numbers of 8 bits that are floats, and of less.
  bool GroupsPointwise(DType dtype) const override {
    return !cuda_ || (!IsSmallFloat(dtype) && (!IsInteger(dtype) || IntegerBits(dtype) >= 8));
  }
  // cuDNN has no convolutions of 16 bits with results of f32.  What other programs launch to cast
  // them is in their scales.
  bool GivesF32Sums(const OpDef& op) const override {
    return !cuda_ || op.cost_class != CostClass::kConv;
  }
  bool GivesBiasGradient(DType) const override { return !cuda_; }  // cuDNN's gradients do not
  ProductMultiple MultipleOfProducts() const override {
    return cuda_ ? kTensorCoreMultiple : ProductMultiple{};
  }
  bool GroupsUpdate(const OpCall& update) const override { return cuda_ && IsSmallUpdate(update); }
  // Autocast narrows every product, whatever it gains.
  ReducedRates RatesOf(DType operands) const override {
    if (eager_) return {.speed = std::numeric_limits<double>::infinity()};
    return {.speed = (operands == DType::kF16 ? f16_ : bf16_) / f32_,
            .flops_per_byte = flops_per_byte_,
            .least_flops_per_element = 48};
  }
  std::vector<DTypeGroup> ReducedGroups(const OpDef& op) const override {
    return cuda_ ? CudaReducedGroups(op) : GpuReducedGroups(op);
  }

 private:
  const bool eager_;
  const bool cuda_;                     // kernels as ridge has them for CUDA
  const AbsentKernels* const kernels_;  // may be null
  const double f32_, bf16_, f16_;       // TFLOP/s of products, by their operands
  const double flops_per_byte_;
};

}  // namespace

Result<PlannedHardware> PlanHardware(const Hardware& hardware, const DeviceUse& use) {
  std::vector<std::string> missing;
  const bool may_lack = IsCpu(hardware) && !use.needs_memory;
  if (!hardware.memory_gb && !may_lack) missing.emplace_back("memory_gb");
  if (!hardware.memory_gb_s) missing.emplace_back("memory_gb_s");
  if (!hardware.fp32_tflops) missing.emplace_back("fp32_tflops");
  if (use.linear_fp8 && !hardware.fp8_tflops) missing.emplace_back("fp8_tflops");
  if (missing.empty())
    return PlannedHardware{ProfileOf(hardware, use), UsableBytes(hardware),
                           SheetPeak(hardware, use),
                           IsCpu(hardware) ? 0 : hardware.host_link_gb_s.value_or(0) * kGb,
                           IsCpu(hardware) ? 0 : kContextBytes - kLeastContextBytes};
  return Status(ErrorCode::kUnsupported,
                fmt::format("{}: {} {} not known, so nothing can be planned for it. hint: `ridge "
                            "devices show {} --toml` begins a file of your own",
                            hardware.id, fmt::join(missing, ", "),
                            missing.size() == 1 ? "is" : "are", hardware.id));
}

double SustainedShare(const Hardware& hardware, const std::string& precision) {
  double peak = 0, sustained = SustainedFlops(hardware);
  if (precision == "bf16") peak = PeakOrZero(hardware.bf16_tflops);
  if (precision == "f16") peak = PeakOrZero(hardware.fp16_tflops);
  if (precision == "fp8" && hardware.fp8_tflops)
    return Fp8Flops(hardware) / PeakOrZero(hardware.fp8_tflops);
  if (precision == "tf32") {
    peak = PeakOrZero(hardware.tf32_tflops);
    sustained /= 2;
  }
  return peak > 0 ? std::min(1.0, sustained / peak) : 1;
}

int64_t EagerKernels(const OpDef& op, const OpCall& call) { return 1 + PointwiseSteps(op, call); }

PlannedDevice::PlannedDevice(const Hardware& hardware, const DeviceUse& use)
    : hardware_(hardware),
      eager_(use.software.eager),
      reduced_(use.operands != DType::kF32),
      capability_(ComputeCapability(hardware)),
      pads_(capability_ >= 7),  // it has matrix units of 16 bits
      copies_images_(pads_ && use.software.channels_first),
      winograd_(ComputeCapability(hardware) > 0 && use.products == F32Products::kExact),
      fp8_speed_(use.linear_fp8 ? Fp8Speed(hardware) : 0),
      ramp_s_(kHalfSpeedSeconds * use.software.scale),
      workspaces_(hardware, use.products == F32Products::kTf32, use.ask_conv, use.kernels),
      model_(ProfileOf(hardware, use)),
      rules_(std::make_unique<PlannedRules>(model_, hardware, use)) {}

// CUDA's: addresses of 256 bytes restrict no kernel, memory comes in pieces of 2 MiB.
MemorySpace PlannedDevice::memory() {
  if (IsCpu(hardware_)) return {};
  return {.alignment_bytes = 256, .page_bytes = 2 * kMiB, .shared = false, .host_visible = false};
}

bool PlannedDevice::Multiplies(DType operands) const {
  if (operands == DType::kBF16) return hardware_.bf16_tflops.has_value();
  if (operands == DType::kF16) return hardware_.fp16_tflops.has_value();
  return true;
}

KernelCandidates PlannedDevice::Candidates(const OpDef& op, const OpCall& call,
                                           std::span<const LayoutId>) {
  KernelCandidates candidates;
  KernelChoice choice = ChoiceFor(op, call);
  if (eager_) {
    choice.extra_s = EagerSeconds(op, call);
  } else if (const auto padded = pads_ ? PaddedCall(op, call) : std::nullopt) {
    const TensorType& image = call.inputs[0];
    const double copy_s = model_.CopySeconds(image, Reorder(image, kRowMajor, kPaddedChannels));
    choice.extra_s = copy_s + PaddingSeconds(image) + kTieSeconds;
    candidates.choices.push_back(PaddedChoice(op, call, *padded));
  }
  candidates.choices.push_back(std::move(choice));
  return candidates;
}

KernelChoice PlannedDevice::ChoiceFor(const OpDef& op, const OpCall& call) const {
  KernelChoice choice = RowMajorChoice(op, call, hardware_.id + "." + op.name);
  if (!IsCpu(hardware_) && !eager_ && AddsFirst(op, call)) choice.in_place = {{0, kAddedInput}};
  workspaces_.Set(op, call, choice);
  choice.efficiency = EfficiencyOf(op, call);
  choice.extra_s = Fp8CastSeconds(op, call);
  return choice;
}

double PlannedDevice::Fp8CastSeconds(const OpDef& op, const OpCall& call) const {
  if (fp8_speed_ == 0 || !IsLinearLayer(op, call)) return 0;
  const DeviceFacts& facts = model_.facts();
  const auto elements = static_cast<double>(call.inputs[0].elements() + call.inputs[1].elements());
  return kFp8CastTraffic * elements / facts.memory_bytes_per_s + 2 * facts.launch_s;
}

// Weights are padded in the workspace.
KernelChoice PlannedDevice::PaddedChoice(const OpDef& op, const OpCall& call,
                                         const OpCall& padded) const {
  KernelChoice choice = RowMajorChoice(op, call, hardware_.id + "." + op.name);
  workspaces_.Set(op, padded, choice);
  const int64_t weights = (op.name == "conv" ? padded.inputs[1] : padded.outputs[0]).bytes();
  choice.workspace_bytes += weights;
  if (choice.answer) choice.answer->first_bytes += weights;
  choice.input_layouts[0] = kPaddedChannels;
  choice.efficiency = EfficiencyOf(op, call);
  choice.extra_s = PaddingSeconds(call.inputs[0]);
  return choice;
}

double PlannedDevice::PaddingSeconds(const TensorType& image) const {
  return static_cast<double>(PaddedBytes(image) - image.bytes()) /
         model_.facts().memory_bytes_per_s;
}

// A choice has one efficiency for arithmetic and bytes.  This one makes the node take the longer of
// its arithmetic at the share and its bytes at the rate of a stream.
double PlannedDevice::EfficiencyOf(const OpDef& op, const OpCall& call) const {
  const double share = ArithmeticShareOf(op, call);
  if (share == 1) return 1;
  Work arithmetic = WorkOf(&op, call, CallCost(op, call)), stream = arithmetic;
  arithmetic.cost.bytes_read = arithmetic.cost.bytes_written = 0;
  stream.cost.flops = 0;
  const auto seconds_of = [&](const Work& work) {
    return model_.Seconds(work, KernelChoice()) - model_.facts().launch_s;
  };
  const double arithmetic_s = seconds_of(arithmetic), stream_s = seconds_of(stream);
  // What short products lose, they lose in 8 bits, too.
  const double lost_s = fp8_speed_ > 0 && IsLinearLayer(op, call) ? ramp_s_ : 0;
  return std::max(arithmetic_s, stream_s) /
         std::max((arithmetic_s - lost_s) / share + lost_s, stream_s);
}

double PlannedDevice::ArithmeticShareOf(const OpDef& op, const OpCall& call) const {
  if (fp8_speed_ > 0 && IsLinearLayer(op, call)) return fp8_speed_;
  const double attention = AttentionShareOf(op, call, eager_ ? 0 : capability_);
  if (!winograd_ || call.inputs.empty() || call.inputs[0].dtype != DType::kF32) return attention;
  const std::optional<ConvGeometry> geometry = DenseConv(op, call);
  return geometry && HasWinograd(*geometry) ? kWinograd : attention;
}

double PlannedDevice::BestEfficiency(const OpDef& op, const OpCall& call) {
  return EfficiencyOf(op, call);
}

double PlannedDevice::ImageCopySeconds(const OpDef& op, const OpCall& call) const {
  if (!copies_images_ || call.inputs.empty() || BytesPerElement(call.inputs[0].dtype) != 2 ||
      !DenseConv(op, call))
    return 0;
  const int64_t elements =
      call.inputs[0].elements() + call.inputs[1].elements() + call.outputs[0].elements();
  const DeviceFacts& facts = model_.facts();
  return kImageCopyTraffic * static_cast<double>(elements) / facts.memory_bytes_per_s +
         static_cast<double>(kImagesOfConv) * facts.launch_s;
}

double PlannedDevice::EagerSeconds(const OpDef& op, const OpCall& call) const {
  const DeviceFacts& facts = model_.facts();
  double bytes = 0;
  const int64_t steps = PointwiseSteps(op, call);
  if (steps > 0)
    bytes = static_cast<double>(steps) * kPointwiseTraffic *
            static_cast<double>(call.outputs[0].bytes());
  if (reduced_ && op.name.starts_with("layer_norm"))
    bytes = kAutocastTraffic * static_cast<double>(call.outputs[0].elements());
  if (const double passes = ScorePasses(op); passes > 0)
    bytes = passes * static_cast<double>(ScoresOf(call) * BytesPerElement(call.inputs[0].dtype));
  return bytes / facts.memory_bytes_per_s + static_cast<double>(steps) * facts.launch_s +
         ImageCopySeconds(op, call);
}

int64_t PlannedDevice::LayoutBytes(LayoutId layout, const TensorType& type) const {
  return layout == kPaddedChannels ? PaddedBytes(type) : type.bytes();
}

std::string PlannedDevice::LayoutName(LayoutId layout) const {
  return layout == kPaddedChannels ? "padded_channels" : "row_major";
}

KernelChoice PlannedDevice::Reorder(const TensorType& type, LayoutId from, LayoutId to) {
  KernelChoice choice;
  choice.kernel = hardware_.id + ".pad_channels";
  choice.input_layouts = {from};
  choice.output_layouts = {to};
  choice.extra_s = PaddingSeconds(type);
  return choice;
}

}  // namespace ridge
