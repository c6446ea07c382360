// Every pointwise operator, and `fused`: one interpreter over tiles, threads over runs of tiles.
// Registers are floats, or doubles where floats do not hold a value (f64, wide integers).
//
// Inputs of the full shape are read in place; others are spread into a register a tile at a
// time (an L1 write, small beside the memory traffic saved).  In a blocked layout all full-size
// tensors have that layout, so flat order is the same for all of them.
#include "ridge/backend/cpu/kernels/pointwise.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

template <typename T>
void Widen(const void* from, int64_t at, float* to, int64_t count) {
  const T* data = static_cast<const T*>(from) + at;
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(data[i]);
}

void LoadEach(DType dtype, const void* from, int64_t at, float* to, int64_t count) {
  switch (dtype) {
    case DType::kF32:
      std::memcpy(to, static_cast<const float*>(from) + at, static_cast<size_t>(count) * 4);
      return;
    case DType::kBool:
    case DType::kU8:
      return Widen<uint8_t>(from, at, to, count);
    case DType::kI8:
      return Widen<int8_t>(from, at, to, count);
    case DType::kI32:
      return Widen<int32_t>(from, at, to, count);
    case DType::kI64:
      return Widen<int64_t>(from, at, to, count);
    case DType::kF64:
      return Widen<double>(from, at, to, count);
    case DType::kBF16:
      for (int64_t i = 0; i < count; ++i)
        to[i] = BF16ToFloat(static_cast<const uint16_t*>(from)[at + i]);
      return;
    case DType::kF16:
      for (int64_t i = 0; i < count; ++i)
        to[i] = F16ToFloat(static_cast<const uint16_t*>(from)[at + i]);
      return;
    default:
      for (int64_t i = 0; i < count; ++i)
        to[i] = static_cast<float>(LoadAsDouble(dtype, from, at + i));
  }
}

// Elements [at, at + count) as floats.
void LoadNumbers(DType dtype, const void* from, int64_t at, float* to, int64_t count) {
  const auto* start = static_cast<const std::byte*>(from) + at * BytesPerElement(dtype);
  const int64_t done = LoadVectors(dtype, start, to, count);
  LoadEach(dtype, from, at + done, to + done, count - done);
}
void LoadNumbers(DType dtype, const void* from, int64_t at, double* to, int64_t count) {
  LoadDoubles(dtype, from, at, to, count);
}

// Rounds, also what a step rounded already: casts of f32 are done here.
void StoreEach(DType dtype, const float* from, void* to, int64_t at, int64_t count) {
  if (dtype == DType::kF32) {
    std::memcpy(static_cast<float*>(to) + at, from, static_cast<size_t>(count) * 4);
  } else if (dtype == DType::kBool) {
    for (int64_t i = 0; i < count; ++i) static_cast<uint8_t*>(to)[at + i] = from[i] != 0;
  } else {
    for (int64_t i = 0; i < count; ++i) {
      static_cast<uint16_t*>(to)[at + i] =
          dtype == DType::kBF16 ? FloatToBF16(from[i]) : FloatToF16(from[i]);
    }
  }
}

void StoreNumbers(DType dtype, const float* from, void* to, int64_t at, int64_t count) {
  auto* start = static_cast<std::byte*>(to) + at * BytesPerElement(dtype);
  const int64_t done = StoreVectors(dtype, from, start, count);
  StoreEach(dtype, from + done, to, at + done, count - done);
}
void StoreNumbers(DType dtype, const double* from, void* to, int64_t at, int64_t count) {
  StoreDoubles(dtype, from, to, at, count);
}

void RunSteps(const PointwiseProgram& program, float* const* registers, int64_t count) {
  RunTile(program.steps, registers, count);
}
void RunSteps(const PointwiseProgram& program, double* const* registers, int64_t count) {
  RunF64Tile(program.wide_steps, registers, count);
}

// `run` numbers are there; they follow `times` more.
template <typename T>
void Repeat(const T* run, int64_t length, int64_t times, T* to) {
  if (length == 16) {  // a block of channels: the common case deserves a copy of known length
    for (int64_t t = 0; t < times; ++t) std::memcpy(to + t * 16, run, 16 * sizeof(T));
    return;
  }
  for (int64_t t = 0; t < times; ++t)
    std::memcpy(to + t * length, run, static_cast<size_t>(length) * sizeof(T));
}

// Elements [begin, begin + count) of the output's order, from an input repeated along some
// dimensions: runs along the last dimension are copies or one value, and whole runs are repeated
// where the dimension before does not tell them apart.
template <typename T>
void SpreadTile(const TileInput& input, const PointwiseProgram& program, const void* from,
                int64_t begin, int64_t count, T* to) {
  const Dims& dims = program.dims;
  const size_t last = dims.size() - 1;
  while (count > 0) {
    int64_t source = 0, rest = begin;
    for (size_t d = dims.size(); d-- > 0;) {
      source += rest % dims[d] * input.strides[d];
      rest /= dims[d];
    }
    const int64_t column = begin % dims[last], run = std::min(count, dims[last] - column);
    if (input.strides[last] == 1) {
      const int64_t there = program.padding.any() ? program.padding.LanesAt(begin) : run;
      LoadNumbers(input.dtype, from, source, to, there);
      std::fill_n(to + there, run - there, T{0});
    } else {
      LoadNumbers(input.dtype, from, source, to, 1);
      std::fill_n(to, run, *to);
    }
    int64_t times = 0;
    if (last > 0 && input.strides[last - 1] == 0 && run == dims[last]) {
      const int64_t row = begin / run % dims[last - 1];
      times = std::min(count / run, dims[last - 1] - row) - 1;
      Repeat(to, run, times, to + run);
    }
    to += (times + 1) * run;
    begin += (times + 1) * run;
    count -= (times + 1) * run;
  }
}

// Sets the lanes behind the last channel to 0 in elements [begin, begin + count) of an output.
void ClearPadding(const PaddedBlocks& padding, DType dtype, void* output, int64_t begin,
                  int64_t count) {
  constexpr int64_t kStep = 16;  // bytes of one store
  const int64_t size = BytesPerElement(dtype), width = (padding.block - padding.used) * size;
  for (int64_t at = begin; at < begin + count;) {
    const int64_t left = padding.image - at / padding.block % padding.image;  // of this image
    const int64_t end = std::min(begin + count, at + left * padding.block);
    auto* lanes = static_cast<std::byte*>(output) + (at + padding.used) * size;
    const bool last = padding.LanesAt(at) == padding.used;
    for (; at < end; at += padding.block, lanes += padding.block * size) {
      if (!last) continue;
      int64_t done = 0;
      for (; done + kStep <= width; done += kStep) std::memset(lanes + done, 0, kStep);
      for (; done < width; ++done) lanes[done] = std::byte{0};
    }
  }
}

// T: the numbers in registers, float or double.
template <typename T>
class PointwiseKernel : public HostKernel<PointwiseKernel<T>> {
 public:
  PointwiseKernel(PointwiseProgram program, int threads)
      : program_(std::move(program)), threads_(threads) {}

  Status Run(const KernelBuffers& buffers) {
    const int64_t tile = program_.tile_size();
    ForEachPart(threads_, [&](int part) {
      const Range range = PartOf(program_.elements, threads_, part, tile);
      if (range.begin < range.end) RunPart(buffers, part, range);
    });
    return Status();
  }

 private:
  static constexpr DType kRegisterType = std::is_same_v<T, float> ? DType::kF32 : DType::kF64;
  static constexpr size_t kMostRegisters =
      kMostExpressionInputs + kMostExpressionSteps + kMostExpressionOutputs;

  void RunPart(const KernelBuffers& buffers, int part, Range range) const {
    const int64_t tile = program_.tile_size();
    T* own = static_cast<T*>(buffers.workspace) + part * program_.registers * kRegisterStride;
    T* registers[kMostRegisters];
    for (int r = 0; r < program_.registers; ++r) registers[r] = own + r * kRegisterStride;
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const TileInput& input = program_.inputs[i];
      if (input.spread != Spread::kScalar) continue;
      T* reg = registers[input.reg];
      LoadNumbers(input.dtype, buffers.inputs[i], 0, reg, 1);
      std::fill_n(reg, tile, *reg);
    }
    for (int64_t begin = range.begin; begin < range.end; begin += tile) {
      RunOneTile(buffers, registers, own, begin, std::min(tile, range.end - begin));
    }
  }

  void RunOneTile(const KernelBuffers& buffers, T** registers, T* own, int64_t begin,
                  int64_t count) const {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const TileInput& input = program_.inputs[i];
      const void* data = buffers.inputs[i];
      if (input.spread == Spread::kBroadcast) {
        SpreadTile(input, program_, data, begin, count, own + input.reg * kRegisterStride);
      } else if (input.spread == Spread::kFull && input.dtype == kRegisterType) {
        registers[input.reg] = const_cast<T*>(static_cast<const T*>(data)) + begin;
      } else if (input.spread == Spread::kFull) {
        LoadNumbers(input.dtype, data, begin, registers[input.reg], count);
      }
    }
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      const TileOutput& output = program_.outputs[o];
      if (output.direct) registers[output.reg] = static_cast<T*>(buffers.outputs[o]) + begin;
    }
    RunSteps(program_, registers, count);
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      const TileOutput& output = program_.outputs[o];
      if (!output.direct)
        StoreNumbers(output.dtype, registers[output.reg], buffers.outputs[o], begin, count);
      if (program_.padding.any())
        ClearPadding(program_.padding, output.dtype, buffers.outputs[o], begin, count);
    }
  }

  const PointwiseProgram program_;
  const int threads_;
};

bool IsFull(const OpCall& call, size_t i) {
  return call.inputs[i].elements() == call.outputs[0].elements() && call.inputs[i].elements() != 1;
}

// Layouts that full-size inputs have now; row-major last.
std::vector<LayoutId> CandidateLayouts(const CandidateQuery& q) {
  std::vector<LayoutId> layouts;
  for (size_t i = 0; i < q.call.inputs.size(); ++i) {
    const LayoutId layout = q.available_layout(i);
    const bool known = std::find(layouts.begin(), layouts.end(), layout) != layouts.end();
    if (IsFull(q.call, i) && layout != kRowMajor && !known) layouts.push_back(layout);
  }
  layouts.push_back(kRowMajor);
  return layouts;
}

void AllowInPlace(const CandidateQuery& q, const PointwiseProgram& program, KernelChoice& choice) {
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    if (!program.output_may_overwrite[o]) continue;
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      if (program.inputs[i].spread == Spread::kFull && q.call.inputs[i] == q.call.outputs[o])
        choice.in_place.emplace_back(o, i);
    }
  }
}

// Types that oneDNN has not are row-major always.
bool HasLayouts(const TensorType& type) { return DnnlType(type.dtype).has_value(); }

// 0 when the layout is not for this call: unknown, or a full-size tensor can't have it.
int64_t BlockOf(const OpCall& call, LayoutId layout) {
  if (layout != kRowMajor) {
    if (!std::all_of(call.outputs.begin(), call.outputs.end(), HasLayouts)) return 0;
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const TensorType& input = call.inputs[i];
      if (IsFull(call, i) && (input.dims != call.outputs[0].dims || !HasLayouts(input))) return 0;
    }
  }
  const auto blocks = ChannelBlocksOf(call.outputs[0].dims, layout);
  return blocks ? blocks->block : 0;
}

const char* OfferLayout(const CandidateQuery& q, LayoutId layout, Candidates& candidates) {
  const int64_t block = BlockOf(q.call, layout);
  if (block == 0) return refusal::kLayout;
  const char* reason = nullptr;
  const auto program = CompilePointwise(q.op, q.call, block, reason);
  if (!program) return reason;
  KernelChoice& choice = candidates.Add(program->wide ? 0.5 : 1);
  if (program->wide) choice.kernel += "/wide";
  choice.workspace_bytes = program->workspace_bytes(q.threads());
  for (size_t i = 0; i < q.call.inputs.size(); ++i) {
    if (IsFull(q.call, i)) choice.input_layouts[i] = layout;
  }
  choice.output_layouts.assign(q.call.outputs.size(), layout);
  AllowInPlace(q, *program, choice);
  return nullptr;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  const char* reason = nullptr;
  for (const LayoutId layout : CandidateLayouts(q)) reason = OfferLayout(q, layout, candidates);
  return reason;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const char* reason = "layout";
  const int64_t block = BlockOf(q.call, choice.output_layouts.at(0));
  auto program = block == 0 ? std::nullopt : CompilePointwise(q.op, q.call, block, reason);
  if (!program)
    return Status(ErrorCode::kInternal, q.call.where + ": cpu.pointwise declines: " + reason);
  const int threads = q.threads();
  if (program->wide) {
    return std::unique_ptr<Kernel>(
        std::make_unique<PointwiseKernel<double>>(std::move(*program), threads));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<PointwiseKernel<float>>(std::move(*program), threads));
}

}  // namespace

KernelDef PointwiseKernelDef() {
  return {.name = "cpu.pointwise", .ops = {"*"}, .in_place = false, .offer = Offer, .make = Make};
}

}  // namespace ridge::cpu
