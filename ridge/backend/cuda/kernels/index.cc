// element_index and ravel_index: row-major places of the elements that indices name.
#include <fmt/format.h>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kElementIndexText = R"cuda(
RIDGE_KERNEL void element_index(const $I* indices, i64* y) {
  for (i64 e = Thread(); e < $count; e += Threads()) {
    const i64 place = PlaceOfIndex(indices[e], $extent);
    y[e] = place < 0 ? $missing : $base + place * $along;
  }
}
)cuda";

// indices: [count, width].
constexpr std::string_view kRavelIndexText = R"cuda(
RIDGE_KERNEL void ravel_index(const $I* indices, i64* y) {
  for (i64 e = Thread(); e < $count; e += Threads()) {
    const $I* row = indices + e * $width;
    i64 place = e / $batch_rows;
    bool inside = true;
$steps    y[e] = inside ? place : $missing;
  }
}
)cuda";

void AddLaunch(const char* name, int64_t count, KernelText& text) {
  text.launches = {
      {name, BlocksFor(count), kBlockThreads, {Argument::Input(0), Argument::Output(0)}}};
}

const char* WriteElementIndex(const OpDef&, const OpCall& call, KernelText& text) {
  const Dims& dims = call.integers("dims");
  const auto axis = static_cast<size_t>(CallAxis(call));
  const int64_t count = call.outputs[0].elements();
  Dims strides = RowMajorStrides(dims);
  const int64_t along = strides[axis];
  strides[axis] = 0;  // the index says where
  text.source =
      std::string(kPlaceOfIndexText) +
      FillText(kElementIndexText, {{"I", StorageType(call.inputs[0].dtype)},
                                   {"count", fmt::format("{}ll", count)},
                                   {"extent", fmt::format("{}ll", dims[axis])},
                                   {"missing", fmt::format("{}ll", ElementCount(dims))},
                                   {"base", OffsetText(call.outputs[0].dims, strides, "e")},
                                   {"along", fmt::format("{}ll", along)}});
  AddLaunch("element_index", count, text);
  return nullptr;
}

const char* WriteRavelIndex(const OpDef&, const OpCall& call, KernelText& text) {
  const Dims& dims = call.integers("dims");
  const auto batch = static_cast<size_t>(call.integer("batch_dims"));
  const int64_t count = call.outputs[0].elements();
  int64_t batches = 1;
  for (size_t d = 0; d < batch; ++d) batches *= dims[d];
  std::string steps;
  for (size_t d = batch; d < dims.size(); ++d) {
    steps += fmt::format(
        "    {{\n      const i64 at = PlaceOfIndex(row[{}], {}ll);\n"
        "      inside = inside && at >= 0;\n      place = place * {}ll + at;\n    }}\n",
        d - batch, dims[d], dims[d]);
  }
  text.source = std::string(kPlaceOfIndexText) +
                FillText(kRavelIndexText, {{"I", StorageType(call.inputs[0].dtype)},
                                           {"count", fmt::format("{}ll", count)},
                                           {"width", std::to_string(dims.size() - batch)},
                                           {"batch_rows", fmt::format("{}ll", count / batches)},
                                           {"steps", steps},
                                           {"missing", fmt::format("{}ll", ElementCount(dims))}});
  AddLaunch("ravel_index", count, text);
  return nullptr;
}

const char* WriteIndex(const OpDef& op, const OpCall& call, KernelText& text) {
  return op.name == "element_index" ? WriteElementIndex(op, call, text)
                                    : WriteRavelIndex(op, call, text);
}

}  // namespace

TextKernelDef IndexTextKernel() {
  return {.name = "cuda.index", .ops = {"element_index", "ravel_index"}, .write = WriteIndex};
}

}  // namespace ridge::cuda
