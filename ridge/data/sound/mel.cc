// kFftLanes frames at a time, each a lane from the window to the logarithm.
#include "ridge/data/sound/mel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

constexpr double kFloor = 1e-10;  // of the power, before the logarithm

Status Bad(const std::string& what) { return InvalidArgument(what); }

// Periodic, in the middle of `fft` samples, as torch.stft places it.
std::vector<double> HannWindow(const MelSettings& settings) {
  std::vector<double> window(static_cast<size_t>(settings.fft));
  const int64_t before = (settings.fft - settings.window) / 2;
  for (int64_t i = 0; i < settings.window; ++i) {
    const double turn = static_cast<double>(i) / static_cast<double>(settings.window);
    window[static_cast<size_t>(before + i)] = 0.5 - 0.5 * std::cos(2 * std::numbers::pi * turn);
  }
  return window;
}

constexpr double kLinearHz = 200.0 / 3, kBreakHz = 1000, kBreakMel = 15;
const double kLogStep = std::log(6.4) / 27;

double HzToMel(double hz, MelScale scale) {
  if (scale == MelScale::kHtk) return 2595 * std::log10(1 + hz / 700);
  return hz < kBreakHz ? hz / kLinearHz : kBreakMel + std::log(hz / kBreakHz) / kLogStep;
}

double MelToHz(double mel, MelScale scale) {
  if (scale == MelScale::kHtk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < kBreakMel ? kLinearHz * mel : kBreakHz * std::exp(kLogStep * (mel - kBreakMel));
}

// The frequencies where triangles begin, have their tops, and end: mel m has corners m to m + 2.
std::vector<double> Corners(const MelSettings& settings) {
  const double low = HzToMel(settings.low, settings.scale);
  const double high = HzToMel(settings.high, settings.scale);
  std::vector<double> corners(static_cast<size_t>(settings.mels + 2));
  for (size_t i = 0; i < corners.size(); ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(settings.mels + 1);
    corners[i] = MelToHz(low + (high - low) * part, settings.scale);
  }
  return corners;
}

}  // namespace

std::vector<double> MelTriangles(const MelSettings& settings, int64_t rate) {
  const int64_t bins = settings.fft / 2 + 1, mels = settings.mels;
  const std::vector<double> corners = Corners(settings);
  std::vector<double> triangles(static_cast<size_t>(bins * mels));
  for (int64_t m = 0; m < mels; ++m) {
    const auto at = static_cast<size_t>(m);
    const double left = corners[at], top = corners[at + 1], right = corners[at + 2];
    const double area = settings.scale == MelScale::kSlaney ? 2 / (right - left) : 1;
    for (int64_t b = 0; b < bins; ++b) {
      // The last bin is half the rate, rounded down.
      const double f =
          static_cast<double>(rate / 2) * static_cast<double>(b) / static_cast<double>(bins - 1);
      const double height = std::min((f - left) / (top - left), (right - f) / (right - top));
      triangles[static_cast<size_t>(b * mels + m)] = std::max(height, 0.0) * area;
    }
  }
  return triangles;
}

Status CheckMel(const MelSettings& settings, int64_t rate, int64_t samples) {
  const auto between = [](int64_t value, int64_t least, int64_t most) {
    return value >= least && value <= most;
  };
  if (!between(settings.fft, 2, kMostFft))
    return Bad(fmt::format("fft is {}; it must be 2 to {}", settings.fft, kMostFft));
  if (!between(settings.window, 1, settings.fft))
    return Bad(fmt::format("window is {}; it must be 1 to fft, {}", settings.window, settings.fft));
  if (!between(settings.hop, 1, kMostFft))
    return Bad(fmt::format("hop is {}; it must be 1 to {}", settings.hop, kMostFft));
  if (!between(settings.mels, 1, kMostMels))
    return Bad(fmt::format("mels is {}; it must be 1 to {}", settings.mels, kMostMels));
  const double nyquist = static_cast<double>(rate) / 2;
  if (!(settings.low >= 0 && settings.low < settings.high && settings.high <= nyquist)) {
    return Bad(fmt::format("frequencies from {} to {} Hz; they must rise, up to half the rate, {}",
                           settings.low, settings.high, nyquist));
  }
  if (samples > settings.fft / 2 && settings.frames(samples) >= 1) return Status();
  return Bad(fmt::format("{} samples are too few for frames of {}", samples, settings.fft));
}

LogMel::LogMel(const MelSettings& settings, int64_t rate, int64_t samples)
    : settings_(settings),
      samples_(samples),
      frames_(settings.frames(samples)),
      fft_(settings.fft),
      window_(HannWindow(settings)) {
  AddTriangles(rate);
}

void LogMel::AddTriangles(int64_t rate) {
  const std::vector<double> all = MelTriangles(settings_, rate);
  for (int64_t m = 0; m < settings_.mels; ++m) {
    Triangle triangle;
    triangle.weights = static_cast<int64_t>(weights_.size());
    for (int64_t b = 0; b < fft_.bins(); ++b) {
      const double weight = all[static_cast<size_t>(b * settings_.mels + m)];
      if (weight == 0) continue;
      if (triangle.count == 0) triangle.first = b;
      for (int64_t gap = triangle.first + triangle.count; gap < b; ++gap) weights_.push_back(0);
      weights_.push_back(weight);
      triangle.count = b - triangle.first + 1;
    }
    triangles_.push_back(triangle);
  }
}

int64_t LogMel::scratch_bytes() const {
  const int64_t doubles = (settings_.fft + fft_.bins()) * kFftLanes + fft_.scratch_doubles();
  return doubles * static_cast<int64_t>(sizeof(double));
}

int64_t LogMel::bytes() const {
  return fft_.bytes() + static_cast<int64_t>((window_.size() + weights_.size()) * sizeof(double) +
                                             triangles_.size() * sizeof(Triangle));
}

// Beyond the ends the sound is mirrored.
void LogMel::TakeFrames(const float* samples, int64_t frame, int64_t count, double* lanes) const {
  for (int64_t lane = 0; lane < kFftLanes; ++lane) {
    // Lanes without a frame repeat the last one.
    const int64_t begin = (frame + std::min(lane, count - 1)) * settings_.hop - settings_.fft / 2;
    for (int64_t i = 0; i < settings_.fft; ++i) {
      int64_t at = begin + i;
      if (at < 0) at = -at;
      if (at >= samples_) at = 2 * (samples_ - 1) - at;
      lanes[i * kFftLanes + lane] =
          static_cast<double>(samples[at]) * window_[static_cast<size_t>(i)];
    }
  }
}

void LogMel::SumTriangles(const double* power, int64_t count, float* out) const {
  for (int64_t m = 0; m < settings_.mels; ++m) {
    const Triangle& triangle = triangles_[static_cast<size_t>(m)];
    const double* weights = weights_.data() + triangle.weights;
    double sums[kFftLanes] = {};
    for (int64_t b = 0; b < triangle.count; ++b) {
      const double* row = power + (triangle.first + b) * kFftLanes;
      for (int64_t lane = 0; lane < kFftLanes; ++lane) sums[lane] += weights[b] * row[lane];
    }
    float* row = out + m * frames_;
    for (int64_t lane = 0; lane < count; ++lane) {
      const double sum = sums[lane];
      const double level = settings_.level == MelLevel::kLog ? std::log(sum + 1e-6)
                                                             : std::log10(std::max(sum, kFloor));
      row[lane] = static_cast<float>(settings_.level == MelLevel::kDecibel ? 10 * level : level);
    }
  }
}

// What needs the whole spectrogram.
void LogMel::Level(float* out) const {
  if (settings_.level != MelLevel::kWhisper) return;
  const int64_t count = settings_.mels * frames_;
  const float least = *std::max_element(out, out + count) - 8.0F;
  for (int64_t i = 0; i < count; ++i) out[i] = (std::max(out[i], least) + 4.0F) / 4.0F;
}

void LogMel::Run(const float* samples, std::span<char> scratch, float* out) const {
  RIDGE_CHECK(static_cast<int64_t>(scratch.size()) >= scratch_bytes(), "scratch of a spectrogram");
  auto* lanes = reinterpret_cast<double*>(scratch.data());
  double* power = lanes + settings_.fft * kFftLanes;
  double* passes = power + fft_.bins() * kFftLanes;
  for (int64_t frame = 0; frame < frames_; frame += kFftLanes) {
    const int64_t count = std::min(kFftLanes, frames_ - frame);
    TakeFrames(samples, frame, count, lanes);
    fft_.Power(lanes, passes, power);
    SumTriangles(power, count, out + frame);
  }
  Level(out);
}

}  // namespace ridge
