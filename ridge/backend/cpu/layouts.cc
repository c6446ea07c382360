#include "ridge/backend/cpu/layouts.h"

#include <array>
#include <vector>

#include "oneapi/dnnl/dnnl_debug.h"

namespace ridge::cpu {
namespace {

using dnnl::memory;

constexpr std::array kPreferredTags = {dnnl_aBcd16b, dnnl_aBcd8b, dnnl_aBcd4b,   dnnl_acdb,
                                       dnnl_aBc16b,  dnnl_aBc8b,  dnnl_aBcde16b, dnnl_aBcde8b};

struct BlockedTag {
  LayoutId layout;
  size_t rank;
  int64_t block;
};
constexpr BlockedTag kBlockedTags[] = {
    {dnnl_aBcd16b, 4, 16},  {dnnl_aBcd8b, 4, 8},  {dnnl_aBcd4b, 4, 4},
    {dnnl_aBc16b, 3, 16},   {dnnl_aBc8b, 3, 8},   {dnnl_aBc4b, 3, 4},
    {dnnl_aBcde16b, 5, 16}, {dnnl_aBcde8b, 5, 8}, {dnnl_aBcde4b, 5, 4},
};

memory::dims DnnlDims(const Dims& dims) { return dims.empty() ? memory::dims{1} : dims; }

// Extents of 1 may have any stride.
bool IsRowMajor(const memory::desc& desc) {
  if (desc.get_inner_nblks() != 0) return false;
  const memory::dims dims = desc.get_dims(), strides = desc.get_strides();
  int64_t expected = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] != 1 && strides[d] != expected) return false;
    expected *= dims[d];
  }
  return true;
}

// Not all tags are of the descriptor's rank; oneDNN then fails.
bool TagDescribes(dnnl_format_tag_t tag, const memory::desc& desc) {
  const memory::desc candidate(desc.get_dims(), desc.get_data_type(),
                               static_cast<memory::format_tag>(tag), /*allow_empty=*/true);
  return candidate && candidate == desc;
}

}  // namespace

std::optional<memory::data_type> DnnlType(DType t) {
  switch (t) {
    case DType::kF32:
      return memory::data_type::f32;
    case DType::kBF16:
      return memory::data_type::bf16;
    case DType::kF16:
      return memory::data_type::f16;
    case DType::kF64:
      return memory::data_type::f64;
    case DType::kI32:
      return memory::data_type::s32;
    case DType::kU8:
    case DType::kBool:
      return memory::data_type::u8;
    case DType::kI8:
      return memory::data_type::s8;
    default:
      return std::nullopt;
  }
}

memory::desc RowMajorDesc(DType dtype, const Dims& dims) {
  const memory::dims extents = DnnlDims(dims);
  return memory::desc(extents, DnnlType(dtype).value(), RowMajorStrides(extents));
}

memory::desc DescOf(const TensorType& type, LayoutId layout) {
  if (layout == kRowMajor) return RowMajorDesc(type.dtype, type.dims);
  return memory::desc(DnnlDims(type.dims), DnnlType(type.dtype).value(),
                      static_cast<memory::format_tag>(layout));
}

std::optional<LayoutId> LayoutOf(const memory::desc& desc) {
  if (desc.get_format_kind() != memory::format_kind::blocked) return std::nullopt;
  if (IsRowMajor(desc)) return kRowMajor;
  for (const dnnl_format_tag_t tag : kPreferredTags) {
    if (TagDescribes(tag, desc)) return static_cast<LayoutId>(tag);
  }
  for (int tag = dnnl_a; tag < dnnl_format_tag_last; ++tag) {
    if (TagDescribes(static_cast<dnnl_format_tag_t>(tag), desc)) return static_cast<LayoutId>(tag);
  }
  return std::nullopt;
}

int64_t LayoutBytesOf(const TensorType& type, LayoutId layout) {
  if (layout == kRowMajor) return type.bytes();
  return static_cast<int64_t>(DescOf(type, layout).get_size());
}

std::string LayoutNameOf(LayoutId layout) {
  if (layout == kRowMajor) return "row_major";
  return dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(layout));
}

std::optional<ChannelBlocks> ChannelBlocksOf(const Dims& dims, LayoutId layout) {
  if (layout == kRowMajor) return ChannelBlocks{1, dims.size() > 1 ? dims[1] : 1, false};
  for (const auto& [tag, rank, block] : kBlockedTags) {
    if (tag == layout && rank == dims.size())
      return ChannelBlocks{block, (dims[1] + block - 1) / block, dims[1] % block != 0};
  }
  return std::nullopt;
}

}  // namespace ridge::cpu
