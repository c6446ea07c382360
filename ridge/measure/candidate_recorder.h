// CandidateRecorder: wraps a backend and records its kernel candidates.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/backend/forwarding_backend.h"

namespace ridge {

// A node's call and the kernels offered for it; `op` is nullptr for a reorder.
struct RecordedCandidates {
  const OpDef* op = nullptr;
  OpCall call;
  std::vector<KernelChoice> choices;
};

// One-thread kernels are not recorded: only the nominal device chooses them.
class CandidateRecorder : public ForwardingBackend {
 public:
  using ForwardingBackend::ForwardingBackend;

  // By the keys of the choices, in a fixed order.
  const std::map<std::string, RecordedCandidates>& recorded() const { return recorded_; }

  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override;
  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override;

 private:
  void Record(RecordedCandidates candidates);

  std::map<std::string, RecordedCandidates> recorded_;
};

}  // namespace ridge
