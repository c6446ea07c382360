// IDX files, the format of MNIST and its family.
//
// 00 00 TT NN, NN big-endian int32 extents, then the elements, big-endian, in C order.
// TT: 08 u8, 09 i8, 0B i16 (read as i32), 0C i32, 0D f32, 0E f64.  Plain or gzip.
#pragma once
#include <string>

#include "ridge/core/tensor.h"
#include "ridge/data/source.h"

namespace ridge {

// Any IDX file.  Fails with kInvalidData: not IDX, cut off, too long, damaged, absurd extents.
Result<Tensor> ReadIdx(const std::string& path);

// Fields `image` u8[H,W] and `label` u8[] from the four usual files of a folder:
// {train,t10k}-{images-idx3,labels-idx1}-ubyte, also spelled images.idx3, each also with .gz.
// The t10k pair may be missing (no test split), half a pair may not.
Result<DataSplits> OpenIdxFolder(const std::string& name, const std::string& folder);

// The same on the folder of the Debian package dataset-fashion-mnist.
Result<DataSplits> OpenFashionMnist(const std::string& folder);

}  // namespace ridge
