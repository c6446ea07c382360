// The libraries that cuDNN is made of.
//
// libcudnn.so.9 opens libcudnn_ops.so.9 and others by name, so the loader may take them from
// another installation.
#pragma once
#include <set>
#include <string>

#include "ridge/backend/cuda/library_search.h"

namespace ridge::cuda {

// Whole paths of those that the process has open, links resolved.
std::set<std::string> OpenCudnnParts();

// Makes `cudnn` open its parts.  Fails with kDevice when one that is not in `before` lies in
// another folder than `cudnn`, or is of another version.
Status CheckCudnnParts(const OpenLibrary& cudnn, const std::set<std::string>& before);

}  // namespace ridge::cuda
