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
#include "ridge/data/text_setup.h"
#include "ridge/data/transcript_files.h"
#include "ridge/data/transcript_tokens.h"

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
  std::string tokenizer;          // "": characters
  std::optional<int64_t> length;  // tokens of a sample
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
  if (key == "tokenizer") {
    if (value.empty()) return Refuse(spec, key, value, "a file, a folder or bytes");
    argument.tokenizer = value;
  }
  if (key != "letters" && key != "length")
    return TakeSoundOption(spec, key, value, argument.sounds);
  int64_t count = 0;
  const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  if (error != std::errc() || rest != value.data() + value.size() || count < 1 ||
      count > kMostTranscriptLetters)
    return Refuse(spec, key, value, fmt::format("from 1 to {}", kMostTranscriptLetters));
  (key == "letters" ? argument.letters : argument.length) = count;
  return Status();
}

Result<Argument> ParseArgument(const std::string& name, const std::string& text) {
  const SpecOptions spec = SplitSpecOptions(text);
  std::vector<std::string> keys = {"val",  "test",    "sounds",    "sound", "text",
                                   "case", "letters", "tokenizer", "length"};
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
  Transcript transcript;         // its text plain
  int64_t places = 0;            // of its letters, or of what a decoder reads
  std::vector<uint32_t> tokens;  // of a tokenizer: framed
  SoundPart part;                // of the sound's file, all of it where `offset` says nothing
  int64_t rate = 0;
  double seconds() const { return static_cast<double>(part.count) / static_cast<double>(rate); }
};
using Utterances = std::vector<Utterance>;

// The part that `offset` and `duration` say.
Status TakePart(const SoundHeader& header, Utterance& utterance) {
  const Transcript& transcript = utterance.transcript;
  const auto rate = static_cast<double>(header.rate);
  const double all = static_cast<double>(header.frames) / rate;
  const auto bad = [&](const std::string& says) {
    return Bad(fmt::format("{}: says {} s, and {} has {:.4g} s", transcript.origin, says,
                           transcript.sound, all));
  };
  utterance.rate = header.rate;
  utterance.part = {0, header.frames};
  if (!transcript.offset) {
    if (transcript.seconds == 0 || std::abs(transcript.seconds - all) <= kMostOffBy)
      return Status();
    return bad(fmt::format("{:.4g}", transcript.seconds));
  }
  const double begin = *transcript.offset, end = begin + transcript.seconds;
  if (begin >= all) return bad(fmt::format("it begins at {:.4g}", begin));
  if (end > all + kMostOffBy) return bad(fmt::format("{:.4g} to {:.4g}", begin, end));
  const int64_t first = std::min<int64_t>(std::llround(begin * rate), header.frames - 1);
  const int64_t most = header.frames - first;
  const int64_t count = transcript.seconds == 0 ? most : std::llround(transcript.seconds * rate);
  utterance.part = {first, std::clamp<int64_t>(count, 1, most)};
  return Status();
}

// The message of a failure begins with the origin.
Status Inspect(bool lower, Utterance& utterance) {
  Transcript& transcript = utterance.transcript;
  transcript.text = PlainTranscript(transcript.text, lower);
  utterance.places = CountLetters(transcript.text);
  if (utterance.places == 0) return Bad(transcript.origin + ": has no text");
  const auto header = ReadSoundFileHeader(transcript.sound);
  if (!header.ok())
    return Status(header.status().code(), transcript.origin + ": " + header.status().message());
  return TakePart(*header, utterance);
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
  int64_t places = 0;                     // for letters, or for a decoder's tokens
  bool writes = false;                    // its model is a decoder
  TranscriptTokensPtr tokens;             // of a decoder
  std::optional<TextPreprocessing> text;  // of a tokenizer
  std::optional<int64_t> length;          // as the user says it
  std::vector<std::string> notes;
};

double LongestOf(const Utterances& set) {
  double longest = 0;
  for (const Utterance& utterance : set) longest = std::max(longest, utterance.seconds());
  return longest;
}

int64_t LongestText(const Opening& opening) {
  int64_t most = 1;
  for (const Utterances* set : {&opening.train, &opening.validation, &opening.test}) {
    for (const Utterance& utterance : *set) most = std::max(most, utterance.places);
  }
  return std::min(most, kMostTranscriptLetters);
}

int64_t PlacesFor(const Argument& argument, const DataOptions& options, const Opening& opening) {
  if (argument.letters) return *argument.letters;
  for (const Field& input : options.model_inputs) {
    if (input.name == "text" && input.type.rank() == 1) return input.type.dims[0];
  }
  return LongestText(opening);
}

// A sample more: a length may be rounded.
double MostSeconds(const SoundTarget& target) {
  return target.seconds() + 1.0 / static_cast<double>(target.rate);
}

Status LeaveOut(const std::string& name, const char* set_name, Opening& opening, Utterances& set) {
  if (set.empty()) return Status();
  const double most_s = MostSeconds(opening.target);
  const int64_t most = opening.places;
  const char* const unit = opening.writes ? "token" : "letter";
  const auto too_long =
      std::erase_if(set, [&](const Utterance& utterance) { return utterance.seconds() > most_s; });
  const auto too_wordy =
      std::erase_if(set, [&](const Utterance& utterance) { return utterance.places > most; });
  const auto tell = [&](size_t count, const std::string& what, const std::string& hint) {
    if (count == 0) return;
    opening.notes.push_back(
        fmt::format("{}: {} of the {} set {} longer than {}: left out. hint: {}", name,
                    FormatCountOf(static_cast<int64_t>(count), "sample"), set_name,
                    count == 1 ? "is" : "are", what, hint));
  };
  tell(too_long, fmt::format("{:.4g} s", opening.target.seconds()), "seconds=N behind the data");
  tell(too_wordy, FormatCountOf(most, unit),
       opening.writes ? "length=N behind the data" : "letters=N behind the data");
  if (!set.empty()) return Status();
  return Bad(fmt::format("{}: all samples of the {} set are longer than {:.4g} s or {}", name,
                         set_name, opening.target.seconds(), FormatCountOf(most, unit)));
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

// ---- of a decoder

struct DecoderInputs {
  const Field* tokens = nullptr;
  const Field* label = nullptr;
};

// Nothing unless the model reads tokens and has a label for each.
std::optional<DecoderInputs> FindDecoder(const std::vector<Field>& inputs) {
  const DecoderInputs found = {FindFieldByName("tokens", inputs), FindFieldByName("label", inputs)};
  if (found.tokens == nullptr || found.label == nullptr || found.tokens->type.rank() != 1 ||
      !IsInteger(found.tokens->type.dtype) || found.label->type.dims != found.tokens->type.dims)
    return std::nullopt;
  return found;
}

template <typename Visit>
void ForEach(Opening& opening, const Visit& visit) {
  for (Utterances* set : {&opening.train, &opening.validation, &opening.test}) {
    for (Utterance& utterance : *set) visit(utterance);
  }
}

// Tokens of the user's tokenizer, or of the run's.
Status Tokenize(const std::string& name, const Argument& argument, const DataOptions& options,
                Opening& opening) {
  TextOptions text;
  text.tokenizer = argument.tokenizer;
  RIDGE_ASSIGN_OR_RETURN(ChosenTokenizer chosen, ChooseTokenizer(name, text, options));
  auto tokens = TranscriptTokens::Of(chosen.tokenizer);
  if (!tokens.ok())
    return InvalidArgument(fmt::format("data '{}': {}", name, tokens.status().message()));
  opening.tokens = std::make_shared<TranscriptTokens>(std::move(*tokens));
  opening.text = std::move(chosen.text);
  ForEach(opening, [&](Utterance& utterance) {
    utterance.tokens = opening.tokens->Framed(utterance.transcript.text);
    utterance.places = std::ssize(utterance.tokens) - 1;
  });
  return Status();
}

Status CheckDecoderOptions(const std::string& name, const Argument& argument,
                           const DataOptions& options,
                           const std::optional<DecoderInputs>& decoder) {
  const auto refuse = [&](const std::string& what) {
    return InvalidArgument(fmt::format("data '{}': {}", name, what));
  };
  if (!decoder && (!argument.tokenizer.empty() || argument.length) &&
      !options.model_inputs.empty()) {
    return refuse(
        "tokenizer= and length= are for models that write; this one has no inputs tokens and label "
        "of one length. hint: leave them out, its classes are characters then");
  }
  if (!decoder) return Status();
  if (argument.letters) return refuse("letters= is for ctc_loss. hint: length=N, in tokens");
  const int64_t length = decoder->tokens->type.dims[0];
  if (argument.length.value_or(length) == length) return Status();
  return refuse(fmt::format("length is {}; the model takes {} tokens", *argument.length, length));
}

// What a model that writes learns from; nothing for one that is trained by ctc_loss.
Status PlanDecoder(const std::string& name, const Argument& argument, const DataOptions& options,
                   Opening& opening) {
  const std::optional<DecoderInputs> decoder = FindDecoder(options.model_inputs);
  RIDGE_RETURN_IF_ERROR(CheckDecoderOptions(name, argument, options, decoder));
  const bool kept = options.preprocessing != nullptr && options.preprocessing->text;
  const bool tokenizes = kept || !argument.tokenizer.empty();
  opening.writes = decoder || tokenizes || argument.length;
  if (!opening.writes) return Status();
  if (tokenizes) {
    RIDGE_RETURN_IF_ERROR(Tokenize(name, argument, options, opening));
  } else {
    ForEach(opening, [](Utterance& utterance) { ++utterance.places; });  // the frame's
  }
  opening.places =
      decoder ? decoder->tokens->type.dims[0] : argument.length.value_or(LongestText(opening));
  if (!decoder) return Status();
  opening.notes.push_back(
      name + ": word error rates take each token behind the true ones before it (teacher forcing)");
  return Status();
}

// After the characters are known.
Status FinishDecoder(const std::string& name, const DataOptions& options, Opening& opening) {
  if (!opening.writes) return Status();
  if (opening.text) opening.spelling.letters.clear();
  if (!opening.text) opening.tokens = std::make_shared<TranscriptTokens>(opening.spelling);
  const std::optional<DecoderInputs> decoder = FindDecoder(options.model_inputs);
  const int64_t known = decoder ? decoder->tokens->classes : 0;
  if (known == 0 || opening.tokens->vocab() <= known) return Status();
  return InvalidArgument(fmt::format("data '{}': the texts are of {} tokens; the model knows {}",
                                     name, opening.tokens->vocab(), known));
}

Result<Opening> Begin(const std::string& name, const std::string& text,
                      const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  Opening opening;
  const bool kept_lower = KeepsSpelling(options) && options.preprocessing->spelling->lower;
  const bool lower = argument.lower.value_or(kept_lower);
  opening.spelling.lower = lower;
  opening.length = argument.length;
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
  RIDGE_RETURN_IF_ERROR(PlanDecoder(name, argument, options, opening));
  RIDGE_RETURN_IF_ERROR(LeaveOut(name, "training", opening, opening.train));
  RIDGE_RETURN_IF_ERROR(LeaveOut(name, "validation", opening, opening.validation));
  RIDGE_RETURN_IF_ERROR(LeaveOut(name, "test", opening, opening.test));
  RIDGE_RETURN_IF_ERROR(ChooseLetters(name, options, opening));
  RIDGE_RETURN_IF_ERROR(FinishDecoder(name, options, opening));
  return opening;
}

std::vector<Field> TextFields(const Opening& opening) {
  const TensorType places = {DType::kI64, {opening.places}};
  if (opening.tokens) {
    const int64_t vocab = opening.tokens->vocab();
    return {
        {"frame_count", {DType::kI64, {}}}, {"tokens", places, vocab}, {"label", places, vocab}};
  }
  const int64_t classes = Spelling(opening.spelling).classes();
  return {{"frame_count", {DType::kI64, {}}},
          {"text", places, classes},
          {"text_length", {DType::kI64, {}}}};
}

std::vector<ModelSize> SizesOf(const Opening& opening) {
  std::vector<ModelSize> sizes = SoundSizes(opening.target);
  if (opening.target.mel) {
    const Dims dims = opening.target.type().dims;
    sizes.push_back({"mels", dims[0]});
    sizes.push_back({"frames", dims[1]});
  }
  const int64_t classes =
      opening.tokens ? opening.tokens->vocab() : Spelling(opening.spelling).classes();
  sizes.push_back({"vocab", classes});
  if (opening.length) sizes.push_back({"context", *opening.length});
  if (opening.text) return sizes;
  sizes.push_back({"classes", classes});
  sizes.push_back({"letters", opening.places});
  return sizes;
}

// ---- the source

// The spelled texts of all samples one after the other.
struct TextTable {
  std::vector<uint32_t> classes;      // or framed tokens
  std::vector<int64_t> ends;          // in `classes`, by sample
  std::vector<int32_t> frame_counts;  // likewise
  int64_t pad = 0;

  std::span<const uint32_t> Of(int64_t index) const {
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
    return static_cast<int64_t>(classes.capacity() * sizeof(uint32_t) +
                                ends.capacity() * sizeof(int64_t) +
                                frame_counts.capacity() * sizeof(int32_t));
  }
};

// `out`: i64[places], `behind` where no class is left.
void PutClasses(std::span<const uint32_t> classes, int64_t behind, int64_t places, void* out) {
  for (int64_t i = 0; i < places; ++i) {
    const int64_t value = i < std::ssize(classes) ? classes[static_cast<size_t>(i)] : behind;
    std::memcpy(static_cast<char*>(out) + i * static_cast<int64_t>(sizeof value), &value,
                sizeof value);
  }
}

class TranscriptSource : public Source {
 public:
  TranscriptSource(const std::string& name, std::vector<Field> fields, SourcePtr sounds,
                   TextTable table, bool writes)
      : Source(name, std::move(fields), sounds->size()),
        sounds_(std::move(sounds)),
        table_(std::move(table)),
        writes_(writes) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == 0) return sounds_->Read(at, 0, scratch, out);
    const std::span<const uint32_t> text = table_.Of(at.index);
    const auto places = fields()[static_cast<size_t>(field)].type.elements();
    const auto put = [&](int64_t value) { std::memcpy(out, &value, sizeof value); };
    if (field == 1) {
      put(table_.frame_counts[static_cast<size_t>(at.index)]);
    } else if (writes_) {
      const bool label = field == 3;
      PutClasses(text.subspan(label ? 1 : 0, text.size() - 1), label ? kIgnoredLabel : table_.pad,
                 places, out);
    } else if (field == 2) {
      PutClasses(text, 0, places, out);
    } else {
      put(std::ssize(text));
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
  const bool writes_;  // fields tokens and label; else text and text_length
};

// Of a file of `frames` at `rate`.
int64_t FrameCount(int64_t frames, int64_t rate, const SoundTarget& target) {
  const Resampler resampler(rate, target.rate, /*most_bytes=*/0);
  const int64_t samples = std::min(target.samples, resampler.OutputCount(frames));
  if (!target.mel) return samples;
  return std::clamp<int64_t>(target.mel->frames(samples), 1, target.type().dims[1]);
}

// Of the samples whose sound can be read.
TextTable MakeTable(const Opening& opening, const Utterances& set, const std::set<size_t>& bad) {
  const Spelling spelling(opening.spelling);
  TextTable table;
  if (opening.writes) table.pad = opening.tokens->pad();
  for (size_t i = 0; i < set.size(); ++i) {
    if (bad.count(i) != 0) continue;
    const Utterance& utterance = set[i];
    std::vector<uint16_t> classes;
    std::vector<uint32_t> tokens = utterance.tokens;
    if (!opening.writes) {
      spelling.Spell(utterance.transcript.text, classes);
      tokens.assign(classes.begin(), classes.end());
    } else if (tokens.empty()) {
      tokens = opening.tokens->Framed(utterance.transcript.text);
    }
    table.classes.insert(table.classes.end(), tokens.begin(), tokens.end());
    table.ends.push_back(std::ssize(table.classes));
    table.frame_counts.push_back(
        static_cast<int32_t>(FrameCount(utterance.part.count, utterance.rate, opening.target)));
  }
  table.ShrinkToFit();
  return table;
}

Result<SourcePtr> OpenSet(const std::string& name, const Opening& opening, const Utterances& set,
                          const DataOptions& options) {
  if (set.empty()) return SourcePtr();
  std::vector<SoundPiece> pieces;
  for (const Utterance& utterance : set)
    pieces.push_back(
        {utterance.transcript.sound, utterance.transcript.offset ? utterance.part : SoundPart()});
  DataOptions sound_options;
  auto planned = std::make_shared<Preprocessing>();
  planned->sounds = opening.target;
  sound_options.preprocessing = std::move(planned);
  std::set<size_t> bad;
  Status stop;
  const BadPiece on_bad = [&](size_t piece, const Status& why) {
    bad.insert(piece);
    const bool skips = options.bad_records != nullptr && options.bad_records->skips();
    const Status status = skips && IsBadRecord(why)
                              ? options.bad_records->Add(pieces[piece].path, why.message())
                              : why;
    if (stop.ok()) stop = status;
  };
  RIDGE_ASSIGN_OR_RETURN(const SourcePtr sounds,
                         OpenSoundPieces(name, pieces, sound_options, on_bad));
  RIDGE_RETURN_IF_ERROR(stop);
  if (sounds == nullptr) return Bad(name + ": none of its sounds can be read");
  std::vector<Field> fields = TextFields(opening);
  fields.insert(fields.begin(), sounds->fields()[0]);
  return SourcePtr(std::make_shared<TranscriptSource>(
      name, std::move(fields), sounds, MakeTable(opening, set, bad), opening.writes));
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
  preprocessing->text = std::move(opening.text);
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
