// Decoders: how fast devices and processors turn videos and JPEG pictures into pixels.
//
// From a list with sources (decoders.toml).  What no source says is not known, and nothing is
// assumed instead.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridge {

// Pictures that come encoded.
struct EncodedPictures {
  std::string codec = "h264";  // or "hevc", "vp9", "av1", "jpeg"
  int64_t width = 0, height = 0;
};

// A row of the list.  Rates are pictures of 1920x1080 a second, of one engine.
struct DecoderRow {
  std::vector<std::string> devices;  // of the catalog; "host": one core of a processor
  int64_t engines = 1;               // at least so many work side by side
  std::optional<double> h264_fps = {}, hevc_fps = {}, vp9_fps = {}, av1_fps = {}, jpeg_fps = {};
  std::string source;
};

// In the order of the file.
const std::vector<DecoderRow>& DecoderRows();

// Who decodes the pictures, and how fast.
struct Decoding {
  double picture_s = 0;  // of one picture on one engine, by its pixels
  int64_t engines = 0;   // 0: on cores of the host, as many as it takes
  std::string source;

  bool on_host() const { return engines == 0; }
};

// The device's own engine where its rate is known, else a core of the host; none where neither is.
std::optional<Decoding> FindDecoding(const std::string& device, const EncodedPictures& pictures);

// "h264", "hevc", ...
const std::vector<std::string>& KnownCodecs();

}  // namespace ridge
