// Point clouds in folders: DIR/class/*.ply, *.off, *.npy, found as pictures are (class_folders.h).
//
// Fields: `points` f32[N,3] and `label` i64[].  A file is read when a sample is; only the list of
// files is held in memory.  Opening reads the header of each file.
//
// The argument is DIR[,KEY=VALUE...]: points=N (1024, or what the model takes), pick=even, first or
// farthest, normalize=sphere or none (points/point_target.h).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ridge/data/points/cloud_file.h"
#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for a wrong option; with kInvalidData for folders and files: the
// message names the file and the reason.  With options.preprocessing its classes are those of the
// label, and what it says of points is done here too, but for what the argument says otherwise.
Result<DataSplits> OpenPointFolder(const std::string& name, const std::string& argument,
                                   const DataOptions& options);

// What is known before the model: `label`, and the model's sizes.  Fails as OpenPointFolder.
Result<DataFacts> PointFolderFacts(const std::string& name, const std::string& argument,
                                   const DataOptions& options);

// Fails with kInvalidData; the message begins with the path.
Result<CloudHeader> ReadCloudFileHeader(const std::string& path);

// Whether the name has the suffix of a point cloud.
bool IsCloudFile(const std::string& path);

// Whether a folder holds folders with PLY or OFF files.
bool HoldsClouds(const std::string& folder);

// All clouds below a folder, by the bytes of their paths.  Fails with kInvalidData when there is
// none.
Result<std::vector<std::string>> FindClouds(const std::string& folder);

// Clouds without labels, in this order, made as options.preprocessing says.  A file that is none
// ends it, or is left out and told to `on_bad` where that is given; null when none is left.  Fails
// with kInvalidData, kInvalidArgument.
using BadCloudFile = std::function<void(const std::string& path, const Status& why)>;
Result<SourcePtr> OpenClouds(const std::string& name, const std::vector<std::string>& paths,
                             const DataOptions& options, const BadCloudFile& on_bad = nullptr);

}  // namespace ridge
