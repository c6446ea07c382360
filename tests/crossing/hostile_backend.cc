#include "tests/crossing/hostile_backend.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ridge/backend/cpu/host_device.h"
#include "ridge/backend/host_kernel.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/core/random.h"

namespace ridge::crossing {
namespace {

constexpr LayoutId kBackwards = 1, kTurned = 2;
constexpr int64_t kPadding = 64;
// Of the nominal device: small nodes take long enough to be worth a lane.
constexpr double kUsual = 1e-3, kSlow = 1e-5;

int64_t BytesIn(LayoutId layout, const TensorType& type) {
  return layout == kRowMajor || type.elements() == 0 ? type.bytes()
                                                     : type.bytes() + kPadding * layout;
}

// Where element i of n lies.
int64_t PlaceOf(LayoutId layout, int64_t i, int64_t n) {
  if (layout == kBackwards) return n - 1 - i;
  return layout == kTurned ? (i + 1) % n : i;
}

std::vector<std::byte> Unpacked(LayoutId layout, const TensorType& type, const void* from) {
  const auto size = static_cast<size_t>(BytesPerElement(type.dtype));
  std::vector<std::byte> plain(static_cast<size_t>(type.bytes()));
  for (int64_t i = 0, n = type.elements(); i < n; ++i) {
    std::memcpy(
        plain.data() + static_cast<size_t>(i) * size,
        static_cast<const std::byte*>(from) + static_cast<size_t>(PlaceOf(layout, i, n)) * size,
        size);
  }
  return plain;
}

void PackInto(LayoutId layout, const TensorType& type, const std::vector<std::byte>& plain,
              void* to) {
  const auto size = static_cast<size_t>(BytesPerElement(type.dtype));
  std::memset(to, 0, static_cast<size_t>(BytesIn(layout, type)));
  for (int64_t i = 0, n = type.elements(); i < n; ++i) {
    std::memcpy(static_cast<std::byte*>(to) + static_cast<size_t>(PlaceOf(layout, i, n)) * size,
                plain.data() + static_cast<size_t>(i) * size, size);
  }
}

void FillWorkspace(const KernelChoice& choice, void* workspace) {
  if (workspace != nullptr)
    std::memset(workspace, 0xFF, static_cast<size_t>(choice.workspace_bytes));
}

// Reads all operands before it writes anything.
class HostileKernel : public HostKernel<HostileKernel> {
 public:
  HostileKernel(OpCall call, KernelChoice choice, std::unique_ptr<Kernel> inner,
                int64_t inner_bytes)
      : call_(std::move(call)),
        choice_(std::move(choice)),
        inner_(std::move(inner)),
        scratch_(static_cast<size_t>(inner_bytes / 8 + 1)) {}

  Status Run(const KernelBuffers& buffers) {
    std::vector<std::vector<std::byte>> inputs, outputs;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const bool there = call_.has_input(i);
      inputs.push_back(there
                           ? Unpacked(choice_.input_layouts[i], call_.inputs[i], buffers.inputs[i])
                           : std::vector<std::byte>());
      from.push_back(there ? inputs.back().data() : nullptr);
    }
    for (const TensorType& type : call_.outputs) {
      outputs.emplace_back(static_cast<size_t>(type.bytes()));
      to.push_back(outputs.back().data());
    }
    FillWorkspace(choice_, buffers.workspace);
    RIDGE_RETURN_IF_ERROR(cpu::RunOnHost(*inner_, {from, to, scratch_.data()}));
    for (size_t k = 0; k < outputs.size(); ++k)
      PackInto(choice_.output_layouts[k], call_.outputs[k], outputs[k], buffers.outputs[k]);
    return Status();
  }

 private:
  const OpCall call_;
  const KernelChoice choice_;
  const std::unique_ptr<Kernel> inner_;
  std::vector<double> scratch_;
};

class HostileReorder : public HostKernel<HostileReorder> {
 public:
  HostileReorder(TensorType type, KernelChoice choice)
      : type_(std::move(type)), choice_(std::move(choice)) {}

  Status Run(const KernelBuffers& buffers) {
    const auto plain = Unpacked(choice_.input_layouts[0], type_, buffers.inputs[0]);
    FillWorkspace(choice_, buffers.workspace);
    PackInto(choice_.output_layouts[0], type_, plain, buffers.outputs[0]);
    return Status();
  }

 private:
  const TensorType type_;
  const KernelChoice choice_;
};

class HostileBackend : public Backend {
 public:
  const RewriteRules& rules() const override { return inner_->rules(); }
  const CostModel& nominal() const override { return inner_->nominal(); }
  const std::string& name() const override { return inner_->name(); }
  int threads() const override { return 1; }
  Device& device() override { return inner_->device(); }
  bool Multiplies(DType) const override { return false; }

  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    KernelChoice plain = inner_->Candidates(op, call, available).choices.at(0);
    const uint64_t drawn = StableHash(plain.key);
    plain.workspace_bytes = static_cast<int64_t>(drawn % 3 * 96);
    plain.efficiency = kUsual;
    KernelCandidates candidates;
    candidates.choices.push_back(plain);
    if (op.cost_class == CostClass::kOptimizer) {
      AddOptimizers(call, plain, candidates);
      std::erase_if(candidates.choices, [&](const KernelChoice& choice) {
        return !std::equal(available.begin(), available.end(), choice.input_layouts.begin());
      });
      if (candidates.choices.empty()) candidates.choices.push_back(plain);
    } else if (drawn / 3 % 2 == 0) {
      candidates.choices[0].efficiency = kSlow;
      candidates.choices.push_back(InLayouts(call, plain, drawn / 6));
    }
    for (KernelChoice& choice : candidates.choices) Finish(call, choice);
    return candidates;
  }
  KernelCandidates SerialCandidates(const OpDef& op, const OpCall& call,
                                    std::span<const LayoutId> available) override {
    return Candidates(op, call, available);
  }
  int64_t LayoutBytes(LayoutId layout, const TensorType& type) const override {
    return BytesIn(layout, type);
  }
  std::string LayoutName(LayoutId layout) const override {
    return layout == kRowMajor ? "row_major" : layout == kBackwards ? "backwards" : "turned";
  }
  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override {
    KernelChoice choice;
    choice.kernel = "reorder";
    choice.input_layouts = {from};
    choice.output_layouts = {to};
    choice.workspace_bytes = 32;
    choice.key = "reorder " + TypeToString(type) + LayoutName(from) + LayoutName(to);
    return choice;
  }
  std::optional<KernelChoice> SerialReorder(const TensorType& type, LayoutId from,
                                            LayoutId to) override {
    return Reorder(type, from, to);
  }
  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    const std::vector<LayoutId> plain(call.inputs.size(), kRowMajor);
    const KernelChoice reference = inner_->Candidates(op, call, plain).choices.at(0);
    RIDGE_ASSIGN_OR_RETURN(auto kernel, inner_->Create(op, call, reference));
    return std::unique_ptr<Kernel>(std::make_unique<HostileKernel>(call, choice, std::move(kernel),
                                                                   reference.workspace_bytes));
  }
  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                const KernelChoice& choice) override {
    return std::unique_ptr<Kernel>(std::make_unique<HostileReorder>(type, choice));
  }

 private:
  static bool HasLayouts(const TensorType& type) { return type.rank() > 0 && IsFloat(type.dtype); }

  // Half of the kernels agree on a layout for each type, so that weights have one that all of their
  // readers want.
  static KernelChoice InLayouts(const OpCall& call, KernelChoice choice, uint64_t drawn) {
    const bool agreed = drawn % 2 == 0;
    drawn /= 2;
    const auto next = [&](const TensorType& type) {
      if (agreed) return static_cast<LayoutId>(StableHash(TypeToString(type)) % 3);
      const uint64_t layout = drawn % 3;
      drawn /= 3;
      return static_cast<LayoutId>(layout);
    };
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      if (call.has_input(i) && HasLayouts(call.inputs[i]))
        choice.input_layouts[i] = next(call.inputs[i]);
    }
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      if (HasLayouts(call.outputs[k])) choice.output_layouts[k] = next(call.outputs[k]);
    }
    return choice;
  }

  // All tensors like the parameter in one layout; or one of them, the gradient, row-major.
  static void AddOptimizers(const OpCall& call, const KernelChoice& plain,
                            KernelCandidates& candidates) {
    const TensorType& type = call.outputs[0];
    for (const LayoutId layout : {kBackwards, kTurned}) {
      KernelChoice same = plain;
      std::vector<size_t> alike;
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        if (call.has_input(i) && call.inputs[i] == type) alike.push_back(i);
      }
      for (const size_t i : alike) same.input_layouts[i] = layout;
      std::fill(same.output_layouts.begin(), same.output_layouts.end(), layout);
      candidates.choices.push_back(same);
      for (const size_t i : alike) {
        candidates.choices.push_back(same);
        candidates.choices.back().input_layouts[i] = kRowMajor;
      }
    }
  }

  // Pairs that may share bytes, and the key.
  void Finish(const OpCall& call, KernelChoice& choice) const {
    choice.kernel = "hostile";
    choice.in_place.clear();
    for (size_t k = 0; k < call.outputs.size(); ++k) {
      for (size_t i = 0; i < call.inputs.size(); ++i) {
        if (call.has_input(i) && BytesIn(choice.input_layouts[i], call.inputs[i]) ==
                                     BytesIn(choice.output_layouts[k], call.outputs[k]))
          choice.in_place.emplace_back(static_cast<int>(k), static_cast<int>(i));
      }
    }
    for (const LayoutId layout : choice.input_layouts) choice.key += " " + LayoutName(layout);
    choice.key += " ->";
    for (const LayoutId layout : choice.output_layouts) choice.key += " " + LayoutName(layout);
  }

  std::unique_ptr<Backend> inner_ = MakeReferenceBackend();
};

}  // namespace

std::unique_ptr<Backend> MakeHostileBackend() { return std::make_unique<HostileBackend>(); }

}  // namespace ridge::crossing
