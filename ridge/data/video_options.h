// VideoOptions: what a user says of videos behind a path: "clips,fps=8,frames=16,size=112".
//
// What the user says comes first, then what the run keeps whose preprocessing is repeated, then the
// defaults: a frame a second, clips side by side.
#pragma once
#include <optional>
#include <string>

#include "ridge/data/picture_options.h"
#include "ridge/data/video_target.h"

namespace ridge {

struct VideoOptions {
  std::string path;
  std::optional<int64_t> every, frames, stride;  // every=N, frames=N, stride=K
  std::optional<double> fps;                     // fps=F
  PictureOptions pictures;
};

// Fails with kInvalidArgument; `spec` is for messages.
Result<VideoOptions> ParseVideoOptions(const std::string& spec, const std::string& argument);

// Fails with kInvalidArgument for a stride without clips.
Result<VideoTarget> PlanVideos(const std::string& spec, const VideoOptions& options,
                               const DataOptions& data);

// "clips of 16 frames", "single frames"
std::string SamplesOf(const VideoTarget& target);

// With the model's image as that of one frame, for PlanPictures: [N,C,H,W], [C,N,H,W], [N,H,W,C],
// [N,H,W] or flat.  Fails with kInvalidArgument when the model takes clips of other lengths.
Result<DataOptions> OptionsOfFrames(const std::string& spec, const VideoTarget& target,
                                    const DataOptions& data);

}  // namespace ridge
