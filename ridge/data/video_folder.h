// Videos in folders: DIR/class/*.mp4, .mkv, .webm and others, found as pictures are
// (class_folders.h), by a plug-in (container/video_plugin.h).
//
// A sample is a frame: `image` u8[H,W,3], or u8[H,W] for a model of one channel, and `label` i64[].
// With frames=N it is a clip of N frames, `image` u8[N,H,W,3] or u8[N,H,W,1].  Frames are decoded,
// resized and cropped when they are read; in memory are the list of files and the time stamps of
// their frames.  Opening reads the packets of each file.
//
// The argument is DIR or a pattern of files, and VideoOptions.  Frames are picked by fps=F (1) or
// every=N; a clip is N picked frames in a row, the next one begins stride=K (N) picked frames
// later, and those that fill no clip are left out.  All frames of files with equal bytes are on one
// side of a split.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

// Fails with kInvalidArgument for a wrong option, or without any size; kUnsupported without the
// plug-in; kInvalidData for folders and files: the message names the file, and the frame.  With
// options.preprocessing its classes are those of the label, and what it says of pictures is done
// here too, but for what the argument says otherwise.
Result<DataSplits> OpenVideoFolder(const std::string& name, const std::string& argument,
                                   const DataOptions& options);

// As ImageFolderFacts.
Result<DataFacts> VideoFolderFacts(const std::string& name, const std::string& argument,
                                   const DataOptions& options);

// Whether the name has the suffix of a video.
bool IsVideoFile(const std::string& path);

// All videos below a folder, by the bytes of their paths.  Fails with kInvalidData when there is
// none.
Result<std::vector<std::string>> FindVideos(const std::string& folder);

// Frames or clips without labels in this order of the videos, made as options.preprocessing says;
// a path may have options: "a.mp4,fps=5".  A file that is none ends it, or is left out and told to
// `on_bad` where that is given; null when none is left.  Fails with kInvalidData, kInvalidArgument.
using BadVideo = std::function<void(const std::string& path, const Status& why)>;
Result<SourcePtr> OpenVideos(const std::string& name, const std::vector<std::string>& paths,
                             const DataOptions& options, const BadVideo& on_bad = nullptr);

}  // namespace ridge
