#include "ridge/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <map>
#include <set>

#include "ridge/backend/cuda/absent_gpu.h"
#include "ridge/backend/cuda/cuda_kernel.h"
#include "ridge/backend/cuda/nominal_gpu.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/backend/cuda/waiting_kernel.h"
#include "ridge/core/files.h"
#include "ridge/lower/group_updates.h"
#include "ridge/lower/reduced_groups.h"
#include "ridge/lower/roofline.h"

namespace ridge::cuda {
namespace {

// Of a kernel of ours where a library has one too: ours use no units for products.
constexpr double kBesideLibrary = 0.05;
// Of a library's convolution in row-major where it has one in channels-last too: units for products
// take the channels of a position, so others come by copies.
constexpr double kRowMajorConv = 0.3;

void PreferChannelsLast(const OpCall& call, std::vector<KernelChoice>& choices) {
  const auto last = [&](const KernelChoice& choice) { return IsChannelsLast(call, choice); };
  if (std::none_of(choices.begin(), choices.end(), last)) return;
  for (KernelChoice& choice : choices) {
    if (!last(choice)) choice.efficiency *= kRowMajorConv;
  }
}

class CudaRules : public RewriteRules {
 public:
  // `libraries` outlives the rules.
  CudaRules(const DeviceProfile& profile, const KernelLibraries& libraries)
      : libraries_(libraries) {
    const double f32 = profile.peak_flops_per_s.at("f32");
    rates_.speed = profile.peak_flops_per_s.at("bf16") / f32;
    rates_.flops_per_byte = f32 / profile.memory.back().bytes_per_s;
    rates_.least_flops_per_element = 48;  // a depthwise convolution has 9, a 1x1 one of 64 128
  }
  bool Fuses(const OpDef& op, const OpCall& call) const override {
    if (!JoinsSteps(op)) return false;
    for (const std::unique_ptr<KernelLibrary>& library : libraries_) {
      if (library->Knows(op)) return FusesIn(*library, op, call);
    }
    return WriteKernel(op, call).ok();
  }
  bool GroupsPointwise(DType dtype) const override { return StorageType(dtype) != nullptr; }
  bool GivesF32Sums(const OpDef& op) const override {
    return std::all_of(libraries_.begin(), libraries_.end(), [&](const auto& library) {
      return !library->Knows(op) || library->GivesF32Sums(op);
    });
  }
  bool GivesBiasGradient(DType operands) const override {
    return std::all_of(libraries_.begin(), libraries_.end(),
                       [&](const auto& library) { return library->GivesBiasGradient(operands); });
  }
  ProductMultiple MultipleOfProducts() const override {
    static const OpDef& matmul = *FindOp("matmul");
    const bool by_library = std::any_of(libraries_.begin(), libraries_.end(),
                                        [](const auto& library) { return library->Knows(matmul); });
    return by_library ? kTensorCoreMultiple : ProductMultiple{};
  }
  bool GroupsUpdate(const OpCall& update) const override { return IsSmallUpdate(update); }
  ReducedRates RatesOf(DType) const override { return rates_; }
  std::vector<DTypeGroup> ReducedGroups(const OpDef& op) const override {
    return CudaReducedGroups(op);
  }

 private:
  // What a library cannot join is two nodes: its kernel and ours behind are faster than one of
  // ours.
  static bool FusesIn(KernelLibrary& library, const OpDef& op, const OpCall& call) {
    KernelCandidates found;
    library.AddCandidates(op, call, {}, found);
    return !found.choices.empty();
  }

  const KernelLibraries& libraries_;
  ReducedRates rates_;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(CudaDevice& device, KernelCompiler compiler, KernelLibraries libraries,
              const BackendOptions& options)
      : libraries_(std::move(libraries)),
        options_(options),
        device_(device),
        compiler_(std::move(compiler)) {}

  const RewriteRules& rules() const override { return rules_; }
  const CostModel& nominal() const override { return nominal_; }
  const std::string& name() const override { return name_; }
  int threads() const override { return 1; }
  Device& device() override { return device_; }
  bool Multiplies(DType operands) const override { return IsFloat(operands); }

  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    KernelCandidates found;
    for (const std::unique_ptr<KernelLibrary>& library : libraries_) {
      if (library->Knows(op)) library->AddCandidates(op, call, available, found);
    }
    if (op.cost_class == CostClass::kConv) PreferChannelsLast(call, found.choices);
    for (KernelChoice& choice : found.choices) TakeEitherLayout(call, available, choice);
    const double efficiency = found.choices.empty() ? 1 : kBesideLibrary;
    KernelCandidates written = WrittenCandidates(op, call, available);
    for (KernelChoice& choice : written.choices) {
      choice.efficiency *= efficiency;
      found.choices.push_back(std::move(choice));
    }
    for (KernelRefusal& refusal : written.refusals) found.refusals.push_back(std::move(refusal));
    return found;
  }
  KernelCandidates SerialCandidates(const OpDef&, const OpCall&,
                                    std::span<const LayoutId>) override {
    return {};
  }
  int64_t LayoutBytes(LayoutId, const TensorType& type) const override { return type.bytes(); }
  std::string LayoutName(LayoutId layout) const override { return LayoutNameOf(layout); }
  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override {
    return ReorderChoice(type, from, to);
  }
  std::optional<KernelChoice> SerialReorder(const TensorType&, LayoutId, LayoutId) override {
    return std::nullopt;
  }

  void Prepare(std::span<const KernelRequest> requests) override {
    std::set<std::string> sources;
    for (const KernelRequest& request : requests) {
      if (LibraryOf(*request.choice) != nullptr) continue;
      const Result<WrittenKernel> written =
          WriteChoice(*request.op, *request.call, *request.choice);
      if (written.ok() && !written->text.launches.empty()) sources.insert(written->text.source);
    }
    compiler_.CompileAll({sources.begin(), sources.end()});
  }

  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, CreateFor(op, call, choice));
    return Watch(std::move(kernel), call.where);
  }
  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                const KernelChoice& choice) override {
    return KernelOf(ReorderText(type, choice.input_layouts.at(0)));
  }
  std::unique_ptr<Kernel> Watch(std::unique_ptr<Kernel> kernel, const std::string& where) override {
    return options_.waits_for_each ? WaitForEach(std::move(kernel), where) : std::move(kernel);
  }

 private:
  Result<std::unique_ptr<Kernel>> CreateFor(const OpDef& op, const OpCall& call,
                                            const KernelChoice& choice) {
    if (KernelLibrary* library = LibraryOf(choice)) return library->Create(op, call, choice);
    Result<WrittenKernel> written = WriteChoice(op, call, choice);
    if (!written.ok()) {
      return Status(ErrorCode::kUnsupported, call.where + ": this version of ridge has no kernel " +
                                                 choice.kernel + " for it");
    }
    return KernelOf(std::move(written->text));
  }

  // nullptr: the choice is a kernel of ours.
  KernelLibrary* LibraryOf(const KernelChoice& choice) const {
    const auto found = std::find_if(libraries_.begin(), libraries_.end(),
                                    [&](const auto& library) { return library->Makes(choice); });
    return found == libraries_.end() ? nullptr : found->get();
  }

  Result<std::unique_ptr<Kernel>> KernelOf(KernelText text) {
    RIDGE_ASSIGN_OR_RETURN(std::shared_ptr<CudaModule> module, ModuleOf(text));
    return CudaKernel::Create(device_.context(), std::move(module), std::move(text.launches));
  }

  // Nodes of equal text share one as long as one of them lives.
  Result<std::shared_ptr<CudaModule>> ModuleOf(const KernelText& text) {
    if (text.launches.empty()) return std::shared_ptr<CudaModule>();
    std::weak_ptr<CudaModule>& kept = modules_[text.source];
    if (std::shared_ptr<CudaModule> module = kept.lock()) return module;
    RIDGE_ASSIGN_OR_RETURN(const std::string code, compiler_.Compile(text.source));
    RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<CudaModule> loaded,
                           CudaModule::Load(device_.context(), code));
    std::shared_ptr<CudaModule> module = std::move(loaded);
    kept = module;
    return module;
  }

  const std::string name_ = "cuda";
  const KernelLibraries libraries_;  // they go after the kernels
  const BackendOptions options_;
  const CudaRules rules_{NominalGpuProfile(), libraries_};
  const Roofline nominal_{NominalGpuProfile()};
  CudaDevice& device_;
  KernelCompiler compiler_;
  std::map<std::string, std::weak_ptr<CudaModule>> modules_;  // by source
};

}  // namespace

std::unique_ptr<Backend> MakeCudaBackend(CudaDevice& device, KernelCompiler compiler,
                                         KernelLibraries libraries, const BackendOptions& options) {
  return std::make_unique<CudaBackend>(device, std::move(compiler), std::move(libraries), options);
}

std::string CubinFolder() { return CacheFolder() + "/cubin"; }

}  // namespace ridge::cuda
