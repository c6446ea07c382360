// scatter_add and scatter: each element of y gathers its updates, in their order.
//
// Few indices: every thread walks them.  Many: they are sorted by row once (sort_text.h), and a
// thread walks those of its row; 32 neighbours in that order which all belong to one row are
// combined beforehand, so that a row that most updates hit is not one thread's work.
#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/move_text.h"
#include "ridge/backend/cuda/kernels/sort_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/axis_view.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kFew = 64;    // indices
constexpr int64_t kChunk = 32;  // updates that are combined beforehand

// updates: [outer, count, inner].  y, x: [outer, extent, inner]; inner counts packs.
constexpr std::string_view kScatterFunctions = R"cuda(
typedef $T T;
typedef $R R;
typedef $Index Index;
typedef Pack<T, $lanes> TPack;
typedef Pack<R, $lanes> RPack;
RIDGE_FUNCTION R Combined(R a, R b) { return $combined; }
RIDGE_FUNCTION RPack ReadPack(const T* p, Index group) {
  const TPack pack = LoadPack<$lanes>(p, group);
  RPack read;
  for (int k = 0; k < $lanes; ++k) read.at[k] = $read;
  return read;
}
RIDGE_FUNCTION void WritePack(T* p, i64 group, const RPack& written) {
  TPack pack;
  for (int k = 0; k < $lanes; ++k) $write;
  StorePack(p, group, pack);
}
RIDGE_FUNCTION void Combine(RPack& sum, const RPack& update) {
  for (int k = 0; k < $lanes; ++k) sum.at[k] = Combined(sum.at[k], update.at[k]);
}
)cuda";

constexpr std::string_view kWalkText = R"cuda(
RIDGE_KERNEL void scatter($x_parameter const $I* indices, const T* updates, T* y) {
  for (Index e = (Index)Thread(); e < $elements; e += (Index)Threads()) {
    const Index row = e / $inner % $extent, o = e / $inner / $extent, i = e % $inner;
    RPack sum = $begin;
    for (int n = 0; n < $count; ++n)
      if (PlaceOfIndex(indices[n], $extent) == row)
        Combine(sum, ReadPack(updates, (o * $count + n) * $inner + i));
    WritePack(y, e, sum);
  }
}
)cuda";

constexpr std::string_view kSortedText = R"cuda(
RIDGE_KERNEL void combine_chunks(const u32* rows, const u32* numbers, const T* updates, RPack* chunks) {
  for (Index e = (Index)Thread(); e < $chunk_elements; e += (Index)Threads()) {
    const Index first = e / $inner % $chunks * $chunk, o = e / $inner / $chunks, i = e % $inner;
    if (rows[first] != rows[first + $chunk - 1] || rows[first] == (u32)$extent) continue;
    RPack sum = ReadPack(updates, (o * $count + (Index)numbers[first]) * $inner + i);
#pragma unroll 4
    for (int k = 1; k < $chunk; ++k)
      Combine(sum, ReadPack(updates, (o * $count + (Index)numbers[first + k]) * $inner + i));
    StorePack((R*)chunks, e, sum);
  }
}
RIDGE_KERNEL void scatter($x_parameter const u32* firsts, const u32* numbers, const T* updates, $chunks_parameter T* y) {
  for (Index e = (Index)Thread(); e < $elements; e += (Index)Threads()) {
    const Index row = e / $inner % $extent, o = e / $inner / $extent, i = e % $inner;
    const Index end = (Index)firsts[row + 1];
    Index n = (Index)firsts[row];
    $leave
    RPack sum = $begin;
$walk    WritePack(y, e, sum);
  }
}
)cuda";

// Up to a chunk, chunks, and the rest.
constexpr std::string_view kWalkChunks = R"cuda(
    const Index first_chunk = (n + $chunk - 1) / $chunk, end_chunk = end / $chunk;
    const i64 head = first_chunk < end_chunk ? first_chunk * $chunk : end;
#pragma unroll 4
    for (; n < head; ++n) Combine(sum, ReadPack(updates, (o * $count + (Index)numbers[n]) * $inner + i));
#pragma unroll 4
    for (Index c = first_chunk; c < end_chunk; ++c)
      Combine(sum, LoadPack<$lanes>((const R*)chunks, (o * $chunks + c) * $inner + i));
    if (first_chunk < end_chunk) n = end_chunk * $chunk;
#pragma unroll 4
    for (; n < end; ++n) Combine(sum, ReadPack(updates, (o * $count + (Index)numbers[n]) * $inner + i));
)cuda";

constexpr std::string_view kTakeLast = R"cuda(
    if (n < end) sum = ReadPack(updates, (o * $count + (Index)numbers[end - 1]) * $inner + i);
)cuda";

const char* CombinedText(const std::string& reduction) {
  if (reduction == "add") return "a + b";
  if (reduction == "mul") return "a * b";
  if (reduction == "max") return "Larger(b, a)";
  if (reduction == "min") return "Smaller(b, a)";
  return "b";
}

class ScatterWriter {
 public:
  ScatterWriter(const OpDef& op, const OpCall& call)
      : has_x_(op.name == "scatter"),
        replaces_(has_x_ && call.text("reduction") == "none"),
        index_(has_x_ ? 1 : 0),
        y_(call.outputs[0]) {
    const int axis = has_x_ ? 0 : *NormalizeAxis(call.integer("axis"), y_.rank(), call.where);
    view_ = ViewAxis(y_.dims, axis);
    count_ = call.inputs[static_cast<size_t>(index_)].elements();
    const int64_t element = BytesPerElement(y_.dtype);
    lanes_ = WordBytes(element, {view_.inner}) / element;
    inner_ = view_.inner / lanes_;
    index_dtype_ = call.inputs[static_cast<size_t>(index_)].dtype;
    reduction_ = has_x_ ? call.text("reduction") : "add";
  }

  const char* Write(KernelText& text) {
    if (!replaces_ && StorageType(y_.dtype) == nullptr) return refusal::kDType;
    if (!CanSort(count_, view_.extent)) return refusal::kSize;
    text.source = std::string(kPlaceOfIndexText) + FillText(kScatterFunctions, FunctionValues());
    values_ = {{"lanes", std::to_string(lanes_)},
               {"I", StorageType(index_dtype_)},
               {"x_parameter", has_x_ ? "const T* x," : ""},
               {"count", std::to_string(count_)},
               {"extent", std::to_string(view_.extent)},
               {"inner", std::to_string(inner_)},
               {"elements", std::to_string(Elements())},
               {"leave", has_x_ ? "if (n == end && x == y) continue;" : ""},
               {"begin", has_x_ ? "ReadPack(x, e)" : "{}"}};
    if (count_ <= kFew) {
      WriteWalk(text);
    } else {
      WriteSorted(text);
    }
    return nullptr;
  }

 private:
  int64_t Elements() const { return view_.outer * view_.extent * inner_; }

  std::vector<std::pair<std::string_view, std::string>> FunctionValues() const {
    return {
        {"T", replaces_ ? WordType(BytesPerElement(y_.dtype)) : StorageType(y_.dtype)},
        {"R", replaces_ ? "T" : ComputeType(y_.dtype)},
        {"lanes", std::to_string(lanes_)},
        {"Index", IndexType(view_.outer * std::max(count_, view_.extent) * view_.inner)},
        {"combined", CombinedText(reduction_)},
        {"read", replaces_ ? "pack.at[k]" : "(R)Load(pack.at, k)"},
        {"write", replaces_ ? "pack.at[k] = written.at[k]" : "Store(pack.at, k, written.at[k])"}};
  }

  void WriteWalk(KernelText& text) {
    text.source += FillText(kWalkText, values_);
    std::vector<Argument> arguments;
    if (has_x_) arguments.push_back(Argument::Input(0));
    arguments.insert(arguments.end(),
                     {Argument::Input(index_), Argument::Input(index_ + 1), Argument::Output(0)});
    text.launches = {{"scatter", BlocksFor(Elements()), kBlockThreads, arguments}};
  }

  void WriteSorted(KernelText& text) {
    RowSort sort{count_, view_.extent, index_dtype_, Argument::Input(index_)};
    AppendSort(sort, text);
    const int64_t chunks = count_ / kChunk, chunk_elements = view_.outer * chunks * inner_;
    values_.insert(values_.end(), {{"chunk", std::to_string(kChunk)},
                                   {"chunks", std::to_string(chunks)},
                                   {"chunk_elements", std::to_string(chunk_elements)},
                                   {"chunks_parameter", replaces_ ? "" : "const RPack* chunks,"}});
    values_.emplace_back("walk", FillText(replaces_ ? kTakeLast : kWalkChunks, values_));
    text.source += FillText(kSortedText, values_);
    const Argument updates = Argument::Input(index_ + 1),
                   numbers = Argument::Workspace(sort.numbers_at);
    std::vector<Argument> arguments;
    if (has_x_) arguments.push_back(Argument::Input(0));
    arguments.insert(arguments.end(), {Argument::Workspace(sort.firsts_at), numbers, updates});
    if (!replaces_) {
      const int64_t number = std::string_view(ComputeType(y_.dtype)) == "double" ? 8 : 4;
      const Argument partial = text.Reserve(chunk_elements * lanes_ * number);
      text.launches.push_back({"combine_chunks",
                               BlocksFor(chunk_elements),
                               kBlockThreads,
                               {Argument::Workspace(sort.rows_at), numbers, updates, partial}});
      arguments.push_back(partial);
    }
    arguments.push_back(Argument::Output(0));
    text.launches.push_back({"scatter", BlocksFor(Elements()), kBlockThreads, arguments});
  }

  const bool has_x_, replaces_;
  const int index_;  // the input of indices; updates follow
  const TensorType& y_;
  AxisView view_;
  int64_t count_ = 0, lanes_ = 1, inner_ = 1;
  DType index_dtype_ = DType::kI64;
  std::string reduction_;
  std::vector<std::pair<std::string_view, std::string>> values_;
};

const char* WriteScatter(const OpDef& op, const OpCall& call, KernelText& text) {
  return ScatterWriter(op, call).Write(text);
}

}  // namespace

TextKernelDef ScatterTextKernel() {
  return {.name = "cuda.scatter", .ops = {"scatter_add", "scatter"}, .write = WriteScatter};
}

}  // namespace ridge::cuda
