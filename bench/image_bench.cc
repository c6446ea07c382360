// Microseconds a picture: decode, resize, conversion for the model, and all of it as a run reads
// it.
//
//   image_bench [FOLDER]     files of FOLDER, by default 500x375 pictures made here
//
// bench/image_peers.py times Pillow and torchvision on the same files.
#include <turbojpeg.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "ridge/core/files.h"
#include "ridge/data/convert.h"
#include "ridge/data/image/crop.h"
#include "ridge/data/image/decode.h"
#include "ridge/data/picture_options.h"

namespace {

using namespace ridge;
using Clock = std::chrono::steady_clock;

constexpr int64_t kSide = 224;
constexpr int kRounds = 15;

std::vector<std::string> ReadFolder(const char* folder) {
  std::vector<std::string> paths, files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) files.push_back(*ReadFile(path));
  return files;
}

struct Times {
  double decode = 1e9, resize = 1e9, convert = 1e9,
         normalize = 1e9;  // the least of all rounds, us a picture
};

double SecondsOf(const auto& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Bench {
 public:
  explicit Bench(std::vector<std::string> files) : files_(std::move(files)) {
    for (const std::string& file : files_) {
      headers_.push_back(**ReadImageHeader(BytesOf(file), /*whole=*/true));
      calls_.push_back(FitPicture({headers_.back().height, headers_.back().width}, {kSide, kSide},
                                  ImageFit::kCrop, ResizeFilter::kBilinear, /*channels=*/3));
      pixels_.emplace_back(static_cast<size_t>(DecodedBytes(headers_.back()) + kResizeSlackBytes));
      scratch_.resize(
          std::max(scratch_.size(), static_cast<size_t>(ResizeScratchBytes(calls_.back()))));
    }
  }

  Times Run() {
    Times times;
    const double count = static_cast<double>(files_.size()) / 1e6;
    for (int round = 0; round < kRounds; ++round) {
      times.decode = std::min(times.decode, SecondsOf([&] { Decode(); }) / count);
      times.resize = std::min(times.resize, SecondsOf([&] { ResizeAll(); }) / count);
      times.convert = std::min(times.convert, SecondsOf([&] { ConvertAll({}); }) / count);
      const PixelNormalization imagenet = *ParseNormalization("imagenet");
      times.normalize = std::min(times.normalize, SecondsOf([&] { ConvertAll(imagenet); }) / count);
    }
    return times;
  }

 private:
  static std::span<const uint8_t> BytesOf(const std::string& file) {
    return {reinterpret_cast<const uint8_t*>(file.data()), file.size()};
  }

  void Decode() {
    for (size_t i = 0; i < files_.size(); ++i)
      RIDGE_CHECK(DecodeImage(BytesOf(files_[i]), headers_[i], pixels_[i]).ok(), "a whole file");
  }
  void ResizeAll() {
    for (size_t i = 0; i < files_.size(); ++i)
      Resize(calls_[i], pixels_[i].data(), scratch_, small_.data());
  }
  void ConvertAll(const PixelNormalization& normalization) {
    const Conversion conversion = *PlanConversion({DType::kU8, {kSide, kSide, 3}},
                                                  {DType::kF32, {3, kSide, kSide}}, normalization);
    for (size_t i = 0; i < files_.size(); ++i) Convert(conversion, small_.data(), input_.data());
  }

  std::vector<std::string> files_;
  std::vector<ImageHeader> headers_;
  std::vector<ResizeCall> calls_;
  std::vector<std::vector<uint8_t>> pixels_;
  std::vector<char> scratch_;
  std::vector<uint8_t> small_ = std::vector<uint8_t>(kSide * kSide * 3);
  std::vector<float> input_ = std::vector<float>(kSide * kSide * 3);
};

// Waves and noise, quality 92, 4:2:0.
std::string MadePicture(int seed) {
  constexpr int kWidth = 500, kHeight = 375;
  std::vector<uint8_t> pixels(kWidth * kHeight * 3);
  uint32_t noise = static_cast<uint32_t>(seed) + 1;
  for (size_t i = 0; i < pixels.size(); ++i) {
    noise = noise * 1664525 + 1013904223;
    const double x = static_cast<double>(i / 3 % kWidth), y = static_cast<double>(i / 3 / kWidth);
    const double wave =
        60 * std::sin(x / (9 + seed)) + 40 * std::cos(y / 13 + static_cast<double>(i % 3));
    pixels[i] = static_cast<uint8_t>(120 + wave + static_cast<double>(noise >> 27) - 16);
  }
  tjhandle encoder = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  const int failed = tjCompress2(encoder, pixels.data(), kWidth, 0, kHeight, TJPF_RGB, &bytes,
                                 &count, TJSAMP_420, 92, 0);
  RIDGE_CHECK(failed == 0, "a picture is encoded");
  std::string file(reinterpret_cast<const char*>(bytes), count);
  tjFree(bytes);
  tjDestroy(encoder);
  return file;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  if (argc > 1) files = ReadFolder(argv[1]);
  for (int seed = 0; argc < 2 && seed < 20; ++seed) files.push_back(MadePicture(seed));
  if (files.empty()) return 1;
  double bytes = 0;
  for (const std::string& file : files) bytes += static_cast<double>(file.size());
  const size_t count = files.size();
  const Times times = Bench(std::move(files)).Run();
  std::printf("%zu pictures of %.0f KB, to 224x224, us a picture on one core\n", count,
              bytes / 1e3 / static_cast<double>(count));
  std::printf("  decode    %7.0f\n  resize    %7.0f\n  convert   %7.0f\n  normalize %7.0f\n",
              times.decode, times.resize, times.convert, times.normalize);
  std::printf("  decode, resize, normalize %7.0f\n", times.decode + times.resize + times.normalize);
  return 0;
}
