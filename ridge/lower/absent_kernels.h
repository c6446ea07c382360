// AbsentKernels: what a backend says of its kernels on a device that is not here, by calls alone.
#pragma once
#include <cstdint>
#include <optional>

#include "ridge/graph/op_def.h"

namespace ridge {

struct WorkspaceBytes {
  int64_t bytes = 0;
  bool is_bound = false;  // in another layout of the operands the kernel takes less
};

class AbsentKernels {
 public:
  virtual ~AbsentKernels() = default;

  // Of the backend's own kernel for the call, on any device.  None where a run leaves the call to a
  // library, and where no kernel takes it.  `library_bytes` is what the library would take, which
  // may be more than a run allows it.
  virtual std::optional<WorkspaceBytes> Workspace(const OpDef& op, const OpCall& call,
                                                  int64_t library_bytes) const = 0;
  // RewriteRules::Fuses, with the libraries that a run opens.
  virtual bool Fuses(const OpDef& op, const OpCall& call) const = 0;
};

}  // namespace ridge
