// DeviceWorkspaces: the scratch that kernels take on a device that is not here.
//
// On GPUs of NVIDIA's convolutions take what cuDNN answered, on record (conv_workspaces.h) or now,
// attention of 16 bits what its answers obey, and what runs in kernels of ours their bytes;
// products and all operators of other GPUs have an upper bound.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "ridge/lower/absent_kernels.h"
#include "ridge/lower/kernel_query.h"
#include "ridge/plan/hardware/conv_workspaces.h"
#include "ridge/plan/hardware/hardware.h"

namespace ridge {

class DeviceWorkspaces {
 public:
  // `tf32`: products of f32 are rounded to it.  `ask` and `kernels` may be null; `kernels` outlives
  // this.
  DeviceWorkspaces(const Hardware& hardware, bool tf32, AskConv ask, const AbsentKernels* kernels);

  // Sets workspace_bytes and is_bound; where a library may answer, key, and where it did, answer.
  void Set(const OpDef& op, const OpCall& call, KernelChoice& choice) const;

 private:
  bool HasFormula(const OpDef& op, const OpCall& call) const;
  int64_t Bound(const OpDef& op, const OpCall& call) const;
  std::optional<std::string> QuestionAbout(const OpDef& op, const OpCall& call) const;

  const std::string device_;
  const bool is_cpu_, tf32_;
  const double capability_;
  const AskConv ask_;
  const AbsentKernels* const kernels_;
};

// Pairs of a query and a key of an attention's call.
int64_t ScoresOf(const OpCall& call);

}  // namespace ridge
