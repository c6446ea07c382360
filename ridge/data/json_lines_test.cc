// The laws: a line is a sample with its text and its label; the fields are found where nothing else
// could be meant; a bad line is named by file, line and byte.
#include "ridge/data/json_lines.h"

#include "ridge/core/files.h"
#include "ridge/data/json_line.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

using Ids = std::vector<int64_t>;

class JsonLinesTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& text) { folder_.Write(path, text); }
  std::string Plain(std::string text) const {
    for (size_t at = 0; (at = text.find(folder_.path(), at)) != std::string::npos; at += 3)
      text.replace(at, folder_.path().size(), "DIR");
    return text;
  }
  // The samples are of `length` bytes.
  static DataOptions Model(int64_t length, bool language = false) {
    DataOptions options;
    const std::vector<int64_t> label = language ? std::vector{length} : std::vector<int64_t>{};
    options.model_inputs = {{"tokens", {DType::kI64, {length}}, 300},
                            {"label", {DType::kI64, label}, language ? 300 : 0}};
    return options;
  }
  Result<DataSplits> Open(const std::string& argument, const DataOptions& options) {
    return OpenData("jsonl:" + folder_.File(argument), options);
  }
  std::string Error(const std::string& argument, const DataOptions& options) {
    return Plain(Message(Open(argument, options)));
  }
  static Ids Read(const Source& source, int64_t index, const std::string& name) {
    const int field = source.FindField(name);
    EXPECT_GE(field, 0) << name;
    Ids values(static_cast<size_t>(source.fields()[static_cast<size_t>(field)].type.elements()));
    EXPECT_TRUE(source.ReadOne(index, field, values.data()).ok());
    return values;
  }
  // The bytes of a sample, without padding.
  static std::string TextOf(const Source& source, int64_t index) {
    std::string text;
    for (const int64_t id : Read(source, index, "input_ids")) {
      if (id >= 3) text += static_cast<char>(id - 3);
    }
    return text;
  }

  TempFolder folder_;
};

TEST_F(JsonLinesTest, ALineIsASampleWithItsLabel) {
  Put("a.jsonl",
      "{\"text\": \"ab\\u00e9\", \"label\": \"pos\"}\r\n\n"
      " {\"label\": \"neg\", \"n\": [1, {\"text\": 2}], \"text\": \"c\\nd\"}");
  for (const char* file : {"a.jsonl", "a.jsonl.gz"}) {
    if (std::string(file).ends_with(".gz")) Put(file, Gzip(*ReadFile(folder_.File("a.jsonl"))));
    const auto splits = Open(file, Model(8));
    ASSERT_TRUE(splits.ok()) << splits.status().message();
    const Source& source = *splits->train;
    ASSERT_EQ(source.size(), 2);
    EXPECT_EQ(TextOf(source, 0), "ab\xC3\xA9");
    EXPECT_EQ(TextOf(source, 1), "c\nd");
    EXPECT_EQ(Read(source, 0, "label"), Ids{1});
    EXPECT_EQ(Read(source, 1, "label"), Ids{0});
    EXPECT_EQ(Plain(source.Origin(1)), "DIR/" + std::string(file) + ":3");
    EXPECT_EQ(splits->preprocessing->classes, (std::vector<std::string>{"neg", "pos"}));
    EXPECT_EQ(Plain(splits->notes.front()),
              "jsonl:DIR/" + std::string(file) + ": reads 'text' as text and 'label' as label");
  }
}

TEST_F(JsonLinesTest, IntegersAreClassNumbers) {
  Put("a.jsonl", "{\"review\":\"x\",\"stars\":4}\n{\"review\":\"y\",\"stars\":0}\n");
  const auto splits = Open("a.jsonl", Model(4));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(Read(*splits->train, 0, "label"), Ids{4});
  EXPECT_EQ(splits->train->fields().back().classes, 5);
  EXPECT_TRUE(splits->preprocessing->classes.empty());
  EXPECT_EQ(Plain(splits->notes.front()),
            "jsonl:DIR/a.jsonl: reads 'review' as text and 'stars' as label");
}

TEST_F(JsonLinesTest, FieldsWithinObjectsAreNamedByTheirPath) {
  Put("a.jsonl",
      "{\"a\":{\"b\":\"x\",\"c\":true},\"d\":\"q\"}\n"
      "{\"a\":{\"b\":\"y\",\"c\":false},\"d\":\"r\"}\n");
  const auto splits = Open("a.jsonl,text=a.b,label=a.c", Model(4));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(TextOf(*splits->train, 1), "y");
  EXPECT_EQ(Read(*splits->train, 0, "label"), Ids{1});
  EXPECT_EQ(splits->preprocessing->classes, (std::vector<std::string>{"false", "true"}));
}

TEST_F(JsonLinesTest, ALanguageModelReadsTheTextsJoined) {
  Put("a.jsonl", "{\"text\":\"abc\",\"label\":null}\n{\"text\":\"defg\"}\n");
  const auto splits = Open("a.jsonl", Model(3, /*language=*/true));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  ASSERT_EQ(splits->train->size(), 2);
  EXPECT_EQ(Read(*splits->train, 0, "input_ids"), (Ids{'a' + 3, 'b' + 3, 'c' + 3}));
  EXPECT_EQ(Read(*splits->train, 0, "label"), (Ids{'b' + 3, 'c' + 3, 1}));
  EXPECT_EQ(Read(*splits->train, 1, "input_ids"), (Ids{1, 'd' + 3, 'e' + 3}));
}

TEST_F(JsonLinesTest, FilesNamedSoAreTheSets) {
  Put("train.jsonl", "{\"text\":\"x\",\"label\":\"b\"}\n{\"text\":\"y\",\"label\":\"a\"}\n");
  Put("test.jsonl", "{\"text\":\"z\",\"label\":\"b\"}\n");
  const auto splits = Open("{train,test}.jsonl", Model(4));
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->validation, nullptr);
  EXPECT_EQ(Read(*splits->test, 0, "label"), Ids{1});
  Put("test.jsonl", "{\"text\":\"z\",\"label\":\"c\"}\n");
  EXPECT_EQ(Error("{train,test}.jsonl", Model(4)),
            "DIR/test.jsonl: label 'c' is none of the classes: a, b");
}

TEST_F(JsonLinesTest, EqualTextsAreOnOneSideOfTheSplit) {
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines += "{\"text\":\"line " + std::to_string(i % 40) +
             "\",\"label\":" + std::to_string(i % 2) + "}\n";
  Put("a.jsonl", lines);
  DataOptions options = Model(12);
  options.hold_out = 0.3;
  const auto splits = Open("a.jsonl", options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  ASSERT_TRUE(splits->held_out);
  EXPECT_EQ(splits->train->size() + splits->validation->size(), 200);
  std::vector<std::string> training;
  for (int64_t i = 0; i < splits->train->size(); ++i) {
    training.push_back(TextOf(*splits->train, i));
    // Line i has class i % 2, and so has its text.
    EXPECT_EQ(Read(*splits->train, i, "label")[0], std::stoi(training.back().substr(5)) % 2);
  }
  for (int64_t i = 0; i < splits->validation->size(); ++i)
    EXPECT_EQ(std::count(training.begin(), training.end(), TextOf(*splits->validation, i)), 0);
}

TEST_F(JsonLinesTest, ABadLineIsNamedByItsByte) {
  const std::string good = "{\"text\":\"x\",\"label\":1}\n";  // 23 bytes
  const auto error = [&](const std::string& line) {
    Put("a.jsonl", good + line + "\n");
    return Error("a.jsonl", Model(4));
  };
  EXPECT_EQ(error("{\"text\":\"y\",}"),
            "DIR/a.jsonl:2: byte 35: is no JSON: syntax error while parsing object key - "
            "unexpected '}'; expected string literal");
  EXPECT_EQ(error("[1]"), "DIR/a.jsonl:2: byte 23: is a list, no object");
  EXPECT_EQ(error("  7"), "DIR/a.jsonl:2: byte 25: is no JSON object");
  EXPECT_EQ(error("{\"label\":1}"), "DIR/a.jsonl:2: byte 23: 'text' is missing");
  EXPECT_EQ(error("{\"text\":3,\"label\":1}"), "DIR/a.jsonl:2: byte 23: 'text' is no text");
  EXPECT_EQ(error("{\"text\":\"y\"}"), "DIR/a.jsonl:2: byte 23: 'label' is missing");
  EXPECT_EQ(error("{\"text\":\"y\",\"label\":1.5}"),
            "DIR/a.jsonl:2: byte 23: 'label' is 1.5, no class");
  EXPECT_EQ(error("{\"text\":\"y\",\"label\":-1}"),
            "DIR/a.jsonl:2: byte 23: 'label' is -1; classes are 0 to 2147483646");
  EXPECT_EQ(error("{\"text\":\"y\",\"label\":1,\"text\":\"z\"}"),
            "DIR/a.jsonl:2: byte 23: has 'text' twice");
  EXPECT_EQ(error("{\"text\":\"\xFF\"}").substr(0, 45),
            std::string("DIR/a.jsonl:2: byte 32: is no JSON: syntax error").substr(0, 45));
  EXPECT_EQ(error(std::string(100, '[')), "DIR/a.jsonl:2: byte 23: is a list, no object");
  EXPECT_EQ(error("{\"a\":" + std::string(100, '[')),
            "DIR/a.jsonl:2: byte 23: is nested more than 64 deep");
}

TEST_F(JsonLinesTest, BadLinesAreLeftOutWhereTheRunBearsThem) {
  Put("a.jsonl",
      "{oops\n{\"text\":\"x\",\"label\":\"a\"}\n{\"text\":1,\"label\":\"b\"}\n"
      "{\"text\":\"\",\"label\":\"c\"}\n{\"text\":\"z\",\"label\":\"b\"}\n");
  DataOptions options = Model(4);
  options.bad_records = std::make_shared<BadRecords>(*BadRecordsPolicy::Parse("skip:2"));
  const auto splits = Open("a.jsonl", options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 2);
  EXPECT_EQ(Read(*splits->train, 1, "label"), Ids{1});
  const auto bad = options.bad_records->List();
  ASSERT_EQ(bad.size(), 2U);
  EXPECT_EQ(Plain(bad[1].origin), "DIR/a.jsonl:3");
  EXPECT_EQ(bad[1].reason, "byte 31: 'text' is no text");
  EXPECT_EQ(Plain(splits->notes[1]), "jsonl:DIR/a.jsonl: 1 record is left out, as it has no text");
}

TEST_F(JsonLinesTest, FieldsThatCouldBeSeveralAreAskedFor) {
  Put("a.jsonl", "{\"a\":\"x\",\"b\":\"y\",\"c\":1}\n{\"a\":\"x\",\"b\":\"y\",\"c\":0}\n");
  EXPECT_EQ(Error("a.jsonl", Model(4)),
            "jsonl:DIR/a.jsonl: which value is the text? Its records have a, b, c. hint: "
            "text=FIELD behind a comma");
  EXPECT_EQ(Error("a.jsonl,text=a", Model(4)),
            "jsonl:DIR/a.jsonl,text=a: which value is the label? Its records have a, b, c. hint: "
            "label=FIELD behind a comma");
  EXPECT_EQ(Error("a.jsonl,text=a,label=b", Model(4)),
            "jsonl:DIR/a.jsonl,text=a,label=b: has one class by 'b'; a classifier needs two. hint: "
            "label=FIELD "
            "behind a comma");
  EXPECT_EQ(Error("a.jsonl,text=a,label=c", Model(4)), "ok");
  Put("empty.jsonl", "");
  EXPECT_EQ(Error("empty.jsonl", Model(4)),
            "jsonl:DIR/empty.jsonl: which value is the text? Its records have no values. hint: "
            "text=FIELD behind a comma");
}

TEST_F(JsonLinesTest, ARunsClassesAndSizesAreKnownBefore) {
  Put("a.jsonl", "{\"text\":\"x\",\"label\":\"b\"}\n{\"text\":\"y\",\"label\":\"a\"}\n");
  const auto facts = FactsBeforeModel("jsonl:" + folder_.File("a.jsonl,length=9"));
  ASSERT_TRUE(facts.ok() && facts->has_value());
  EXPECT_EQ((*facts)->sizes,
            (std::vector<ModelSize>{
                {"vocab", 259}, {"mask", 1}, {"classes", 2}, {"tokens", 9}, {"context", 9}}));
  auto run = std::make_shared<Preprocessing>();
  run->classes = {"a", "b", "c"};
  run->text = TextPreprocessing{"bytes", {}};
  DataOptions options = Model(4);
  options.preprocessing = run;
  const auto splits = Open("a.jsonl", options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->preprocessing->classes, run->classes);
  auto numbers = std::make_shared<Preprocessing>(*run);
  numbers->classes.clear();
  options.preprocessing = numbers;
  EXPECT_EQ(Error("a.jsonl", options),
            "jsonl:DIR/a.jsonl: its labels are names, those of the run are numbers");
}

TEST(JsonLine, HoldsNothingButTheWantedValues) {
  std::string line = "{\"a\":\"x\"";
  for (int i = 0; i < 1000; ++i) line += ",\"k" + std::to_string(i) + "\":{\"a\":[1,2,{}]}";
  const auto values =
      ParseJsonLine(line + "}", 0, [](const std::string& path) { return path == "a"; });
  ASSERT_TRUE(values.ok()) << values.status().message();
  ASSERT_EQ(values->size(), 1U);
  EXPECT_EQ(values->front().text, "x");
}

}  // namespace
}  // namespace ridge
