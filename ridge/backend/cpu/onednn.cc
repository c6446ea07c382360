#include "ridge/backend/cpu/onednn.h"

#include <fmt/format.h>

#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

using dnnl::memory;

// Where the pointer of one argument comes from.
struct Pointer {
  ArgSource source;
  int64_t at;  // index of input or output, or offset in the workspace
};

// One primitive with its arguments in the form that dnnl_primitive_execute takes.
struct Stage {
  dnnl::primitive primitive;
  std::vector<memory> memories;
  std::vector<dnnl_exec_arg_t> args;
  std::vector<Pointer> pointers;
  std::vector<void*> set;  // the memories' current addresses: few change between steps

  void Add(const dnnl::engine& engine, int arg, const memory::desc& desc, Pointer pointer) {
    memories.emplace_back(desc, engine, static_cast<void*>(nullptr));  // set by Run
    args.push_back({arg, memories.back().get()});
    pointers.push_back(pointer);
    set.push_back(nullptr);
  }
};

void* Locate(const Pointer& pointer, const KernelBuffers& buffers) {
  const auto at = static_cast<size_t>(pointer.at);
  if (pointer.source == ArgSource::kInput) return const_cast<void*>(buffers.inputs[at]);
  if (pointer.source == ArgSource::kOutput) return buffers.outputs[at];
  return static_cast<std::byte*>(buffers.workspace) + pointer.at;
}

class PrimitiveKernel : public HostKernel<PrimitiveKernel> {
 public:
  PrimitiveKernel(const CpuContext& cpu, int threads) : stream_(cpu.stream), threads_(threads) {}
  void Add(Stage stage) { stages_.push_back(std::move(stage)); }

  Status Run(const KernelBuffers& buffers) {
    const TeamSize team(threads_);
    for (Stage& stage : stages_) {
      for (size_t i = 0; i < stage.args.size(); ++i) {
        void* const at = Locate(stage.pointers[i], buffers);
        if (at == stage.set[i]) continue;
        dnnl_memory_set_data_handle(stage.args[i].memory, at);
        stage.set[i] = at;
      }
      const dnnl_status_t status =
          dnnl_primitive_execute(stage.primitive.get(), stream_.get(),
                                 static_cast<int>(stage.args.size()), stage.args.data());
      if (status != dnnl_success)
        return Status(ErrorCode::kInternal, "oneDNN could not execute a primitive");
    }
    return Status();
  }

 private:
  dnnl::stream stream_;
  const int threads_;
  std::vector<Stage> stages_;
};

dnnl::reorder::primitive_desc ReorderDesc(const CpuContext& cpu, const memory::desc& from,
                                          const memory::desc& to) {
  return {cpu.engine, from, cpu.engine, to, UserScratchpad()};
}

Stage ReorderStage(const CpuContext& cpu, const memory::desc& from, const memory::desc& to,
                   Pointer from_at, Pointer to_at, int64_t scratchpad_offset) {
  Stage stage;
  const auto desc = ReorderDesc(cpu, from, to);
  stage.primitive = dnnl::reorder(desc);
  stage.Add(cpu.engine, DNNL_ARG_FROM, from, from_at);
  stage.Add(cpu.engine, DNNL_ARG_TO, to, to_at);
  if (desc.scratchpad_desc().get_size() > 0) {
    stage.Add(cpu.engine, DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc(),
              {ArgSource::kWorkspace, scratchpad_offset});
  }
  return stage;
}

bool StartsWith(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

// A packing GEMM allocates in each call.  The strided brgemm convolution gives nhwc, so that every
// neighbour needs a reorder, and is slower than the blocked kernels after it (f32, ResNet-50: 160
// against 200 GFLOP/s).
bool IsSecondChoice(const std::string& implementation) {
  return StartsWith(implementation, "gemm") || implementation == "brgconv_strided:avx512_core";
}

}  // namespace

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

PrimitivePlan::PrimitivePlan(const CandidateQuery& q, LayoutSource source,
                             const KernelChoice* choice)
    : cpu_(q.cpu),
      call_(q.call),
      threads_(q.threads()),
      source_(source),
      choice_(choice),
      input_layouts_(call_.inputs.size(), kRowMajor),
      output_layouts_(call_.outputs.size(), kRowMajor) {}

int64_t PrimitivePlan::Reserve(int64_t bytes) {
  const int64_t offset = workspace_bytes_;
  workspace_bytes_ += RoundUp(bytes, 64);
  return offset;
}

LayoutId PrimitivePlan::ChooseLayout(ArgSource source, int index, const memory::desc& row_major,
                                     const memory::desc& wanted, bool transposed) const {
  const auto at = static_cast<size_t>(index);
  if (source_ == LayoutSource::kRowMajor || wanted == row_major) return kRowMajor;
  if (source_ == LayoutSource::kChoice) {
    return source == ArgSource::kInput ? choice_->input_layouts[at] : choice_->output_layouts[at];
  }
  const TensorType& type = source == ArgSource::kInput ? call_.inputs[at] : call_.outputs[at];
  if (static_cast<size_t>(type.rank()) != wanted.get_dims().size()) return kRowMajor;
  return LayoutOf(transposed ? wanted.permute_axes({1, 0}) : wanted).value_or(kRowMajor);
}

void PrimitivePlan::Bind(ArgSource source, int arg, int index, const memory::desc& row_major,
                         const memory::desc& wanted, bool transposed) {
  const auto at = static_cast<size_t>(index);
  const LayoutId layout = ChooseLayout(source, index, row_major, wanted, transposed);
  const TensorType& type = source == ArgSource::kInput ? call_.inputs[at] : call_.outputs[at];
  (source == ArgSource::kInput ? input_layouts_ : output_layouts_)[at] = layout;
  Binding binding{arg, source, index, row_major, wanted};
  if (layout != kRowMajor) {
    binding.given = DescOf(type, layout);
    if (transposed) binding.given = binding.given.permute_axes({1, 0});
  }
  if (binding.given != wanted)
    binding.copy_offset = Reserve(static_cast<int64_t>(wanted.get_size()));
  bindings_.push_back(std::move(binding));
}

void PrimitivePlan::BindInput(int arg, int index, const memory::desc& row_major,
                              const memory::desc& wanted) {
  Bind(ArgSource::kInput, arg, index, row_major, wanted, /*transposed=*/false);
}

void PrimitivePlan::BindTransposedInput(int arg, int index, const memory::desc& row_major,
                                        const memory::desc& wanted) {
  Bind(ArgSource::kInput, arg, index, row_major, wanted, /*transposed=*/true);
}

void PrimitivePlan::BindOutput(int arg, int index, const memory::desc& row_major,
                               const memory::desc& wanted) {
  Bind(ArgSource::kOutput, arg, index, row_major, wanted, /*transposed=*/false);
}

void PrimitivePlan::SetPrimitive(const dnnl::primitive_desc_base& desc) {
  desc_ = desc;
  implementation_ = desc.impl_info_str();
  ReserveScratchpad(static_cast<int64_t>(desc.scratchpad_desc().get_size()));
}

void PrimitivePlan::SetAnswer(const std::string& implementation, int64_t scratchpad_bytes) {
  implementation_ = implementation;
  ReserveScratchpad(scratchpad_bytes);
}

// One scratchpad serves the primitive and the reorders around it: they run one after another.
void PrimitivePlan::ReserveScratchpad(int64_t of_primitive) {
  int64_t bytes = of_primitive;
  for (const Binding& b : bindings_) {
    if (b.copy_offset < 0) continue;
    const bool input = b.source == ArgSource::kInput;
    bytes = std::max(bytes, ReorderWorkspaceBytes(cpu_, threads_, input ? b.given : b.wanted,
                                                  input ? b.wanted : b.given));
  }
  scratchpad_offset_ = Reserve(bytes);
}

void PrimitivePlan::Describe(KernelChoice& choice) const {
  choice.kernel += "/" + implementation();
  choice.input_layouts = input_layouts_;
  choice.output_layouts = output_layouts_;
  choice.workspace_bytes = workspace_bytes_;
  choice.heap_bytes = heap_bytes_;
}

Result<std::unique_ptr<Kernel>> PrimitivePlan::Compile() const {
  if (choice_ != nullptr && workspace_bytes_ > choice_->workspace_bytes) {
    return Status(ErrorCode::kInternal,
                  fmt::format("{}: {} needs {} B of workspace, {} B are planned", call_.where,
                              desc_.impl_info_str(), workspace_bytes_, choice_->workspace_bytes));
  }
  const TeamSize team(threads_);
  auto kernel = std::make_unique<PrimitiveKernel>(cpu_, threads_);
  Stage main;
  main.primitive = dnnl::primitive(desc_.get());
  std::vector<Stage> after;
  for (const Binding& b : bindings_) {
    const Pointer outside{b.source, b.index};
    const bool copied = b.copy_offset >= 0;
    const Pointer inside = copied ? Pointer{ArgSource::kWorkspace, b.copy_offset} : outside;
    main.Add(cpu_.engine, b.arg, b.wanted, inside);
    if (!copied) continue;
    if (b.source == ArgSource::kInput) {
      kernel->Add(ReorderStage(cpu_, b.given, b.wanted, outside, inside, scratchpad_offset_));
    } else {
      after.push_back(ReorderStage(cpu_, b.wanted, b.given, inside, outside, scratchpad_offset_));
    }
  }
  if (desc_.scratchpad_desc().get_size() > 0) {
    main.Add(cpu_.engine, DNNL_ARG_SCRATCHPAD, desc_.scratchpad_desc(),
             {ArgSource::kWorkspace, scratchpad_offset_});
  }
  kernel->Add(std::move(main));
  for (Stage& stage : after) kernel->Add(std::move(stage));
  return Result<std::unique_ptr<Kernel>>(std::move(kernel));
}

Result<std::unique_ptr<Kernel>> CompilePlan(const std::optional<PrimitivePlan>& plan,
                                            const CandidateQuery& q, const KernelChoice& choice) {
  return plan ? plan->Compile() : UnsupportedChoice(q, choice);
}

bool SelectImplementation(dnnl::primitive_desc_base& desc, const std::string& name,
                          std::string& second) {
  do {
    const std::string found = desc.impl_info_str();
    if (!name.empty()) {
      if (found == name) return true;
    } else if (IsSecondChoice(found)) {
      if (second.empty()) second = found;
    } else if (!StartsWith(found, "ref") && !StartsWith(found, "simple")) {
      return true;
    }
  } while (dnnl_primitive_desc_next_impl(desc.get()) == dnnl_success);
  return false;
}

InstructionSet LibraryInstructions() {
  // An instruction set's number has the bits of those that it includes.
  const auto has = [](dnnl::cpu_isa wanted) {
    const auto bits = static_cast<unsigned>(wanted);
    return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
  };
  return {UsedInstructions(), has(dnnl::cpu_isa::avx512_core_bf16)};
}

std::string ImplementationOf(const KernelChoice& choice) {
  const size_t slash = choice.kernel.find('/');
  return slash == std::string::npos ? "" : choice.kernel.substr(slash + 1);
}

Result<std::unique_ptr<Kernel>> MakeReorderKernel(const CpuContext& cpu, int threads,
                                                  const memory::desc& from,
                                                  const memory::desc& to) {
  const TeamSize team(threads);
  auto kernel = std::make_unique<PrimitiveKernel>(cpu, threads);
  kernel->Add(ReorderStage(cpu, from, to, {ArgSource::kInput, 0}, {ArgSource::kOutput, 0}, 0));
  return Result<std::unique_ptr<Kernel>>(std::move(kernel));
}

int64_t ReorderWorkspaceBytes(const CpuContext& cpu, int threads, const memory::desc& from,
                              const memory::desc& to) {
  if (!cpu.is_here) return 0;  // the library may lack the types
  const TeamSize team(threads);
  return static_cast<int64_t>(ReorderDesc(cpu, from, to).scratchpad_desc().get_size());
}

}  // namespace ridge::cpu
