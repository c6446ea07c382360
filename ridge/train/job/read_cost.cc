#include "ridge/train/job/read_cost.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "ridge/core/process.h"
#include "ridge/core/threads.h"
#include "ridge/data/map.h"

namespace ridge {
namespace {

constexpr int64_t kMostSamples = 64;
constexpr int64_t kLeastSamples = 4;
constexpr double kMostSeconds = 0.05;
// Other programs may interrupt one of them for longer than all its samples take.
constexpr int kFastPasses = 3;

Status ReadSample(const Source& samples, int64_t index, std::span<char> scratch,
                  std::vector<char>& to) {
  for (size_t field = 0; field < samples.fields().size(); ++field) {
    to.resize(static_cast<size_t>(samples.fields()[field].type.bytes()));
    RIDGE_RETURN_IF_ERROR(samples.Read({index}, static_cast<int>(field), scratch, to.data()));
  }
  return Status();
}

// The first sample fills the caches and is not counted, unless it is the only one.
double MeanSeconds(const Source& samples) {
  std::vector<char> scratch(static_cast<size_t>(samples.scratch_bytes())), to;
  const int64_t count = std::min(samples.size(), kMostSamples);
  double first = 0, sum = 0;
  int64_t counted = 0;
  const double begin = MonotonicSeconds();
  for (int64_t i = 0; i < count; ++i) {
    const double now = MonotonicSeconds();
    if (i >= kLeastSamples && now - begin > kMostSeconds) break;
    if (!ReadSample(samples, i * samples.size() / count, scratch, to).ok()) continue;
    const double seconds = MonotonicSeconds() - now;
    if (first == 0) {
      first = seconds;
      continue;
    }
    sum += seconds;
    ++counted;
  }
  return counted == 0 ? first : sum / static_cast<double>(counted);
}

}  // namespace

double MeasureReadSeconds(const SourcePtr& source, const BatchSpec& spec) {
  if (source == nullptr) return 0;
  const Result<SourcePtr> samples = MapSource::Create(source, spec);
  if (!samples.ok()) return 0;  // the loader tells
  double seconds = 0;
  // What decoders keep for a thread goes with this one.
  std::thread reader([&] {
    UnpinThread();
    seconds = MeanSeconds(**samples);
    for (int pass = 1; pass < kFastPasses && !source->reads_slowly(); ++pass)
      seconds = std::min(seconds, MeanSeconds(**samples));
  });
  reader.join();
  return seconds;
}

double SecondsBesideReading(double compute_s, int threads, double read_s, int workers, int cores) {
  if (read_s <= 0 || cores < 1) return compute_s;
  const double readers = std::clamp(workers, 1, cores);
  // A reader on a core of the team holds up the whole team.
  const double beside = std::clamp<double>(cores - threads, 0, readers);
  const double shared = (compute_s * (readers - beside) + read_s) / readers;
  return std::max(compute_s, shared);
}

}  // namespace ridge
