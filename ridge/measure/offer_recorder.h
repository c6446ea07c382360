// OfferRecorder: wraps a backend and records its offers to the planner.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"

namespace ridge {

// A node's call and the kernels offered for it; `op` is nullptr for a reorder.
struct RecordedOffers {
  const OpDef* op = nullptr;
  OpCall call;
  std::vector<KernelChoice> choices;
};

class OfferRecorder : public Backend {
 public:
  explicit OfferRecorder(Backend& backend) : backend_(backend) {}

  // By the keys of the choices, in a fixed order.
  const std::map<std::string, RecordedOffers>& recorded() const { return recorded_; }

  const RewriteRules& rules() const override { return backend_.rules(); }
  const CostModel& nominal() const override { return backend_.nominal(); }
  const std::string& name() const override { return backend_.name(); }
  int threads() const override { return backend_.threads(); }
  Device& device() override { return backend_.device(); }
  bool Multiplies(DType operands) const override { return backend_.Multiplies(operands); }
  KernelOffers Offers(const OpDef& op, const OpCall& call,
                      std::span<const LayoutId> available) override;
  // Not recorded: only the nominal device chooses one-thread kernels.
  KernelOffers SerialOffers(const OpDef& op, const OpCall& call,
                            std::span<const LayoutId> available) override {
    return backend_.SerialOffers(op, call, available);
  }
  std::optional<KernelChoice> SerialReorder(const TensorType& type, LayoutId from,
                                            LayoutId to) override {
    return backend_.SerialReorder(type, from, to);
  }
  int64_t LayoutBytes(LayoutId layout, const TensorType& type) const override {
    return backend_.LayoutBytes(layout, type);
  }
  std::string LayoutName(LayoutId layout) const override { return backend_.LayoutName(layout); }
  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override;
  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    return backend_.Create(op, call, choice);
  }
  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                const KernelChoice& choice) override {
    return backend_.CreateReorder(type, choice);
  }

 private:
  void Record(RecordedOffers offers);

  Backend& backend_;
  std::map<std::string, RecordedOffers> recorded_;
};

}  // namespace ridge
