// The formats of text, for cloud_file.cc.  All fail with kInvalidData and the bare reason.
#pragma once
#include "ridge/data/points/cloud_file.h"

namespace ridge {

Result<CloudHeader> ReadPlyHeader(std::string_view start, int64_t file_bytes);
Result<CloudHeader> ReadOffHeader(std::string_view start, int64_t file_bytes);

// The corners are read; fills kMeshPoints places of the surface.
// REQUIRES: `faces` stands behind the corners; kMeshScratchBytes in `scratch`.
inline constexpr int64_t kMeshScratchBytes = kMeshPoints * 16;
Status SampleMesh(std::string_view faces, const CloudHeader& header, const double* corners,
                  std::span<char> scratch, double* out);

}  // namespace ridge
