// The laws: records, classes and tokens are those of the files; a language model's label is the
// next token; equal texts are on one side of a split.
#include "ridge/data/text_data.h"

#include <filesystem>
#include <set>

#include "ridge/data/test_files.h"

namespace ridge {
namespace {

class TextDataTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_.File(path)).parent_path());
    folder_.Write(path, text);
  }
  // "DIR" in an argument is the folder.
  std::string InFolder(std::string text) const { return Replaced(text, "DIR", folder_.path()); }
  static std::string Replaced(std::string text, const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
    return text;
  }

  static DataOptions Classifier(int64_t length) {
    DataOptions options;
    options.model_inputs = {{"tokens", {DType::kI64, {length}}, 300}, {"label", {DType::kI64, {}}}};
    return options;
  }
  static DataOptions Language(int64_t length) {
    DataOptions options;
    options.model_inputs = {{"tokens", {DType::kI64, {length}}, 300},
                            {"label", {DType::kI64, {length}}, 300}};
    return options;
  }
  Result<DataSplits> Open(const std::string& spec, const DataOptions& options) {
    return OpenData(InFolder(spec), options);
  }
  std::string Error(const std::string& spec, const DataOptions& options) {
    return Replaced(Message(Open(spec, options)), folder_.path(), "DIR");
  }

  TempFolder folder_;
};

std::vector<int64_t> ReadField(const Source& source, int64_t index, const std::string& name) {
  const int field = source.FindField(name);
  std::vector<int64_t> values(
      static_cast<size_t>(source.fields()[static_cast<size_t>(field)].type.elements()));
  EXPECT_TRUE(source.ReadOne(index, field, values.data()).ok());
  return values;
}

using Ids = std::vector<int64_t>;

TEST_F(TextDataTest, ALineIsASampleAndAFileAClass) {
  Put("good.txt", "ab\n\n c \n");
  Put("bad.txt", "abcdef\n");
  const auto splits = Open("text:DIR", Classifier(5));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const Source& source = *splits->train;
  ASSERT_EQ(source.size(), 3);
  EXPECT_EQ(splits->preprocessing->classes, (std::vector<std::string>{"bad", "good"}));
  // Bytes are numbered from 3; 0 pads.
  EXPECT_EQ(ReadField(source, 0, "input_ids"), (Ids{'a' + 3, 'b' + 3, 'c' + 3, 'd' + 3, 'e' + 3}));
  EXPECT_EQ(ReadField(source, 1, "input_ids"), (Ids{'a' + 3, 'b' + 3, 0, 0, 0}));
  EXPECT_EQ(ReadField(source, 1, "attention_mask"), (Ids{1, 1, 0, 0, 0}));
  EXPECT_EQ(ReadField(source, 1, "token_type_ids"), (Ids{0, 0, 0, 0, 0}));
  EXPECT_EQ(ReadField(source, 2, "input_ids"), (Ids{'c' + 3, 0, 0, 0, 0}));
  EXPECT_EQ(ReadField(source, 0, "label"), Ids{0});
  EXPECT_EQ(ReadField(source, 2, "label"), Ids{1});
  EXPECT_EQ(source.Origin(2), folder_.path() + "/good.txt:3");
}

TEST_F(TextDataTest, RecordsAreCutByALine) {
  Put("one", "a\nb\n%\n\n%\nc\n");
  Put("two", "d\n");
  const auto splits = Open("text:DIR,record=%", Classifier(6));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  ASSERT_EQ(splits->train->size(), 3);
  EXPECT_EQ(ReadField(*splits->train, 0, "input_ids"), (Ids{'a' + 3, '\n' + 3, 'b' + 3, 0, 0, 0}));
}

TEST_F(TextDataTest, FoldersAreClassesAndSets) {
  Put("train/x/1.txt", "a\n");
  Put("train/y/1.txt", "b\n");
  Put("test/y/1.txt", "c\nd\n");
  const auto splits = Open("text:DIR", Classifier(4));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 2);
  EXPECT_EQ(splits->validation, nullptr);
  ASSERT_EQ(splits->test->size(), 2);
  EXPECT_EQ(ReadField(*splits->test, 0, "label"), Ids{1});
}

TEST_F(TextDataTest, TheLabelOfALanguageModelIsTheNextToken) {
  const std::string text = "the quick brown fox jumps over the lazy dog";
  Put("a.txt", text);
  const auto splits = Open("text:DIR/a.txt", Language(8));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  Ids whole;
  for (const char c : text) whole.push_back(c + 3);
  whole.push_back(1);
  const Source& source = *splits->train;
  EXPECT_EQ(source.size(), static_cast<int64_t>(whole.size() - 1) / 8);
  for (int64_t i = 0; i < source.size(); ++i) {
    EXPECT_EQ(ReadField(source, i, "input_ids"),
              Ids(whole.begin() + 8 * i, whole.begin() + 8 * i + 8));
    EXPECT_EQ(ReadField(source, i, "label"),
              Ids(whole.begin() + 8 * i + 1, whole.begin() + 8 * i + 9));
  }
}

TEST_F(TextDataTest, EqualTextsAreOnOneSideOfTheSplit) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i % 50) + "\n";
  Put("a.txt", text);
  Put("b.txt", "other\nlines\n");
  DataOptions options = Classifier(12);
  options.hold_out = 0.3;
  const auto splits = Open("text:DIR", options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_TRUE(splits->held_out);
  EXPECT_EQ(splits->train->size() + splits->validation->size(), 202);
  std::set<Ids> training;
  for (int64_t i = 0; i < splits->train->size(); ++i)
    training.insert(ReadField(*splits->train, i, "input_ids"));
  for (int64_t i = 0; i < splits->validation->size(); ++i)
    EXPECT_FALSE(training.contains(ReadField(*splits->validation, i, "input_ids")));
}

TEST_F(TextDataTest, SizesOfTheModelAreKnownBefore) {
  Put("a.txt", "x\n");
  Put("b.txt", "y\n");
  const auto facts = FactsBeforeModel(InFolder("text:DIR,length=9"));
  ASSERT_TRUE(facts.ok() && facts->has_value());
  EXPECT_EQ((*facts)->sizes,
            (std::vector<ModelSize>{
                {"vocab", 259}, {"mask", 1}, {"classes", 2}, {"tokens", 9}, {"context", 9}}));
}

TEST_F(TextDataTest, RefusalsNameWhatIsWrong) {
  Put("a.txt", "x\n");
  EXPECT_EQ(Error("text:DIR/none.txt", Classifier(4)),
            "text:DIR/none.txt: there is no file or folder DIR/none.txt");
  EXPECT_EQ(Error("text:DIR/a.txt", Classifier(4)),
            "text:DIR/a.txt: has one class, 'a'; a classifier needs two. hint: label=folder or "
            "label=file says what a class is");
  EXPECT_EQ(Error("text:DIR/a.txt", Language(4)),
            "text:DIR/a.txt: has 3 tokens; one sample of the model takes 5");
  EXPECT_EQ(Error("text:DIR,length=7", Classifier(4)),
            "data 'text:DIR,length=7': length is 7; the model takes 4 tokens");
  DataOptions small = Classifier(4);
  small.model_inputs[0].classes = 100;
  EXPECT_EQ(Error("text:DIR", small),
            "data 'text:DIR': the tokenizer has 259 tokens; the model knows 100");
  DataOptions pictures;
  pictures.model_inputs = {{"image", {DType::kF32, {3, 8, 8}}}, {"label", {DType::kI64, {}}}};
  EXPECT_EQ(Error("text:DIR", pictures),
            "data 'text:DIR': the model has no input of tokens, i64[batch,length], named tokens or "
            "input_ids");
}

TEST_F(TextDataTest, ClassesAreThoseOfTheRun) {
  Put("b.txt", "x\n");
  auto run = std::make_shared<Preprocessing>();
  run->classes = {"a", "b"};
  run->text = TextPreprocessing{"bytes", {}};
  DataOptions options = Classifier(4);
  options.preprocessing = run;
  const auto splits = Open("text:DIR", options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(ReadField(*splits->train, 0, "label"), Ids{1});
  Put("c.txt", "y\n");
  EXPECT_EQ(Error("text:DIR", options), "DIR/c.txt: its class 'c' is none of the run's");
}

DataOptions Packed(int64_t length) {
  DataOptions options;
  options.model_inputs = {{"tokens", {DType::kI64, {length}}, 300},
                          {"position_ids", {DType::kI64, {length}}, length},
                          {"label", {DType::kI64, {length}}, 300}};
  options.seed = 7;
  return options;
}

// The texts of a row, by where their positions begin, as their tokens and the last label.
std::vector<Ids> TextsOfRow(const Source& source, int64_t row) {
  const Ids ids = ReadField(source, row, "input_ids"), labels = ReadField(source, row, "label");
  const Ids positions = ReadField(source, row, "position_ids");
  std::vector<Ids> texts;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (labels[i] == kIgnoredLabel) break;
    if (positions[i] == 0) texts.push_back({ids[i]});
    EXPECT_EQ(positions[i] + 1, static_cast<int64_t>(texts.back().size()));
    EXPECT_EQ(texts.back().back(), ids[i]);
    texts.back().push_back(labels[i]);
  }
  return texts;
}

TEST_F(TextDataTest, PackedTextsAreWholeAndNoLabelCrossesABorder) {
  Put("a.txt", "abc\nde\nfghijklmno\np\nqr\nst\n");
  const auto splits = Open("text:DIR/a.txt,record=line,packing=on", Packed(8));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  std::multiset<std::string> got;
  for (int64_t row = 0; row < splits->train->size(); ++row) {
    for (const Ids& text : TextsOfRow(*splits->train, row)) {
      std::string letters;
      for (const int64_t id : text) letters += id >= 3 ? static_cast<char>(id - 3) : '.';
      got.insert(letters);
    }
  }
  // A long text is cut into pieces of a row; each token but the first is a label once.
  EXPECT_EQ(got,
            (std::multiset<std::string>{"abc.", "de.", "fghijklmn", "no.", "p.", "qr.", "st."}));
  EXPECT_EQ(splits->train->size(), 3);
}

TEST_F(TextDataTest, PaddingOfAPackedRowIsIgnored) {
  Put("a.txt", "abc\n");
  const auto splits = Open("text:DIR/a.txt,record=line,packing=on", Packed(6));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(ReadField(*splits->train, 0, "input_ids"), (Ids{'a' + 3, 'b' + 3, 'c' + 3, 0, 0, 0}));
  EXPECT_EQ(ReadField(*splits->train, 0, "position_ids"), (Ids{0, 1, 2, 0, 1, 2}));
  const Ids labels = ReadField(*splits->train, 0, "label");
  EXPECT_EQ(Ids(labels.begin() + 3, labels.end()), Ids(3, kIgnoredLabel));
}

TEST_F(TextDataTest, EqualTextsArePackedOnOneSideOfASplit) {
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "text " + std::to_string(i % 20) + "\n";
  Put("a.txt", lines);
  DataOptions options = Packed(24);
  options.hold_out = 0.3;
  const auto splits = Open("text:DIR/a.txt,record=line,packing=on", options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  std::set<Ids> train, held;
  size_t texts = 0;
  for (const auto& [set, seen] : {std::pair(splits->train, &train), {splits->validation, &held}}) {
    for (int64_t row = 0; row < set->size(); ++row) {
      for (const Ids& text : TextsOfRow(*set, row)) {
        seen->insert(text);
        ++texts;
      }
    }
  }
  EXPECT_EQ(texts, 60U);
  EXPECT_EQ(train.size() + held.size(), 20U);
  for (const Ids& text : held) EXPECT_EQ(train.count(text), 0U);
}

TEST_F(TextDataTest, PackingSaysWhatItCannotDo) {
  Put("one/a.txt", "abc\nd\n");
  Put("two/b.txt", "abc\n");
  EXPECT_EQ(Error("text:DIR,packing=on", Classifier(5)),
            "data 'text:DIR,packing=on': packing=on puts texts side by side; the model has one "
            "label for all of its tokens. hint: leave packing out");
  EXPECT_EQ(Error("text:DIR,packing=yes", Packed(5)),
            "data 'text:DIR,packing=yes': packing is 'yes'; it takes on or off");
  const auto splits = Open("text:DIR,packing=on", Language(5));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(Replaced(splits->notes.back(), folder_.path(), "DIR"),
            "text:DIR,packing=on: the model has no input position_ids, so its tokens see the texts "
            "before theirs in a row");
}

}  // namespace
}  // namespace ridge
