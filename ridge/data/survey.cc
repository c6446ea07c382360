// Threads take samples from a counter; each keeps its own sums, which are added in the order of the
// threads' numbers, and a hash a sample, so that counts do not depend on the number of threads.
#include "ridge/data/survey.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "ridge/core/rounding.h"
#include "ridge/data/batch_spec.h"
#include "ridge/data/content_split.h"
#include "ridge/data/image_folder.h"
#include "ridge/data/mask_folder.h"
#include "ridge/data/packed_text.h"
#include "ridge/data/point_folder.h"
#include "ridge/data/sound_folder.h"
#include "ridge/data/spelling.h"
#include "ridge/data/text_source.h"

namespace ridge {
namespace {

struct Sums {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  double sum = 0, squares = 0;
  int64_t count = 0, not_finite = 0;

  void Add(double value) {
    if (!std::isfinite(value)) {
      ++not_finite;
      return;
    }
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
    squares += value * value;
    ++count;
  }
  void Add(const Sums& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    sum += other.sum;
    squares += other.squares;
    count += other.count;
    not_finite += other.not_finite;
  }
};

// Of masks.
struct PixelCounts {
  std::vector<int64_t> pixels, samples;  // by class
  int64_t ignored = 0;

  void Add(const PixelCounts& other) {
    pixels.resize(std::max(pixels.size(), other.pixels.size()));
    samples.resize(pixels.size());
    for (size_t c = 0; c < other.pixels.size(); ++c) pixels[c] += other.pixels[c];
    for (size_t c = 0; c < other.samples.size(); ++c) samples[c] += other.samples[c];
    ignored += other.ignored;
  }
};

PixelCounts CountPixels(const Field& mask, const char* labels) {
  PixelCounts counts;
  counts.pixels.resize(static_cast<size_t>(mask.classes));
  for (int64_t i = 0; i < mask.type.elements(); ++i) {
    const auto label = static_cast<int64_t>(LoadAsDouble(mask.type.dtype, labels, i));
    const bool known = label >= 0 && label < mask.classes;
    if (known) ++counts.pixels[static_cast<size_t>(label)];
    if (!known) ++counts.ignored;
  }
  for (const int64_t count : counts.pixels) counts.samples.push_back(count > 0 ? 1 : 0);
  return counts;
}

// What one thread found.
struct Part {
  PixelCounts masks;
  std::vector<Sums> fields;    // one a field
  std::vector<Sums> features;  // one a feature of a table
  std::vector<std::pair<int64_t, std::string>> bad;
};

struct SampleHash {
  int64_t index = 0;
  uint64_t hash = 0;
  int64_t label = 0;
  bool good = false;
};

// The label's field, where it is one integer; -1 otherwise.
int LabelField(const Source& source) {
  const Field* label = FindFieldByName("label", source.fields());
  if (label == nullptr || IsFloat(label->type.dtype) || label->type.elements() != 1) return -1;
  return source.FindField(label->name);
}

// The field of masks whose number of classes is known; -1 otherwise.
int MaskFieldOf(const Source& source) {
  const Field* mask = FindMaskField(source.fields());
  return mask == nullptr || mask->classes < 1 ? -1 : source.FindField(mask->name);
}

class SetReader {
 public:
  SetReader(const Source& source, const Preprocessing* preprocessing, const SurveyOptions& options)
      : source_(source), options_(options), label_(LabelField(source)), mask_(MaskFieldOf(source)) {
    const bool is_table = preprocessing != nullptr && preprocessing->table;
    if (is_table) features_ = source.FindField("features");
    const bool some = source.reads_slowly() && !options.all;
    every_ = some ? std::max<int64_t>(1, CeilDiv(source.size(), options.slow_samples)) : 1;
    hashes_.resize(static_cast<size_t>(CeilDiv(source.size(), every_)));
  }

  Status Read() {
    const int threads = std::max(1, options_.threads);
    std::vector<Part> parts(static_cast<size_t>(threads));
    std::vector<std::thread> workers;
    for (int i = 1; i < threads; ++i)
      workers.emplace_back([this, &parts, i] { Work(parts[static_cast<size_t>(i)]); });
    Work(parts[0]);
    for (std::thread& worker : workers) worker.join();
    RIDGE_RETURN_IF_ERROR(failure_);
    for (const Part& part : parts) Merge(part);
    std::sort(all_.bad.begin(), all_.bad.end());
    return Status();
  }

  const Part& found() const { return all_; }
  const std::vector<SampleHash>& hashes() const { return hashes_; }
  int label() const { return label_; }
  int mask() const { return mask_; }
  int features() const { return features_; }

 private:
  void Work(Part& part) {
    part.fields.resize(source_.fields().size());
    if (features_ >= 0) part.features.resize(static_cast<size_t>(FeatureCount()));
    std::vector<char> scratch(static_cast<size_t>(source_.scratch_bytes()));
    std::vector<char> buffer;
    const auto count = static_cast<int64_t>(hashes_.size());
    constexpr int64_t kPiece = 64;  // neighbours, so that files are read in order
    for (int64_t begin = next_.fetch_add(kPiece); begin < count; begin = next_.fetch_add(kPiece)) {
      for (int64_t i = begin; i < std::min(count, begin + kPiece); ++i) {
        const Status status = ReadSample(i, scratch, buffer, part);
        if (status.ok()) continue;
        const std::lock_guard lock(mutex_);
        failure_ = status;
        next_ = count;
      }
    }
  }

  int64_t FeatureCount() const {
    return source_.fields()[static_cast<size_t>(features_)].type.elements();
  }

  Status ReadSample(int64_t position, std::span<char> scratch, std::vector<char>& buffer,
                    Part& part) {
    SampleHash& sample = hashes_[static_cast<size_t>(position)];
    sample.index = position * every_;
    ContentHash hash;
    std::vector<Sums> sums(source_.fields().size());
    PixelCounts pixels;
    for (size_t f = 0; f < source_.fields().size(); ++f) {
      const TensorType& type = source_.fields()[f].type;
      buffer.resize(static_cast<size_t>(type.bytes()));
      const Status status =
          source_.Read({sample.index}, static_cast<int>(f), scratch, buffer.data());
      if (status.code() == ErrorCode::kInvalidData) {
        part.bad.emplace_back(sample.index, status.message());
        return Status();
      }
      RIDGE_RETURN_IF_ERROR(status);
      if (static_cast<int>(f) == label_)
        sample.label = static_cast<int64_t>(LoadAsDouble(type.dtype, buffer.data(), 0));
      else if (static_cast<int>(f) == mask_)
        sample.label = TakeMask(f, buffer, pixels);
      else
        hash.Add({buffer.data(), buffer.size()});
      Summarize(f, type, buffer.data(), sums[f], part);
    }
    for (size_t f = 0; f < sums.size(); ++f) part.fields[f].Add(sums[f]);
    part.masks.Add(pixels);
    sample.hash = hash.value();
    sample.good = true;
    return Status();
  }

  // Returns what equal masks have in common.
  int64_t TakeMask(size_t field, const std::vector<char>& labels, PixelCounts& pixels) const {
    pixels = CountPixels(source_.fields()[field], labels.data());
    ContentHash hash;
    hash.Add({labels.data(), labels.size()});
    return static_cast<int64_t>(hash.value());
  }

  void Summarize(size_t field, const TensorType& type, const char* data, Sums& sums, Part& part) {
    const bool is_table = static_cast<int>(field) == features_;
    for (int64_t i = 0; i < type.elements(); ++i) {
      const double value = LoadAsDouble(type.dtype, data, i);
      sums.Add(value);
      if (is_table) part.features[static_cast<size_t>(i)].Add(value);
    }
  }

  void Merge(const Part& part) {
    all_.fields.resize(source_.fields().size());
    all_.features.resize(std::max(all_.features.size(), part.features.size()));
    for (size_t f = 0; f < part.fields.size(); ++f) all_.fields[f].Add(part.fields[f]);
    for (size_t f = 0; f < part.features.size(); ++f) all_.features[f].Add(part.features[f]);
    all_.masks.Add(part.masks);
    all_.bad.insert(all_.bad.end(), part.bad.begin(), part.bad.end());
  }

  const Source& source_;
  const SurveyOptions& options_;
  const int label_, mask_;
  int features_ = -1;
  int64_t every_ = 1;
  std::vector<SampleHash> hashes_;  // of the samples that are read
  std::atomic<int64_t> next_ = 0;
  std::mutex mutex_;
  Status failure_;
  Part all_;
};

// ---- what is told of a set

// Those of the field, with their names, before they are counted.
std::vector<ClassCount> NamedClasses(const Field& field, const Preprocessing* preprocessing) {
  std::vector<ClassCount> classes;
  constexpr int64_t kMostClasses = 1 << 20;
  const int64_t count = std::max<int64_t>(
      field.classes,
      preprocessing == nullptr ? 0 : static_cast<int64_t>(preprocessing->classes.size()));
  if (count < 1 || count > kMostClasses) return classes;
  for (int64_t i = 0; i < count; ++i) {
    const bool named =
        preprocessing != nullptr && i < static_cast<int64_t>(preprocessing->classes.size());
    classes.push_back(
        {i, named ? preprocessing->classes[static_cast<size_t>(i)] : std::to_string(i)});
  }
  return classes;
}

Result<std::vector<ClassCount>> CountClasses(const Source& source, int label,
                                             const Preprocessing* preprocessing) {
  std::vector<ClassCount> classes;
  if (label < 0) return classes;
  const Field& field = source.fields()[static_cast<size_t>(label)];
  classes = NamedClasses(field, preprocessing);
  const auto count = static_cast<int64_t>(classes.size());
  std::vector<char> scratch(static_cast<size_t>(source.scratch_bytes()));
  std::vector<char> value(static_cast<size_t>(field.type.bytes()));
  for (int64_t i = 0; i < source.size(); ++i) {
    const Status status = source.Read({i}, label, scratch, value.data());
    if (status.code() == ErrorCode::kInvalidData) continue;
    RIDGE_RETURN_IF_ERROR(status);
    const auto index = static_cast<int64_t>(LoadAsDouble(field.type.dtype, value.data(), 0));
    if (index >= 0 && index < count) ++classes[static_cast<size_t>(index)].samples;
  }
  return classes;
}

void DescribeMasks(const Field& mask, const PixelCounts& counts, const Preprocessing* preprocessing,
                   SetSurvey& survey) {
  survey.has_masks = true;
  survey.classes = NamedClasses(mask, preprocessing);
  survey.ignored_pixels = counts.ignored;
  for (size_t c = 0; c < std::min(survey.classes.size(), counts.pixels.size()); ++c) {
    survey.classes[c].pixels = counts.pixels[c];
    survey.classes[c].samples = counts.samples[c];
  }
}

FieldSurvey Describe(const Field& field, const Sums& sums) {
  FieldSurvey survey;
  survey.field = field;
  survey.not_finite = sums.not_finite;
  if (sums.count == 0) return survey;
  const auto count = static_cast<double>(sums.count);
  survey.least = sums.least;
  survey.most = sums.most;
  survey.mean = sums.sum / count;
  survey.deviation = std::sqrt(std::max(0.0, sums.squares / count - survey.mean * survey.mean));
  return survey;
}

// Back from the features to the file's unit.  A missing number is the mean, so it widens no range
// but that of a column that misses all.
std::vector<ColumnSurvey> DescribeColumns(const TablePreprocessing& table,
                                          const std::vector<Sums>& features) {
  std::vector<ColumnSurvey> columns;
  size_t at = 0;
  for (const TableColumn& column : table.columns) {
    ColumnSurvey survey;
    survey.column = column;
    const auto count = static_cast<size_t>(column.features());
    if (at + count > features.size()) break;
    if (column.kind == ColumnKind::kCategory) {
      for (size_t i = 0; i < column.values.size(); ++i)
        survey.counts.push_back(std::llround(features[at + i].sum));
    } else {
      const double scale = table.standardize ? (column.std > 0 ? column.std : 1) : 1;
      const double shift = table.standardize ? column.mean : 0;
      survey.least = features[at].least * scale + shift;
      survey.most = features[at].most * scale + shift;
    }
    if (column.missing) survey.missing = std::llround(features[at + count - 1].sum);
    columns.push_back(std::move(survey));
    at += count;
  }
  return columns;
}

// ---- pictures

template <typename Key>
void CountOne(Key key, std::vector<std::pair<Key, int64_t>>& counts) {
  for (auto& [known, count] : counts) {
    if (known == key) ++count;
    if (known == key) return;
  }
  counts.emplace_back(key, 1);
}

// Whether samples are files of this kind, one each.
bool AreFiles(const Source& source, bool (*is_file)(const std::string& path)) {
  std::error_code ignored;
  return source.reads_slowly() && is_file(source.Origin(0)) &&
         std::filesystem::exists(source.Origin(0), ignored);
}

// Nothing where the samples are no files of pictures.
std::optional<PictureSurvey> SurveyPictures(const Source& source,
                                            const std::vector<SampleHash>& samples) {
  if (!AreFiles(source, IsPictureFile)) return std::nullopt;
  struct Sized {
    int64_t pixels = 0;
    ImageSize size;
    int64_t index = 0;
  };
  PictureSurvey survey;
  std::vector<Sized> sizes;
  for (const SampleHash& sample : samples) {
    const Result<ImageHeader> header = ReadPictureHeader(source.Origin(sample.index));
    if (!header.ok()) continue;  // a bad sample, told as such
    CountOne<std::string>(ImageFormatName(header->format), survey.formats);
    CountOne(header->channels, survey.channels);
    sizes.push_back({header->pixels(), {header->height, header->width}, sample.index});
  }
  if (sizes.empty()) return std::nullopt;
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const Sized& a, const Sized& b) { return a.pixels < b.pixels; });
  survey.smallest = sizes.front().size;
  survey.median = sizes[sizes.size() / 2].size;
  survey.largest = sizes.back().size;
  survey.smallest_file = source.Origin(sizes.front().index);
  survey.largest_file = source.Origin(sizes.back().index);
  return survey;
}

// ---- sounds

// Nothing where the samples are no files of sounds.
std::optional<SoundSurvey> SurveySounds(const Source& source,
                                        const std::vector<SampleHash>& samples) {
  if (!AreFiles(source, IsSoundFile)) return std::nullopt;
  SoundSurvey survey;
  std::vector<std::pair<double, int64_t>> lengths;  // and the sample
  for (const SampleHash& sample : samples) {
    const Result<SoundHeader> header = ReadSoundFileHeader(source.Origin(sample.index));
    if (!header.ok()) continue;  // a bad sample, told as such
    CountOne<std::string>(SoundFormatName(header->format), survey.formats);
    CountOne(header->rate, survey.rates);
    CountOne(header->channels, survey.channels);
    lengths.emplace_back(static_cast<double>(header->frames) / static_cast<double>(header->rate),
                         sample.index);
    survey.total_s += lengths.back().first;
  }
  if (lengths.empty()) return std::nullopt;
  std::sort(survey.rates.begin(), survey.rates.end());
  std::sort(survey.channels.begin(), survey.channels.end());
  std::sort(lengths.begin(), lengths.end());
  survey.shortest_s = lengths.front().first;
  survey.median_s = lengths[lengths.size() / 2].first;
  survey.longest_s = lengths.back().first;
  survey.shortest_file = source.Origin(lengths.front().second);
  survey.longest_file = source.Origin(lengths.back().second);
  return survey;
}

// ---- texts

// Of all that lies where the set does, those held out of it too.
std::optional<TextSurvey> SurveyTexts(const Source& source) {
  const auto* plain = dynamic_cast<const TextSource*>(source.storage());
  const auto* packed = dynamic_cast<const PackedText*>(source.storage());
  if (plain == nullptr && packed == nullptr) return std::nullopt;
  TextSurvey survey;
  survey.is_packed = packed != nullptr;
  survey.length = packed != nullptr ? packed->layout().length : plain->layout().length;
  std::vector<int32_t> lengths =
      packed != nullptr ? packed->text().Lengths() : plain->text().Lengths();
  std::erase(lengths, 0);
  if (lengths.empty()) return std::nullopt;
  survey.shares = SharesOf(lengths, survey.length);
  std::sort(lengths.begin(), lengths.end());
  survey.shortest = lengths.front();
  survey.median = lengths[lengths.size() / 2];
  survey.longest = lengths.back();
  return survey;
}

// ---- point clouds

// Nothing where the samples are no files of point clouds.
std::optional<CloudSurvey> SurveyClouds(const Source& source,
                                        const std::vector<SampleHash>& samples) {
  if (!AreFiles(source, IsCloudFile)) return std::nullopt;
  CloudSurvey survey;
  std::vector<std::pair<int64_t, int64_t>> sizes;  // and the sample
  for (const SampleHash& sample : samples) {
    const Result<CloudHeader> header = ReadCloudFileHeader(source.Origin(sample.index));
    if (!header.ok()) continue;  // a bad sample, told as such
    CountOne<std::string>(CloudFormatName(header->format), survey.formats);
    sizes.emplace_back(header->points, sample.index);
  }
  if (sizes.empty()) return std::nullopt;
  std::sort(sizes.begin(), sizes.end());
  survey.fewest = sizes.front().first;
  survey.median = sizes[sizes.size() / 2].first;
  survey.most = sizes.back().first;
  survey.smallest_file = source.Origin(sizes.front().second);
  survey.largest_file = source.Origin(sizes.back().second);
  return survey;
}

// ---- transcripts

// Nothing where the samples have none.
Result<std::optional<TranscriptSurvey>> SurveyTranscripts(const Source& source,
                                                          const Preprocessing* known) {
  const int text = source.FindField("text"), length = source.FindField("text_length");
  if (known == nullptr || !known->spelling || text < 0 || length < 0)
    return std::optional<TranscriptSurvey>();
  const std::vector<std::string>& letters = known->spelling->letters;
  std::vector<int64_t> counts(letters.size() + 2), lengths;
  std::vector<int64_t> classes(
      static_cast<size_t>(source.fields()[static_cast<size_t>(text)].type.elements()));
  TranscriptSurvey survey;
  const Spelling spelling(*known->spelling);
  for (int64_t i = 0; i < source.size(); ++i) {
    int64_t count = 0;
    RIDGE_RETURN_IF_ERROR(source.Read({i}, length, {}, &count));
    RIDGE_RETURN_IF_ERROR(source.Read({i}, text, {}, classes.data()));
    lengths.push_back(count);
    survey.letters += count;
    const std::span<const int64_t> said = std::span(classes).first(static_cast<size_t>(count));
    for (const int64_t letter : said) ++counts[static_cast<size_t>(letter)];
    const std::string words = spelling.Read(said);
    survey.words += 1 + std::count(words.begin(), words.end(), ' ');
  }
  std::sort(lengths.begin(), lengths.end());
  survey.shortest = lengths.front();
  survey.median = lengths[lengths.size() / 2];
  survey.longest = lengths.back();
  for (size_t i = 0; i < letters.size(); ++i)
    survey.spelled.emplace_back(letters[i], counts[i + 1]);
  survey.others = counts.back();
  return std::optional(std::move(survey));
}

// ---- equal samples

using FirstOf = std::unordered_map<uint64_t, const SampleHash*>;  // looked up, never walked

void AddPair(const Source& in, const SampleHash& a, const Source& of, const SampleHash& b,
             DuplicateSurvey& survey) {
  ++survey.samples;
  if (a.label != b.label) ++survey.other_labels;
  if (survey.first.size() < kMostPairs)
    survey.first.push_back({in.Origin(a.index), of.Origin(b.index)});
}

DuplicateSurvey CompareSets(const Source& in, const SetReader& reader, const Source& of,
                            const FirstOf& first) {
  DuplicateSurvey survey;
  for (const SampleHash& sample : reader.hashes()) {
    const auto found = sample.good ? first.find(sample.hash) : first.end();
    if (found != first.end()) AddPair(in, sample, of, *found->second, survey);
  }
  return survey;
}

// The samples that an earlier one of the same set equals.
DuplicateSurvey CompareWithin(const Source& source, const SetReader& reader, FirstOf& first) {
  DuplicateSurvey survey;
  for (const SampleHash& sample : reader.hashes()) {
    if (!sample.good) continue;
    const auto [found, is_new] = first.emplace(sample.hash, &sample);
    if (!is_new) AddPair(source, sample, source, *found->second, survey);
  }
  return survey;
}

}  // namespace

bool DataSurvey::whole() const {
  return std::all_of(sets.begin(), sets.end(),
                     [](const SetSurvey& set) { return set.read == set.samples; });
}

Result<DataSurvey> SurveyData(const DataSplits& splits, const SurveyOptions& options) {
  struct Set {
    const char* name;
    SourcePtr source;
    std::unique_ptr<SetReader> reader;
    FirstOf first;
  };
  std::vector<Set> sets;
  for (const auto& [name, source] : {std::pair<const char*, SourcePtr>{"training", splits.train},
                                     {"validation", splits.validation},
                                     {"test", splits.test}}) {
    if (source != nullptr) sets.push_back({name, source, nullptr, {}});
  }
  const Preprocessing* known = splits.preprocessing.get();
  DataSurvey survey;
  for (size_t s = 0; s < sets.size(); ++s) {
    Set& set = sets[s];
    set.reader = std::make_unique<SetReader>(*set.source, known, options);
    RIDGE_RETURN_IF_ERROR(set.reader->Read());
    SetSurvey& of_set = survey.sets.emplace_back();
    of_set.name = set.name;
    of_set.samples = set.source->size();
    of_set.read = static_cast<int64_t>(set.reader->hashes().size());
    const Part& found = set.reader->found();
    for (size_t f = 0; f < found.fields.size(); ++f)
      of_set.fields.push_back(Describe(set.source->fields()[f], found.fields[f]));
    RIDGE_ASSIGN_OR_RETURN(of_set.classes, CountClasses(*set.source, set.reader->label(), known));
    if (const int mask = set.reader->mask(); mask >= 0)
      DescribeMasks(set.source->fields()[static_cast<size_t>(mask)], found.masks, known, of_set);
    if (set.reader->features() >= 0)
      of_set.columns = DescribeColumns(*known->table, found.features);
    of_set.pictures = SurveyPictures(*set.source, set.reader->hashes());
    of_set.sounds = SurveySounds(*set.source, set.reader->hashes());
    of_set.texts = SurveyTexts(*set.source);
    of_set.clouds = SurveyClouds(*set.source, set.reader->hashes());
    RIDGE_ASSIGN_OR_RETURN(of_set.transcripts, SurveyTranscripts(*set.source, known));
    for (const auto& [index, reason] : found.bad)
      of_set.bad.push_back({set.source->Origin(index), reason});
    const auto keep = [&](DuplicateSurvey found_pairs, const char* of) {
      found_pairs.in = set.name;
      found_pairs.of = of;
      if (found_pairs.samples > 0) survey.duplicates.push_back(std::move(found_pairs));
    };
    keep(CompareWithin(*set.source, *set.reader, set.first), set.name);
    for (size_t other = 0; other < s; ++other)
      keep(CompareSets(*set.source, *set.reader, *sets[other].source, sets[other].first),
           sets[other].name);
  }
  return survey;
}

}  // namespace ridge
