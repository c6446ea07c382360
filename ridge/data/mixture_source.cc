#include "ridge/data/mixture_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ridge/data/permutation.h"

namespace ridge {
namespace {

constexpr uint32_t kMixtureStream = 0x6D697800;  // + the number of a source

int64_t TotalOf(const std::vector<MixturePart>& parts) {
  int64_t total = 0;
  for (const MixturePart& part : parts) total += part.count;
  return total;
}

// Those of the first, with as many classes as any has.
std::vector<Field> FieldsOf(const std::vector<MixturePart>& parts) {
  std::vector<Field> fields = parts.front().source->fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    for (const MixturePart& part : parts)
      fields[i].classes = std::max(fields[i].classes, part.source->fields()[i].classes);
  }
  return fields;
}

template <typename Of>
auto MostOf(const std::vector<MixturePart>& parts, const Of& of) {
  auto most = of(*parts.front().source);
  for (const MixturePart& part : parts) most = std::max(most, of(*part.source));
  return most;
}

}  // namespace

MixtureSource::MixtureSource(std::string name, std::vector<MixturePart> parts,
                             std::optional<uint64_t> seed, std::vector<SourcePtr> counted)
    : Source(std::move(name), FieldsOf(parts), TotalOf(parts)),
      parts_(std::move(parts)),
      seed_(seed),
      counted_(std::move(counted)) {
  int64_t end = 0;
  for (const MixturePart& part : parts_) ends_.push_back(end += part.count);
}

MixtureSource::Place MixtureSource::PlaceOf(int64_t index) const {
  const auto part =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  return {part, index - (ends_[part] - parts_[part].count)};
}

MixtureSource::Draw MixtureSource::DrawAt(SampleAt at) const {
  const auto [part, number] = PlaceOf(at.index);
  if (!seed_) return {part, number};
  const int64_t samples = parts_[part].source->size();
  const int64_t draw = at.epoch * parts_[part].count + number;
  const Permutation order(samples, *seed_, kMixtureStream + static_cast<uint32_t>(part),
                          /*epoch=*/draw / samples);
  return {part, order.At(draw % samples)};
}

Status MixtureSource::Read(SampleAt at, int field, std::span<char> scratch, void* out) const {
  const auto [part, sample] = DrawAt(at);
  const Source& source = *parts_[part].source;
  const Status read = source.Read(at.WithIndex(sample), field, scratch, out);
  if (read.ok()) return read;
  const std::string origin = source.OriginAt(at.WithIndex(sample));
  if (read.message().starts_with(origin)) return read;
  return Status(read.code(), origin + ": " + read.message());
}

std::string MixtureSource::Origin(int64_t index) const {
  const auto [part, number] = PlaceOf(index);
  const Source& source = *parts_[part].source;
  return seed_ ? fmt::format("{}[draw {}]", source.name(), number) : source.Origin(number);
}

std::string MixtureSource::OriginAt(SampleAt at) const {
  const auto [part, sample] = DrawAt(at);
  return parts_[part].source->OriginAt(at.WithIndex(sample));
}

int64_t MixtureSource::scratch_bytes() const {
  return MostOf(parts_, [](const Source& source) { return source.scratch_bytes(); });
}
int64_t MixtureSource::heap_bytes() const {
  return MostOf(parts_, [](const Source& source) { return source.heap_bytes(); });
}
bool MixtureSource::reads_slowly() const {
  return MostOf(parts_, [](const Source& source) { return source.reads_slowly(); });
}
bool MixtureSource::reads_crops() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const MixturePart& part) { return part.source->reads_crops(); });
}
int64_t MixtureSource::resident_bytes() const {
  std::vector<SourcePtr> sources = counted_;
  for (const MixturePart& part : parts_) sources.push_back(part.source);
  return ResidentBytes(sources) - ResidentBytes(counted_);
}

std::vector<int64_t> ShareOut(int64_t samples, const std::vector<double>& weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> counts;
  std::vector<std::pair<double, size_t>> remainders;  // the largest first
  for (size_t i = 0; i < weights.size(); ++i) {
    const double share = static_cast<double>(samples) * (weights[i] / total);
    counts.push_back(std::max<int64_t>(1, static_cast<int64_t>(std::floor(share))));
    remainders.emplace_back(std::floor(share) - share, i);
  }
  std::sort(remainders.begin(), remainders.end());
  int64_t left = samples - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (size_t i = 0; left > 0; i = (i + 1) % remainders.size(), --left)
    ++counts[remainders[i].second];
  // Shares below 1 were raised to it.
  for (; left < 0; ++left) --*std::max_element(counts.begin(), counts.end());
  return counts;
}

}  // namespace ridge
