// Layouts of the CPU backend: a LayoutId is a oneDNN format tag, and 0 is row-major.
//
// So a layout describes the blocking of dimensions for any extents and element type, and a number
// means the same layout in every process.
#pragma once
#include <optional>
#include <string>

#include "oneapi/dnnl/dnnl.hpp"
#include "ridge/lower/kernel_query.h"

namespace ridge::cpu {

// nullopt for types that oneDNN does not know (f64 in most primitives, i64, bool).
std::optional<dnnl::memory::data_type> DnnlType(DType t);

// Row-major; a scalar becomes {1}.  REQUIRES: DnnlType knows the type.
dnnl::memory::desc RowMajorDesc(DType dtype, const Dims& dims);
// REQUIRES: the layout is of this rank (LayoutBytes of a valid choice).
dnnl::memory::desc DescOf(const TensorType& type, LayoutId layout);

// The layout of a descriptor; nullopt when no format tag describes it.
std::optional<LayoutId> LayoutOf(const dnnl::memory::desc& desc);

int64_t LayoutBytesOf(const TensorType& type, LayoutId layout);
std::string LayoutNameOf(LayoutId layout);  // "row_major", "aBcd16b"

// A blocked [B, C, ...] layout as a row-major array of one dimension more:
// nChw16c is [B, C/16, H, W, 16].
struct ChannelBlocks {
  int64_t block = 1;   // channels that are contiguous
  int64_t blocks = 0;  // blocks of channels, the last one padded
  bool padded = false;
};
// For row-major and for blocks of 16, 8 and 4 channels of rank 3 to 5 (nCw16c, nChw16c,
// nCdhw16c, ...); nullopt for all others.
std::optional<ChannelBlocks> ChannelBlocksOf(const Dims& dims, LayoutId layout);

}  // namespace ridge::cpu
