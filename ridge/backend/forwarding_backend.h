// ForwardingBackend: answers as another backend does.  A class that derives from it overrides what
// it watches or changes.
#pragma once
#include <memory>
#include <string>

#include "ridge/backend/backend.h"

namespace ridge {

class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(Backend& inner) : inner_(inner) {}  // outlives this

  const RewriteRules& rules() const override { return inner_.rules(); }
  const CostModel& nominal() const override { return inner_.nominal(); }
  const std::string& name() const override { return inner_.name(); }
  int threads() const override { return inner_.threads(); }
  Device& device() override { return inner_.device(); }
  bool Multiplies(DType operands) const override { return inner_.Multiplies(operands); }
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    return inner_.Candidates(op, call, available);
  }
  KernelCandidates SerialCandidates(const OpDef& op, const OpCall& call,
                                    std::span<const LayoutId> available) override {
    return inner_.SerialCandidates(op, call, available);
  }
  int64_t LayoutBytes(LayoutId layout, const TensorType& type) const override {
    return inner_.LayoutBytes(layout, type);
  }
  std::string LayoutName(LayoutId layout) const override { return inner_.LayoutName(layout); }
  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override {
    return inner_.Reorder(type, from, to);
  }
  std::optional<KernelChoice> SerialReorder(const TensorType& type, LayoutId from,
                                            LayoutId to) override {
    return inner_.SerialReorder(type, from, to);
  }
  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    return inner_.Create(op, call, choice);
  }
  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                const KernelChoice& choice) override {
    return inner_.CreateReorder(type, choice);
  }
  std::unique_ptr<Kernel> Watch(std::unique_ptr<Kernel> kernel, const std::string& where) override {
    return inner_.Watch(std::move(kernel), where);
  }

 protected:
  Backend& inner_;
};

}  // namespace ridge
