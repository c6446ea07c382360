// The sounds are those of OpenSounds; here is what stands beside them.
#include "ridge/data/transcripts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

#include "ridge/core/units.h"
#include "ridge/data/batch_spec.h"
#include "ridge/data/class_folders.h"
#include "ridge/data/content_split.h"
#include "ridge/data/sound/resample.h"
#include "ridge/data/sound_folder.h"
#include "ridge/data/sound_options.h"
#include "ridge/data/spec_options.h"
#include "ridge/data/spelling.h"
#include "ridge/data/transcript_files.h"

namespace ridge {
namespace {

constexpr double kMostOffBy = 0.1;  // seconds of a manifest beside the file's

Status Bad(const std::string& what) { return Status(ErrorCode::kInvalidData, what); }

struct Argument {
  std::string train, validation, test;  // files or folders; "" where there is none
  std::string folder;                   // of the sounds; "": beside the file
  TranscriptNames names;
  std::optional<bool> lower;
  std::optional<int64_t> letters;
  SoundOptions sounds;
};

Status Refuse(const std::string& spec, const std::string& key, const std::string& value,
              const std::string& what) {
  return InvalidArgument(
      fmt::format("data '{}': {} is '{}'; it must be {}", spec, key, value, what));
}

Status TakeOption(const std::string& spec, const std::string& key, const std::string& value,
                  Argument& argument) {
  if (key == "val") argument.validation = WithoutSlash(value);
  if (key == "test") argument.test = WithoutSlash(value);
  if (key == "sounds") argument.folder = WithoutSlash(value);
  if (key == "sound") argument.names.sound = value;
  if (key == "text") argument.names.text = value;
  if (key == "case") {
    if (value != "keep" && value != "lower") return Refuse(spec, key, value, "keep or lower");
    argument.lower = value == "lower";
  }
  if (key != "letters") return TakeSoundOption(spec, key, value, argument.sounds);
  int64_t count = 0;
  const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || rest != value.data() + value.size() || count < 1 ||
      count > kMostTranscriptLetters)
    return Refuse(spec, key, value, fmt::format("from 1 to {}", kMostTranscriptLetters));
  argument.letters = count;
  return Status();
}

Result<Argument> ParseArgument(const std::string& name, const std::string& text) {
  const SpecOptions spec = SplitSpecOptions(text);
  std::vector<std::string> keys = {"val", "test", "sounds", "sound", "text", "case", "letters"};
  keys.insert(keys.end(), SoundKeys().begin(), SoundKeys().end());
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(name, spec, keys));
  Argument argument;
  for (const auto& [key, value] : spec.options)
    RIDGE_RETURN_IF_ERROR(TakeOption(name, key, value, argument));
  argument.train = WithoutSlash(spec.path);
  return argument;
}

// ---- what the files say

struct Utterance {
  Transcript transcript;  // its text plain
  int64_t letters = 0;
  int64_t frames = 0, rate = 0;  // of the sound's file
  double seconds() const { return static_cast<double>(frames) / static_cast<double>(rate); }
};
using Utterances = std::vector<Utterance>;

// The message of a failure begins with the origin.
Status Inspect(bool lower, Utterance& utterance) {
  Transcript& transcript = utterance.transcript;
  transcript.text = PlainTranscript(transcript.text, lower);
  utterance.letters = CountLetters(transcript.text);
  if (utterance.letters == 0) return Bad(transcript.origin + ": has no text");
  const auto header = ReadSoundFileHeader(transcript.sound);
  if (!header.ok())
    return Status(header.status().code(), transcript.origin + ": " + header.status().message());
  utterance.frames = header->frames;
  utterance.rate = header->rate;
  if (transcript.seconds == 0 || std::abs(transcript.seconds - utterance.seconds()) <= kMostOffBy)
    return Status();
  return Bad(fmt::format("{}: says {:.4g} s, and {} has {:.4g} s", transcript.origin,
                         transcript.seconds, transcript.sound, utterance.seconds()));
}

Result<Utterances> ReadSet(const std::string& path, const Argument& argument, bool lower,
                           const BadRecordsPtr& bad_records) {
  Utterances set;
  if (path.empty()) return set;
  RIDGE_ASSIGN_OR_RETURN(auto transcripts,
                         ReadTranscripts(path, argument.folder, argument.names, bad_records));
  for (Transcript& transcript : transcripts) {
    Utterance utterance;
    utterance.transcript = std::move(transcript);
    const Status status = Inspect(lower, utterance);
    if (status.ok()) set.push_back(std::move(utterance));
    if (status.ok()) continue;
    if (bad_records == nullptr || !bad_records->skips() || !IsBadRecord(status)) return status;
    RIDGE_RETURN_IF_ERROR(bad_records->Add(utterance.transcript.origin, status.message()));
  }
  if (set.empty()) return Bad(path + ": none of its sounds can be read");
  return set;
}

uint64_t HashOf(const Utterance& utterance) {
  ContentHash hash;
  hash.Add(utterance.transcript.name);
  hash.Add(utterance.transcript.text);
  return hash.value();
}

// Moves a part of the training set to the validation set.
Status HoldOut(const std::string& path, double fraction, Utterances& train,
               Utterances& validation) {
  ContentSplit split(fraction);
  for (bool settled = false; !settled;) {
    split = split.Uncounted();
    for (const Utterance& utterance : train) split.Count(HashOf(utterance));
    RIDGE_ASSIGN_OR_RETURN(settled, split.Settle(path));
  }
  Utterances kept;
  for (Utterance& utterance : train)
    (split.HoldsOut(HashOf(utterance)) ? validation : kept).push_back(std::move(utterance));
  train = std::move(kept);
  return Status();
}

// All that both openings know.
struct Opening {
  Utterances train, validation, test;
  bool held_out = false;
  SoundTarget target;
  SpellingPreprocessing spelling;
  int64_t places = 0;  // for letters
  std::vector<std::string> notes;
};

double LongestOf(const Utterances& set) {
  double longest = 0;
  for (const Utterance& utterance : set) longest = std::max(longest, utterance.seconds());
  return longest;
}

int64_t PlacesFor(const Argument& argument, const DataOptions& options, const Opening& opening) {
  if (argument.letters) return *argument.letters;
  for (const Field& input : options.model_inputs) {
    if (input.name == "text" && input.type.rank() == 1) return input.type.dims[0];
  }
  int64_t most = 1;
  for (const Utterances* set : {&opening.train, &opening.validation, &opening.test}) {
    for (const Utterance& utterance : *set) most = std::max(most, utterance.letters);
  }
  return std::min(most, kMostTranscriptLetters);
}

// A sample more: a length may be rounded.
double MostSeconds(const SoundTarget& target) {
  return target.seconds() + 1.0 / static_cast<double>(target.rate);
}

Status LeaveOut(const std::string& name, const char* set_name, Opening& opening, Utterances& set) {
  if (set.empty()) return Status();
  const double most_s = MostSeconds(opening.target);
  const int64_t most_letters = opening.places;
  const auto too_long =
      std::erase_if(set, [&](const Utterance& utterance) { return utterance.seconds() > most_s; });
  const auto too_wordy = std::erase_if(
      set, [&](const Utterance& utterance) { return utterance.letters > most_letters; });
  const auto tell = [&](size_t count, const std::string& what, const std::string& hint) {
    if (count == 0) return;
    opening.notes.push_back(
        fmt::format("{}: {} of the {} set {} longer than {}: left out. hint: {}", name,
                    FormatCountOf(static_cast<int64_t>(count), "sample"), set_name,
                    count == 1 ? "is" : "are", what, hint));
  };
  tell(too_long, fmt::format("{:.4g} s", opening.target.seconds()), "seconds=N behind the data");
  tell(too_wordy, FormatCountOf(most_letters, "letter"), "letters=N behind the data");
  if (!set.empty()) return Status();
  return Bad(fmt::format("{}: all samples of the {} set are longer than {:.4g} s or {}", name,
                         set_name, opening.target.seconds(),
                         FormatCountOf(most_letters, "letter")));
}

bool KeepsSpelling(const DataOptions& options) {
  return options.preprocessing != nullptr && options.preprocessing->spelling;
}

Status ChooseLetters(const std::string& name, const DataOptions& options, Opening& opening) {
  if (KeepsSpelling(options)) {
    opening.spelling.letters = options.preprocessing->spelling->letters;
    return Status();
  }
  std::vector<std::string_view> texts;
  for (const Utterance& utterance : opening.train) texts.push_back(utterance.transcript.text);
  auto letters = LettersOf(texts);
  if (!letters.ok()) return Bad(name + ": " + letters.status().message());
  opening.spelling.letters = std::move(*letters);
  return Status();
}

Result<Opening> Begin(const std::string& name, const std::string& text,
                      const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  Opening opening;
  const bool kept_lower = KeepsSpelling(options) && options.preprocessing->spelling->lower;
  const bool lower = argument.lower.value_or(kept_lower);
  opening.spelling.lower = lower;
  const auto read = [&](const std::string& path) {
    return ReadSet(path, argument, lower, options.bad_records);
  };
  RIDGE_ASSIGN_OR_RETURN(opening.train, read(argument.train));
  RIDGE_ASSIGN_OR_RETURN(opening.validation, read(argument.validation));
  RIDGE_ASSIGN_OR_RETURN(opening.test, read(argument.test));
  const auto longest = [&] { return LongestOf(opening.train); };
  RIDGE_ASSIGN_OR_RETURN(opening.target, PlanSounds(name, argument.sounds, options, longest));
  if (options.hold_out > 0 && argument.validation.empty()) {
    RIDGE_RETURN_IF_ERROR(
        HoldOut(argument.train, options.hold_out, opening.train, opening.validation));
    opening.held_out = true;
  }
  opening.places = PlacesFor(argument, options, opening);
  RIDGE_RETURN_IF_ERROR(LeaveOut(name, "training", opening, opening.train));
  RIDGE_RETURN_IF_ERROR(LeaveOut(name, "validation", opening, opening.validation));
  RIDGE_RETURN_IF_ERROR(LeaveOut(name, "test", opening, opening.test));
  RIDGE_RETURN_IF_ERROR(ChooseLetters(name, options, opening));
  return opening;
}

std::vector<Field> TextFields(const Opening& opening) {
  const int64_t classes = Spelling(opening.spelling).classes();
  return {{"frame_count", {DType::kI64, {}}},
          {"text", {DType::kI64, {opening.places}}, classes},
          {"text_length", {DType::kI64, {}}}};
}

std::vector<ModelSize> SizesOf(const Opening& opening) {
  std::vector<ModelSize> sizes = SoundSizes(opening.target);
  if (opening.target.mel) {
    const Dims dims = opening.target.type().dims;
    sizes.push_back({"mels", dims[0]});
    sizes.push_back({"frames", dims[1]});
  }
  sizes.push_back({"classes", Spelling(opening.spelling).classes()});
  sizes.push_back({"letters", opening.places});
  return sizes;
}

// ---- the source

// The spelled texts of all samples one after the other.
struct TextTable {
  std::vector<uint16_t> classes;
  std::vector<int64_t> ends;          // in `classes`, by sample
  std::vector<int32_t> frame_counts;  // likewise

  std::span<const uint16_t> Of(int64_t index) const {
    const auto at = static_cast<size_t>(index);
    const auto begin = at == 0 ? 0 : static_cast<size_t>(ends[at - 1]);
    return std::span(classes).subspan(begin, static_cast<size_t>(ends[at]) - begin);
  }
  void ShrinkToFit() {
    classes.shrink_to_fit();
    ends.shrink_to_fit();
    frame_counts.shrink_to_fit();
  }
  int64_t bytes() const {
    return static_cast<int64_t>(classes.capacity() * sizeof(uint16_t) +
                                ends.capacity() * sizeof(int64_t) +
                                frame_counts.capacity() * sizeof(int32_t));
  }
};

class TranscriptSource : public Source {
 public:
  TranscriptSource(const std::string& name, std::vector<Field> fields, SourcePtr sounds,
                   TextTable table)
      : Source(name, std::move(fields), sounds->size()),
        sounds_(std::move(sounds)),
        table_(std::move(table)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == 0) return sounds_->Read(at, 0, scratch, out);
    const std::span<const uint16_t> letters = table_.Of(at.index);
    const auto places = fields()[static_cast<size_t>(field)].type.elements();
    const auto put = [&](int64_t place, int64_t value) {
      std::memcpy(static_cast<char*>(out) + place * static_cast<int64_t>(sizeof value), &value,
                  sizeof value);
    };
    if (field == 1) put(0, table_.frame_counts[static_cast<size_t>(at.index)]);
    if (field == 3) put(0, static_cast<int64_t>(letters.size()));
    for (int64_t i = 0; field == 2 && i < places; ++i) {
      const auto place = static_cast<size_t>(i);
      put(i, place < letters.size() ? letters[place] : 0);
    }
    return Status();
  }
  int64_t scratch_bytes() const override { return sounds_->scratch_bytes(); }
  int64_t heap_bytes() const override { return sounds_->heap_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return sounds_->reads_crops(); }
  std::string Origin(int64_t index) const override { return sounds_->Origin(index); }
  int64_t resident_bytes() const override { return sounds_->resident_bytes() + table_.bytes(); }

 private:
  const SourcePtr sounds_;
  const TextTable table_;
};

// Of a file of `frames` at `rate`.
int64_t FrameCount(int64_t frames, int64_t rate, const SoundTarget& target) {
  const Resampler resampler(rate, target.rate, /*most_bytes=*/0);
  const int64_t samples = std::min(target.samples, resampler.OutputCount(frames));
  if (!target.mel) return samples;
  return std::clamp<int64_t>(target.mel->frames(samples), 1, target.type().dims[1]);
}

Result<SourcePtr> OpenSet(const std::string& name, const Opening& opening, const Utterances& set,
                          const DataOptions& options) {
  if (set.empty()) return SourcePtr();
  std::vector<std::string> paths;
  for (const Utterance& utterance : set) paths.push_back(utterance.transcript.sound);
  DataOptions sound_options;
  auto planned = std::make_shared<Preprocessing>();
  planned->sounds = opening.target;
  sound_options.preprocessing = std::move(planned);
  std::set<std::string> bad;
  Status stop;
  const BadSound on_bad = [&](const std::string& path, const Status& why) {
    bad.insert(path);
    const bool skips = options.bad_records != nullptr && options.bad_records->skips();
    const Status status =
        skips && IsBadRecord(why) ? options.bad_records->Add(path, why.message()) : why;
    if (stop.ok()) stop = status;
  };
  RIDGE_ASSIGN_OR_RETURN(const SourcePtr sounds, OpenSounds(name, paths, sound_options, on_bad));
  RIDGE_RETURN_IF_ERROR(stop);
  if (sounds == nullptr) return Bad(name + ": none of its sounds can be read");
  const Spelling spelling(opening.spelling);
  TextTable table;
  for (const Utterance& utterance : set) {
    if (bad.count(utterance.transcript.sound) != 0) continue;
    spelling.Spell(utterance.transcript.text, table.classes);
    table.ends.push_back(static_cast<int64_t>(table.classes.size()));
    table.frame_counts.push_back(
        static_cast<int32_t>(FrameCount(utterance.frames, utterance.rate, opening.target)));
  }
  table.ShrinkToFit();
  std::vector<Field> fields = TextFields(opening);
  fields.insert(fields.begin(), sounds->fields()[0]);
  return SourcePtr(
      std::make_shared<TranscriptSource>(name, std::move(fields), sounds, std::move(table)));
}

class CountedSounds : public Source {
 public:
  CountedSounds(SourcePtr sounds, std::vector<int32_t> counts)
      : Source(sounds->name(), {sounds->fields()[0], {"frame_count", {DType::kI64, {}}}},
               sounds->size()),
        sounds_(std::move(sounds)),
        counts_(std::move(counts)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == 0) return sounds_->Read(at, 0, scratch, out);
    const int64_t count = counts_[static_cast<size_t>(at.index)];
    std::memcpy(out, &count, sizeof count);
    return Status();
  }
  int64_t scratch_bytes() const override { return sounds_->scratch_bytes(); }
  int64_t heap_bytes() const override { return sounds_->heap_bytes(); }
  bool reads_slowly() const override { return true; }
  std::string Origin(int64_t index) const override { return sounds_->Origin(index); }
  int64_t resident_bytes() const override {
    return sounds_->resident_bytes() + static_cast<int64_t>(counts_.capacity() * sizeof(int32_t));
  }

 private:
  const SourcePtr sounds_;
  const std::vector<int32_t> counts_;
};

}  // namespace

Status CheckHeard(const std::string& path, const DataOptions& options) {
  const SoundTarget& target = *options.preprocessing->sounds;
  const auto header = ReadSoundFileHeader(path);
  if (!header.ok()) return Status();
  const double seconds = static_cast<double>(header->frames) / static_cast<double>(header->rate);
  if (seconds <= MostSeconds(target)) return Status();
  return Bad(fmt::format("{}: has {:.4g} s; the model hears {:.4g} s. hint: cut it into parts",
                         path, seconds, target.seconds()));
}

Result<SourcePtr> CountFrames(const SourcePtr& sounds, const DataOptions& options) {
  const SoundTarget& target = *options.preprocessing->sounds;
  std::vector<int32_t> counts;
  for (int64_t i = 0; i < sounds->size(); ++i) {
    RIDGE_ASSIGN_OR_RETURN(const SoundHeader header, ReadSoundFileHeader(sounds->Origin(i)));
    counts.push_back(static_cast<int32_t>(FrameCount(header.frames, header.rate, target)));
  }
  return SourcePtr(std::make_shared<CountedSounds>(sounds, std::move(counts)));
}

Result<DataSplits> OpenTranscripts(const std::string& name, const std::string& argument,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(Opening opening, Begin(name, argument, options));
  DataSplits splits;
  const auto open = [&](const Utterances& set) { return OpenSet(name, opening, set, options); };
  RIDGE_ASSIGN_OR_RETURN(splits.train, open(opening.train));
  RIDGE_ASSIGN_OR_RETURN(splits.validation, open(opening.validation));
  RIDGE_ASSIGN_OR_RETURN(splits.test, open(opening.test));
  splits.held_out = opening.held_out;
  splits.sizes = SizesOf(opening);
  splits.notes = std::move(opening.notes);
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->sounds = opening.target;
  preprocessing->spelling = std::move(opening.spelling);
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> TranscriptFacts(const std::string& name, const std::string& argument,
                                  const DataOptions& options) {
  DataOptions before_model = options;
  before_model.model_inputs.clear();
  RIDGE_ASSIGN_OR_RETURN(const Opening opening, Begin(name, argument, before_model));
  DataFacts facts;
  facts.fields = TextFields(opening);
  facts.sizes = SizesOf(opening);
  return facts;
}

}  // namespace ridge
