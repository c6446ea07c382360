// PrimitivePlan: wraps one oneDNN primitive as a Kernel, with reorders around it where needed.
//
// An operator's file makes the primitive descriptor, with `any` where oneDNN may choose, and binds
// each of our tensors to an argument.  A tensor whose layout in the choice differs from what the
// primitive requires is reordered inside the kernel, through the workspace.  So the same code
// offers the blocked kernel (layouts of the primitive) and the row-major one.
//
// The scratchpad is part of the workspace.  Run() sets pointers and executes arrays of arguments
// that were built once; it allocates nothing (what oneDNN allocates in a call is under 500 bytes,
// except for packing products, whose buffers are in KernelChoice::heap_bytes).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/layouts.h"

namespace ridge::cpu {

// Which buffers of a kernel an argument points into.
enum class ArgSource : uint8_t { kInput, kOutput, kWorkspace };

// Where a kernel's layouts come from.
enum class LayoutSource : uint8_t { kPrimitive, kRowMajor, kChoice };

class PrimitivePlan {
 public:
  // `choice` is read with kChoice only.
  PrimitivePlan(const CandidateQuery& q, LayoutSource source, const KernelChoice* choice);

  // Binds input or output `index` of the call to argument `arg`, which the primitive reads or
  // writes as `wanted`.  `row_major`: the row-major tensor with the primitive's dimensions.
  void BindInput(int arg, int index, const dnnl::memory::desc& row_major,
                 const dnnl::memory::desc& wanted);
  void BindOutput(int arg, int index, const dnnl::memory::desc& row_major,
                  const dnnl::memory::desc& wanted);
  // The primitive reads the matrix transposed; layouts describe the tensor itself.
  void BindTransposedInput(int arg, int index, const dnnl::memory::desc& row_major,
                           const dnnl::memory::desc& wanted);
  void SetPrimitive(const dnnl::primitive_desc_base& desc);
  // Of another CPU's primitive, by onednn_rules.h, which is never compiled.
  void SetAnswer(const std::string& implementation, int64_t scratchpad_bytes);
  // Heap bytes of a run, for implementations that allocate (gemm_buffers.h).
  void SetHeapBytes(int64_t bytes) { heap_bytes_ = bytes; }

  const std::string& implementation() const { return implementation_; }
  LayoutId input_layout(size_t i) const { return input_layouts_[i]; }
  // Sets layouts, workspace and heap; appends "/brgconv:avx512_core" to the kernel's name.
  void Describe(KernelChoice& choice) const;
  // Fails with kInternal when the primitive needs more workspace than the choice has.
  Result<std::unique_ptr<Kernel>> Compile() const;

 private:
  struct Binding {
    int arg;
    ArgSource source;
    int index;  // input or output
    dnnl::memory::desc given, wanted;
    int64_t copy_offset = -1;  // of the reordered copy in the workspace
  };
  void Bind(ArgSource source, int arg, int index, const dnnl::memory::desc& row_major,
            const dnnl::memory::desc& wanted, bool transposed);
  LayoutId ChooseLayout(ArgSource source, int index, const dnnl::memory::desc& row_major,
                        const dnnl::memory::desc& wanted, bool transposed) const;
  int64_t Reserve(int64_t bytes);
  void ReserveScratchpad(int64_t of_primitive);

  const CpuContext& cpu_;
  const OpCall& call_;
  const int threads_;
  const LayoutSource source_;
  const KernelChoice* choice_;
  std::vector<Binding> bindings_;
  std::vector<LayoutId> input_layouts_, output_layouts_;
  dnnl::primitive_desc_base desc_;
  std::string implementation_;
  int64_t workspace_bytes_ = 0;
  int64_t heap_bytes_ = 0;
  int64_t scratchpad_offset_ = 0;
};

// The kernel of a choice; fails with kUnsupported where oneDNN has no plan for it.
Result<std::unique_ptr<Kernel>> CompilePlan(const std::optional<PrimitivePlan>& plan,
                                            const CandidateQuery& q, const KernelChoice& choice);

// Advances `desc` to the implementation of this name; with an empty name to the first fast one.
// Refuses reference code.  Skips fallbacks (a packing GEMM, the strided brgemm convolution) and
// stores the first one's name in `second`.  False at the end of the list.
bool SelectImplementation(dnnl::primitive_desc_base& desc, const std::string& name,
                          std::string& second);

// make() returns a descriptor; the result is advanced to the implementation `name`, or, if that is
// empty, to the best one.  nullopt when oneDNN has no fast one.
template <typename Make>
auto SelectDesc(const Make& make, const std::string& name) -> std::optional<decltype(make())> {
  try {
    std::string second, ignored;
    auto desc = make();
    if (SelectImplementation(desc, name, second)) return desc;
    if (second.empty()) return std::nullopt;
    desc = make();
    if (SelectImplementation(desc, second, ignored)) return desc;
  } catch (const dnnl::error&) {  // valid for us, not for oneDNN
  }
  return std::nullopt;
}

// Those that the library uses of this CPU.
InstructionSet LibraryInstructions();

// The implementation in KernelChoice::kernel: "brgconv:avx512_core" of
// "onednn.conv/brgconv:avx512_core".
std::string ImplementationOf(const KernelChoice& choice);

// Attributes with a caller-provided scratchpad.
dnnl::primitive_attr UserScratchpad();

// Calls make(), which returns a Result; turns exceptions of oneDNN into a Status.
template <typename F>
auto CatchDnnl(const OpCall& call, const F& make) -> decltype(make()) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    return Status(ErrorCode::kInternal, call.where + ": oneDNN: " + error.what());
  }
}

// A copy from one descriptor to another of the same extents.
Result<std::unique_ptr<Kernel>> MakeReorderKernel(const CpuContext& cpu, int threads,
                                                  const dnnl::memory::desc& from,
                                                  const dnnl::memory::desc& to);
int64_t ReorderWorkspaceBytes(const CpuContext& cpu, int threads, const dnnl::memory::desc& from,
                              const dnnl::memory::desc& to);

}  // namespace ridge::cpu
