#include "ridge/backend/cpu/kernels/step_product.h"

#include <algorithm>

#include "ridge/backend/cpu/gemm_buffers.h"
#include "ridge/backend/cpu/onednn.h"
#include "ridge/backend/cpu/onednn_rules.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

using dnnl::memory;

int64_t Lines(size_t bytes) { return RoundUp(static_cast<int64_t>(bytes), 64); }

memory::desc Matrix(int64_t rows, int64_t columns) {
  return {{rows, columns}, memory::data_type::f32, memory::dims{columns, 1}};
}

// A primitive with its arguments in the form that dnnl_primitive_execute takes.
class Call {
 public:
  void Set(const dnnl::primitive_desc_base& desc) { primitive_ = dnnl::primitive(desc.get()); }
  void Add(const dnnl::engine& engine, int arg, const memory::desc& desc) {
    memories_.emplace_back(desc, engine, static_cast<void*>(nullptr));
    args_.push_back({arg, memories_.back().get()});
  }
  // One pointer for each argument, in the order of Add().
  Status Run(const dnnl::stream& stream, std::initializer_list<void*> pointers) {
    auto argument = args_.begin();
    for (void* pointer : pointers) {
      if (argument != args_.end()) dnnl_memory_set_data_handle((argument++)->memory, pointer);
    }
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), stream.get(), static_cast<int>(args_.size()), args_.data());
    if (status == dnnl_success) return Status();
    return Status(ErrorCode::kInternal, "oneDNN could not execute a primitive");
  }

 private:
  dnnl::primitive primitive_;
  std::vector<memory> memories_;
  std::vector<dnnl_exec_arg_t> args_;
};

}  // namespace

// In the workspace: the packed weight, then the scratchpad of whichever primitive runs.
struct StepProduct::Parts {
  dnnl::stream stream;
  Call pack, product;
  int64_t packed_bytes = 0, scratchpad_bytes = 0, heap_bytes = 0;
};

StepProduct::StepProduct() : parts_(std::make_unique<Parts>()) {}
StepProduct::~StepProduct() = default;

std::unique_ptr<StepProduct> StepProduct::Make(const CpuContext& cpu, const Extents& e,
                                               int threads) {
  const TeamSize team(threads);
  const memory::desc x = Matrix(e.rows, e.depth), out = Matrix(e.rows, e.columns);
  const memory::dims weight_dims = {e.depth, e.columns};
  const memory::desc any(weight_dims, memory::data_type::f32, memory::format_tag::any);
  const memory::desc stored(weight_dims, memory::data_type::f32,
                            e.transposed ? memory::dims{1, e.depth} : memory::dims{e.columns, 1});
  const auto desc = SelectDesc(
      [&] { return dnnl::matmul::primitive_desc(cpu.engine, x, any, out, UserScratchpad()); }, "");
  if (!desc) return nullptr;
  const dnnl::reorder::primitive_desc pack(cpu.engine, stored, cpu.engine, desc->weights_desc(),
                                           UserScratchpad());
  std::unique_ptr<StepProduct> made(new StepProduct);
  Parts& p = *made->parts_;
  p.stream = cpu.stream;
  p.packed_bytes = Lines(desc->weights_desc().get_size());
  p.scratchpad_bytes =
      Lines(std::max(desc->scratchpad_desc().get_size(), pack.scratchpad_desc().get_size()));
  if (AllocatesInCalls(desc->impl_info_str())) {
    p.heap_bytes = GemmBufferBytes({.m = e.columns, .n = e.rows, .k = e.depth}, DType::kF32,
                                   threads, cpu.instructions.vectors);
  }
  p.pack.Set(pack);
  p.pack.Add(cpu.engine, DNNL_ARG_FROM, stored);
  p.pack.Add(cpu.engine, DNNL_ARG_TO, desc->weights_desc());
  p.pack.Add(cpu.engine, DNNL_ARG_SCRATCHPAD, pack.scratchpad_desc());
  p.product.Set(*desc);
  p.product.Add(cpu.engine, DNNL_ARG_SRC, x);
  p.product.Add(cpu.engine, DNNL_ARG_WEIGHTS, desc->weights_desc());
  p.product.Add(cpu.engine, DNNL_ARG_DST, out);
  p.product.Add(cpu.engine, DNNL_ARG_SCRATCHPAD, desc->scratchpad_desc());
  return made;
}

int64_t StepProduct::WorkspaceElsewhere(const CpuContext& cpu, const Extents& e, int threads) {
  const ProductExtents product{.rows = e.rows, .depth = e.depth, .columns = e.columns};
  const ProductAnswer answer =
      AnswerProduct(product, Matrix(e.depth, e.columns), cpu.instructions, threads);
  return Lines(answer.packed.get_size()) + RoundUp(answer.scratchpad_bytes, int64_t{64});
}

int64_t StepProduct::WorkspaceBytes() const {
  return parts_->packed_bytes + parts_->scratchpad_bytes;
}

int64_t StepProduct::HeapBytes() const { return parts_->heap_bytes; }

Status StepProduct::Pack(const float* weight, void* workspace) {
  void* scratchpad = static_cast<std::byte*>(workspace) + parts_->packed_bytes;
  return parts_->pack.Run(parts_->stream, {const_cast<float*>(weight), workspace, scratchpad});
}

Status StepProduct::Run(const float* x, float* out, void* workspace) {
  void* scratchpad = static_cast<std::byte*>(workspace) + parts_->packed_bytes;
  return parts_->product.Run(parts_->stream, {const_cast<float*>(x), workspace, out, scratchpad});
}

}  // namespace ridge::cpu
