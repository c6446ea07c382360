// KernelLibrary: kernels of a library of NVIDIA's, beside those whose text we write.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"

namespace ridge::cuda {

struct LibraryOptions {
  bool tf32 = false;         // products of f32 are rounded to it
  bool all_kernels = false;  // also those that are chosen only by measured times
};

class KernelLibrary {
 public:
  virtual ~KernelLibrary() = default;
  virtual const std::string& version() const = 0;  // "cuBLASLt 13.1.0"
  virtual const std::string& path() const = 0;     // "/usr/local/cuda/lib64/libcublasLt.so.13"
  // Whether the library is asked about calls of this operator.
  virtual bool Knows(const OpDef& op) const = 0;
  // Whether its kernels of this operator with operands of 16 bits can write their sums in f32.
  virtual bool GivesF32Sums(const OpDef&) const { return true; }
  // Whether its conv_grad_weight of such operands gives the gradient of the bias too.
  virtual bool GivesBiasGradient(DType) const { return true; }
  // Adds the library's kernels for the call, best first, or why it has none.  The same question has
  // the same answer as long as the library is open.  REQUIRES: Knows(op).
  virtual void AddCandidates(const OpDef& op, const OpCall& call,
                             std::span<const LayoutId> available, KernelCandidates& found) = 0;
  // Whether `choice` is one of its.
  virtual bool Makes(const KernelChoice& choice) const = 0;
  // REQUIRES: Makes(choice).
  virtual Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                                 const KernelChoice& choice) = 0;
};

// "cuBLASLt 13.1.0 (/usr/local/cuda/lib64/libcublasLt.so.13)"
std::string VersionAndPath(const KernelLibrary& library);

using KernelLibraries = std::vector<std::unique_ptr<KernelLibrary>>;

}  // namespace ridge::cuda
