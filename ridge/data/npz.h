// Arrays in numpy's .npz files, read and written.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ridge/core/tensor.h"

namespace ridge {

// The arrays in the file's order, named without ".npy".  Stored and deflated entries; f2 f4 f8 i1
// i2 i4 i8 u1 u2 u4 u8 b1.  Each array is decompressed straight into its tensor. Fails with
// kInvalidData for a file that is missing, damaged, or holds anything else; kOutOfMemory when an
// array does not fit.
Result<std::vector<std::pair<std::string, Tensor>>> ReadNpz(const std::string& path);

// Writes the file atomically, not compressed; numpy reads it.  bf16 and floats of 8 and 4 bits are
// written as f32, integers of 4 and 2 bits as bytes.
// The archive is put together in memory first.
// Fails with kUnavailable when it cannot be written, kUnsupported from 4 GiB on.
Status WriteNpz(const std::string& path,
                const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace ridge
