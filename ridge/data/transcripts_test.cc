#include "ridge/data/transcripts.h"

#include <cstring>
#include <filesystem>
#include <set>

#include "ridge/core/files.h"
#include "ridge/data/augment_source.h"
#include "ridge/data/spelling.h"
#include "ridge/data/test_files.h"
#include "ridge/data/transcript_files.h"
#include "ridge/data/transcript_tokens.h"

namespace ridge {
namespace {

// Mono PCM of 16 bits at 8000 samples a second.
std::string Wav(int64_t frames) {
  std::string bytes = "RIFF";
  const auto add = [&](uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
  };
  const auto data = static_cast<uint64_t>(2 * frames);
  add(36 + data, 4);
  bytes += "WAVEfmt ";
  add(16, 4);
  add(1, 2);
  add(1, 2);
  add(8000, 4);
  add(16000, 4);
  add(2, 2);
  add(16, 2);
  bytes += "data";
  add(data, 4);
  for (int64_t i = 0; i < frames; ++i) add(static_cast<uint64_t>(i * 997 % 20000), 2);
  return bytes;
}

class TranscriptsTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder_.File(path)).parent_path());
    folder_.Write(path, bytes);
  }
  void PutSounds(int count) {
    for (int i = 0; i < count; ++i) Put(std::to_string(i) + ".wav", Wav(4000 + 400 * i));
  }
  std::string Local(std::string text) const {
    for (size_t at = 0; (at = text.find(folder_.path())) != std::string::npos;)
      text.replace(at, folder_.path().size(), "DIR");
    return text;
  }
  Result<DataSplits> Open(const std::string& argument, const DataOptions& data = {}) {
    return OpenData("transcripts:" + folder_.path() + "/" + argument, data);
  }
  std::string Error(const std::string& argument, const DataOptions& data = {}) {
    return Local(Message(Open(argument, data)));
  }
  // "sound text", one a line.
  std::string Read(const std::string& path, const TranscriptNames& names = {}) {
    const auto read = ReadTranscripts(folder_.File(path), "", names, nullptr);
    if (!read.ok()) return Local(read.status().message());
    std::string text;
    for (const Transcript& one : *read) text += one.sound + " " + one.text + "\n";
    return Local(text);
  }

  TempFolder folder_;
};

int64_t Number(const Source& source, int64_t index, const char* field) {
  int64_t value = -1;
  EXPECT_TRUE(source.ReadOne(index, source.FindField(field), &value).ok());
  return value;
}

std::vector<int64_t> Text(const Source& source, int64_t index) {
  const int field = source.FindField("text");
  std::vector<int64_t> text(
      static_cast<size_t>(source.fields()[static_cast<size_t>(field)].type.elements()));
  EXPECT_TRUE(source.ReadOne(index, field, text.data()).ok());
  return text;
}

std::string Said(const DataSplits& splits, const Source& source, int64_t index) {
  return Spelling(*splits.preprocessing->spelling).Read(Text(source, index));
}

TEST(SpellingTest, TextsComeBackAndUnknownLettersAreReplaced) {
  const Spelling spelling({false, {" ", "a", "\xC3\xA9"}});
  EXPECT_EQ(spelling.classes(), 5);
  std::vector<uint16_t> classes;
  spelling.Spell("a \xC3\xA9z", classes);
  EXPECT_EQ(classes, (std::vector<uint16_t>{2, 1, 3, 4}));
  const std::vector<int64_t> said = {0, 2, 0, 1, 3, 4, 5, -1};
  EXPECT_EQ(spelling.Read(said), "a \xC3\xA9\xEF\xBF\xBD");
}

TEST(SpellingTest, PlainTextsAreComposedWithSingleBlanks) {
  EXPECT_EQ(PlainTranscript("  Yes,\t\n NO ", false), "Yes, NO");
  EXPECT_EQ(PlainTranscript("E\xCC\x81T\xC3\x89", true), "\xC3\xA9t\xC3\xA9");
  EXPECT_EQ(PlainTranscript("a\xFF", true), "a\xEF\xBF\xBD");
  EXPECT_EQ(PlainTranscript("\xC2\xA0\xE3\x80\x80", false), "");
}

TEST_F(TranscriptsTest, AllFormsOfFilesAreRead) {
  Put("a.jsonl",
      "{\"audio_filepath\": \"0.wav\", \"duration\": 0.5, \"text\": \"yes\"}\n\n"
      "{\"audio_filepath\": \"/b/1.wav\", \"duration\": null, \"offset\": 0, \"text\": \"no\"}\n");
  EXPECT_EQ(Read("a.jsonl"), "DIR/0.wav yes\n/b/1.wav no\n");
  Put("b.csv", "path,age,sentence\n0.wav,3,\"yes, \"\"sir\"\"\"\n");
  EXPECT_EQ(Read("b.csv"), "DIR/0.wav yes, \"sir\"\n");
  Put("clips/c.wav", "");
  Put("c.tsv", "client\tpath\tsentence\tsegment\nx\tc.wav\t\"Go\" now\t\ny\td.wav\tstop\ts\n");
  EXPECT_EQ(Read("c.tsv"), "DIR/clips/c.wav \"Go\" now\nDIR/d.wav stop\n");
  Put("libri/9/2/9-2.trans.txt", "9-2-0 HELLO THERE\n9-2-1 YOU\n");
  Put("libri/9/2/9-2-1.wav", "");
  Put("libri/9/1/9-1.trans.txt", "9-1-0 FIRST\n");
  Put("libri/README.txt", "none");
  EXPECT_EQ(Read("libri"),
            "DIR/libri/9/1/9-1-0.flac FIRST\nDIR/libri/9/2/9-2-0.flac HELLO THERE\n"
            "DIR/libri/9/2/9-2-1.wav YOU\n");
  Put("d.jsonl", "{\"wav\": \"0.wav\", \"text\": \"no\", \"said\": \"yes\"}\n");
  EXPECT_EQ(Read("d.jsonl", {"wav", "said"}), "DIR/0.wav yes\n");
}

TEST_F(TranscriptsTest, WrongLinesAreNamed) {
  const auto json = [&](const std::string& line) {
    Put("x.jsonl", "\n" + line + "\n");
    return Read("x.jsonl");
  };
  EXPECT_EQ(json("{\"text\": \"yes\"}"),
            "DIR/x.jsonl:2: has none of audio_filepath, path, audio, file, file_name, "
            "wav_filename");
  EXPECT_EQ(json("{\"path\": \"a.wav\"}"),
            "DIR/x.jsonl:2: has none of text, sentence, transcript, transcription");
  EXPECT_EQ(json("{\"path\": 7, \"text\": \"yes\"}"), "DIR/x.jsonl:2: 'path' is 7, no text");
  EXPECT_EQ(json("{\"path\": \"a.wav\", \"text\": \" \"}"), "DIR/x.jsonl:2: has no text");
  EXPECT_EQ(json("{\"path\": \"\", \"text\": \"a\"}"), "DIR/x.jsonl:2: names no sound");
  EXPECT_EQ(json("{\"path\": \"a\\u0000b\", \"text\": \"a\"}"),
            "DIR/x.jsonl:2: the path of its sound is none");
  EXPECT_EQ(json("{\"path\": \"a\", \"text\": \"a\", \"duration\": \"long\"}"),
            "DIR/x.jsonl:2: 'duration' is long; it must be seconds");
  EXPECT_EQ(json("{\"path\": \"a\", \"text\": \"a\", \"offset\": -1}"),
            "DIR/x.jsonl:2: 'offset' is -1; it must be seconds");
  EXPECT_EQ(json("{\"path\": \"a\", \"text\": \"a\", \"offset\": 1e300}"),
            "DIR/x.jsonl:2: 'offset' is 1e300; it must be seconds");
  EXPECT_EQ(json("{\"path\": \"a\", \"text\": \"" + std::string(70000, 'a') + "\"}"),
            "DIR/x.jsonl:2: has a text of 70000 bytes, at most 65536 are taken");
  EXPECT_TRUE(json("{\"path\": ").starts_with("DIR/x.jsonl:2: byte ")) << json("{\"path\": ");
  EXPECT_EQ(json(""), "DIR/x.jsonl: has no transcript");
  Put("x.csv", "file,words\n");
  EXPECT_EQ(Read("x.csv"),
            "DIR/x.csv:1: has no column text, sentence, transcript, transcription; it has file, "
            "words");
  Put("x.tsv", "path\tsentence\na.wav\n");
  EXPECT_EQ(Read("x.tsv"), "DIR/x.tsv:2: has 1 cells, the first line has 2");
  Put("none/a.txt", "");
  EXPECT_EQ(Read("none"), "DIR/none: holds no *.trans.txt");
  Put("x.trans.txt", "1-2\n");
  EXPECT_EQ(Read("x.trans.txt"), "DIR/x.trans.txt:1: has no text");
}

TEST_F(TranscriptsTest, SamplesAreSpelledAndCountedAsCtcLossTakesThem) {
  PutSounds(2);
  Put("a.jsonl",
      "{\"path\": \"0.wav\", \"text\": \"BA\"}\n{\"path\": \"1.wav\", \"text\": \"B C \"}");
  const auto splits = Open("a.jsonl,case=lower");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const Source& train = *splits->train;
  EXPECT_EQ(splits->preprocessing->spelling, (SpellingPreprocessing{true, {" ", "a", "b", "c"}}));
  EXPECT_EQ(Text(train, 0), (std::vector<int64_t>{3, 2, 0}));
  EXPECT_EQ(Text(train, 1), (std::vector<int64_t>{3, 1, 4}));
  EXPECT_EQ(Number(train, 0, "text_length"), 2);
  EXPECT_EQ(Number(train, 1, "text_length"), 3);
  EXPECT_EQ(train.fields()[0].type, (TensorType{DType::kF32, {80, 55}}));
  EXPECT_EQ(Number(train, 0, "frame_count"), 50);  // 0.5 s
  EXPECT_EQ(Number(train, 1, "frame_count"), 55);
  EXPECT_EQ(Local(train.Origin(1)), "DIR/1.wav");
  const auto size = [&](const std::string& name) {
    for (const ModelSize& one : splits->sizes) {
      if (one.name == name) return one.value;
    }
    return int64_t{-1};
  };
  EXPECT_EQ(size("classes"), 6);
  EXPECT_EQ(size("letters"), 3);
  EXPECT_EQ(size("frames"), 55);
  EXPECT_EQ(size("mels"), 80);
}

// What a run keeps: its letters, its length of sounds; what they lack is the last class.
TEST_F(TranscriptsTest, OtherDataAreSpelledAsTheRunSpells) {
  PutSounds(2);
  Put("a.jsonl", "{\"path\": \"0.wav\", \"text\": \"ba\"}\n");
  Put("b.jsonl", "{\"path\": \"0.wav\", \"text\": \"abc\"}\n");
  const auto run = Open("a.jsonl");
  ASSERT_TRUE(run.ok()) << run.status().message();
  DataOptions options;
  options.preprocessing = run->preprocessing;
  const auto other = Open("b.jsonl", options);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(*other->preprocessing, *run->preprocessing);
  EXPECT_EQ(Text(*other->train, 0), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(Said(*other, *other->train, 0), "ab\xEF\xBF\xBD");
  options.model_inputs = {{"text", {DType::kI64, {7}}}};
  EXPECT_EQ(Text(*Open("b.jsonl", options)->train, 0).size(), 7u);
}

TEST_F(TranscriptsTest, WhatIsTooLongIsLeftOutAndTold) {
  PutSounds(3);
  Put("a.jsonl",
      "{\"path\": \"0.wav\", \"text\": \"a\"}\n{\"path\": \"1.wav\", \"text\": \"abc\"}\n"
      "{\"path\": \"2.wav\", \"text\": \"b\"}\n");
  const auto splits = Open("a.jsonl,seconds=0.55,letters=2");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 1);
  ASSERT_EQ(splits->notes.size(), 2u);
  EXPECT_TRUE(splits->notes[0].ends_with(
      ": 1 sample of the training set is longer than 0.55 s: left out. hint: seconds=N behind the "
      "data"))
      << splits->notes[0];
  EXPECT_TRUE(
      splits->notes[1].ends_with("longer than 2 letters: left out. hint: letters=N behind "
                                 "the data"));
  EXPECT_TRUE(Error("a.jsonl,seconds=0.1")
                  .ends_with("all samples of the training set are longer than 0.1 s or 3 letters"));
}

TEST_F(TranscriptsTest, AHeldOutSampleStaysHeldOutWhenOthersCome) {
  PutSounds(40);
  const auto lines = [](int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i)
      text += "{\"path\": \"" + std::to_string(i) + ".wav\", \"text\": \"n " + std::to_string(i) +
              "\"}\n";
    return text;
  };
  Put("a.jsonl", lines(0, 30));
  Put("b.jsonl", lines(30, 40) + lines(0, 30));
  DataOptions options;
  options.hold_out = 0.3;
  const auto origins = [&](const std::string& file) {
    const auto splits = Open(file, options);
    EXPECT_TRUE(splits.ok() && splits->held_out);
    std::vector<std::string> held;
    for (int64_t i = 0; i < splits->validation->size(); ++i)
      held.push_back(splits->validation->Origin(i));
    EXPECT_EQ(splits->train->size() + splits->validation->size(), file == "a.jsonl" ? 30 : 40);
    return held;
  };
  const auto first = origins("a.jsonl"), more = origins("b.jsonl");
  ASSERT_GT(first.size(), 3u);
  for (const std::string& origin : first)
    EXPECT_NE(std::find(more.begin(), more.end(), origin), more.end()) << origin;
  // The characters are those of the training part.
  const auto splits = Open("a.jsonl", options);
  std::set<std::string> letters;
  for (int64_t i = 0; i < splits->train->size(); ++i) {
    for (const char c : Said(*splits, *splits->train, i)) letters.insert(std::string(1, c));
  }
  EXPECT_EQ(splits->preprocessing->spelling->letters,
            std::vector<std::string>(letters.begin(), letters.end()));
}

TEST_F(TranscriptsTest, BadRecordsAreSkippedByFileAndLine) {
  PutSounds(2);
  Put("cut.wav", Wav(400).substr(0, 100));
  Put("a.jsonl",
      "{\"path\": \"0.wav\", \"text\": \"a\"}\n{\"path\": \"cut.wav\", \"text\": \"a\"}\n"
      "{\"path\": \"none.wav\", \"text\": \"a\"}\n{\"path\": 3}\n"
      "{\"path\": \"1.wav\", \"text\": \"b\", \"duration\": 3}\n"
      "{\"path\": \"1.wav\", \"text\": \"b\", \"duration\": 0.55}\n");
  EXPECT_TRUE(Error("a.jsonl").starts_with("DIR/a.jsonl:4: 'path' is 3")) << Error("a.jsonl");
  DataOptions options;
  options.bad_records = std::make_shared<BadRecords>(*BadRecordsPolicy::Parse("skip:4"));
  const auto splits = Open("a.jsonl", options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 2);
  const auto list = options.bad_records->List();
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(Local(list[0].origin), "DIR/a.jsonl:4");
  EXPECT_EQ(Local(list[1].origin), "DIR/a.jsonl:2");
  EXPECT_TRUE(Local(list[1].reason).starts_with("DIR/cut.wav: chunk 'data'")) << list[1].reason;
  EXPECT_EQ(Local(list[3].reason), "says 3 s, and DIR/1.wav has 0.55 s");
}

TEST_F(TranscriptsTest, AFileThatChangesAfterOpeningIsNamed) {
  PutSounds(1);
  Put("a.jsonl", "{\"path\": \"0.wav\", \"text\": \"a\"}\n");
  const auto splits = Open("a.jsonl");
  Put("0.wav", Wav(300));
  std::vector<char> out(static_cast<size_t>(splits->train->fields()[0].type.bytes()));
  EXPECT_EQ(Local(splits->train->ReadOne(0, 0, out.data()).message()),
            "DIR/0.wav: has changed since the data was opened");
}

// The law of `offset`: as if the part were a file of its own.
TEST_F(TranscriptsTest, APartOfARecordingIsTheSoundOfThatPart) {
  const std::string whole = Wav(8000);
  std::string part = Wav(3200);
  std::copy_n(whole.begin() + 44 + 2 * 2000, 2 * 3200, part.begin() + 44);
  Put("whole.wav", whole);
  Put("part.wav", part);
  std::string end = Wav(6000);
  std::copy_n(whole.begin() + 44 + 2 * 2000, 2 * 6000, end.begin() + 44);
  Put("end.wav", end);
  Put("a.jsonl",
      "{\"path\": \"whole.wav\", \"offset\": 0.25, \"duration\": 0.4, \"text\": \"a\"}\n"
      "{\"path\": \"part.wav\", \"text\": \"a\"}\n"
      "{\"path\": \"whole.wav\", \"offset\": 0.25, \"text\": \"a\"}\n"
      "{\"path\": \"end.wav\", \"text\": \"a\"}\n"
      "{\"path\": \"whole.wav\", \"offset\": 0, \"text\": \"a\"}\n"
      "{\"path\": \"whole.wav\", \"text\": \"a\"}\n");
  for (const char* options : {"", ",features=wave"}) {
    const auto splits = Open(std::string("a.jsonl") + options);
    ASSERT_TRUE(splits.ok()) << splits.status().message();
    const Source& train = *splits->train;
    const auto sound = [&](int64_t index) {
      std::vector<char> bytes(static_cast<size_t>(train.fields()[0].type.bytes()));
      EXPECT_TRUE(train.ReadOne(index, 0, bytes.data()).ok());
      return bytes;
    };
    for (const int64_t i : {0, 2, 4}) {
      EXPECT_EQ(sound(i), sound(i + 1)) << i << options;
      EXPECT_EQ(Number(train, i, "frame_count"), Number(train, i + 1, "frame_count"));
    }
    EXPECT_NE(sound(0), sound(2));
  }
}

TEST_F(TranscriptsTest, APartBeyondItsRecordingIsNamed) {
  PutSounds(1);
  const auto error = [&](const std::string& times) {
    Put("a.jsonl", "{\"path\": \"0.wav\", \"text\": \"a\", " + times + "}\n");
    return Error("a.jsonl");
  };
  EXPECT_EQ(error("\"offset\": 0.5"),
            "DIR/a.jsonl:1: says it begins at 0.5 s, and DIR/0.wav has 0.5 s");
  EXPECT_EQ(error("\"offset\": 0.25, \"duration\": 0.5"),
            "DIR/a.jsonl:1: says 0.25 to 0.75 s, and DIR/0.wav has 0.5 s");
  EXPECT_EQ(error("\"duration\": 0.25"), "DIR/a.jsonl:1: says 0.25 s, and DIR/0.wav has 0.5 s");
  EXPECT_EQ(error("\"offset\": 0.25, \"duration\": 0.3"), "ok");
}

// ---- models that write

DataOptions Decoder(int64_t length, int64_t vocab = 0) {
  DataOptions options;
  options.model_inputs = {{"features", {DType::kF32, {80, 60}}},
                          {"tokens", {DType::kI64, {length}}, vocab},
                          {"label", {DType::kI64, {length}}, vocab}};
  return options;
}

std::vector<int64_t> Integers(const Source& source, int64_t index, const char* name) {
  const int field = source.FindField(name);
  std::vector<int64_t> values(
      static_cast<size_t>(source.fields()[static_cast<size_t>(field)].type.elements()));
  EXPECT_TRUE(source.ReadOne(index, field, values.data()).ok());
  return values;
}

TEST_F(TranscriptsTest, ADecoderReadsTheTextAndWritesItsNextLetter) {
  PutSounds(2);
  Put("a.jsonl",
      "{\"path\": \"0.wav\", \"text\": \"ba\"}\n{\"path\": \"1.wav\", \"text\": \"abc\"}\n");
  const auto splits = Open("a.jsonl", Decoder(5, 5));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const Source& train = *splits->train;
  EXPECT_EQ(train.fields()[0].type, (TensorType{DType::kF32, {80, 60}}));
  EXPECT_EQ(Integers(train, 0, "tokens"), (std::vector<int64_t>{0, 2, 1, 0, 0}));
  EXPECT_EQ(Integers(train, 0, "label"), (std::vector<int64_t>{2, 1, 0, -100, -100}));
  EXPECT_EQ(Integers(train, 1, "tokens"), (std::vector<int64_t>{0, 1, 2, 3, 0}));
  EXPECT_EQ(Integers(train, 1, "label"), (std::vector<int64_t>{1, 2, 3, 0, -100}));
  EXPECT_EQ(splits->preprocessing->spelling->letters, (std::vector<std::string>{"a", "b", "c"}));
  ASSERT_EQ(splits->notes.size(), 1u);
  EXPECT_TRUE(splits->notes[0].ends_with(
      "word error rates take each token behind the true ones before it (teacher forcing)"));
  // A text of three letters needs four places, its end among them.
  const auto shorter = Open("a.jsonl", Decoder(3));
  ASSERT_TRUE(shorter.ok()) << shorter.status().message();
  EXPECT_EQ(shorter->train->size(), 1);
  EXPECT_TRUE(shorter->notes.back().ends_with(
      "is longer than 3 tokens: left out. hint: length=N behind the data"))
      << shorter->notes.back();
}

TEST_F(TranscriptsTest, ATokenizersTextsAreFramedByItsTokens) {
  PutSounds(1);
  Put("a.jsonl", "{\"path\": \"0.wav\", \"text\": \"Go\"}\n");
  const auto splits = Open("a.jsonl,tokenizer=bytes,case=lower", Decoder(4));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  // ByT5: 1 ends, 0 pads, a byte is its number + 3.
  EXPECT_EQ(Integers(*splits->train, 0, "tokens"), (std::vector<int64_t>{1, 106, 114, 0}));
  EXPECT_EQ(Integers(*splits->train, 0, "label"), (std::vector<int64_t>{106, 114, 1, -100}));
  ASSERT_TRUE(splits->preprocessing->text);
  EXPECT_EQ(splits->preprocessing->spelling, (SpellingPreprocessing{true, {}}));
  const auto tokens = TranscriptTokensOf(*splits->preprocessing);
  ASSERT_TRUE(tokens.ok());
  const std::vector<int64_t> said = {1, 106, 114, 1, 0, -100, 1 << 20};
  EXPECT_EQ((*tokens)->Read(said), "go");
  // A run's data are made as before.
  DataOptions again = Decoder(4);
  again.preprocessing = splits->preprocessing;
  const auto other = Open("a.jsonl", again);
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(*other->preprocessing, *splits->preprocessing);
  EXPECT_EQ(Integers(*other->train, 0, "tokens"), Integers(*splits->train, 0, "tokens"));
}

TEST_F(TranscriptsTest, WrongOptionsOfDecodersAreRefused) {
  PutSounds(1);
  Put("a.jsonl", "{\"path\": \"0.wav\", \"text\": \"a\"}\n");
  EXPECT_TRUE(
      Error("a.jsonl,length=7", Decoder(5)).ends_with("length is 7; the model takes 5 tokens"));
  EXPECT_TRUE(Error("a.jsonl,letters=7", Decoder(5))
                  .ends_with("letters= is for ctc_loss. hint: length=N, in tokens"));
  EXPECT_TRUE(Error("a.jsonl,tokenizer=bytes", Decoder(5, 50))
                  .ends_with("the texts are of 259 tokens; the model knows 50"))
      << Error("a.jsonl,tokenizer=bytes", Decoder(5, 50));
  EXPECT_NE(Error("a.jsonl,tokenizer=none.json").find("none.json"), std::string::npos);
  EXPECT_TRUE(Error("a.jsonl,tokenizer=").ends_with("it must be a file, a folder or bytes"));
  DataOptions ctc;
  ctc.model_inputs = {{"features", {DType::kF32, {80, 60}}}, {"text", {DType::kI64, {5}}}};
  EXPECT_TRUE(Error("a.jsonl,tokenizer=bytes", ctc)
                  .ends_with("hint: leave them out, its classes are characters then"));
}

TEST_F(TranscriptsTest, WrongOptionsAreRefused) {
  PutSounds(1);
  Put("a.jsonl", "{\"path\": \"0.wav\", \"text\": \"a\"}\n");
  EXPECT_TRUE(Error("a.jsonl,case=upper").ends_with("case is 'upper'; it must be keep or lower"));
  EXPECT_TRUE(Error("a.jsonl,letters=0").ends_with("letters is '0'; it must be from 1 to 16384"));
  EXPECT_TRUE(Error("a.jsonl,mels=0").ends_with("it must be a whole number from 1 to 1024"));
  EXPECT_NE(Error("a.jsonl,size=3").find("no option 'size'"), std::string::npos);
}

}  // namespace
}  // namespace ridge
