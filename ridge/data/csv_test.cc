#include "ridge/data/csv.h"

#include <gmock/gmock.h>

#include "ridge/data/test_files.h"

namespace ridge {
namespace {

class CsvTest : public testing::Test {
 protected:
  Result<DataSplits> Open(const std::string& text) {
    return OpenData("csv:" + folder_.Write("t.csv", text));
  }
  SourcePtr Load(const std::string& text) {
    const auto splits = Open(text);
    if (!splits.ok()) ADD_FAILURE() << Message(splits);
    return splits.ok() ? splits->train : CountingSource(1);
  }
  void ExpectBad(const std::string& text, const std::string& expected) {
    const auto splits = Open(text);
    ASSERT_FALSE(splits.ok()) << text;
    EXPECT_EQ(splits.status().code(), ErrorCode::kInvalidData);
    EXPECT_EQ(Message(splits), folder_.path() + "/t.csv" + expected);
  }
  static std::vector<double> Values(const Source& source, const std::string& field) {
    const int f = source.FindField(field);
    const TensorType& type = source.fields()[static_cast<size_t>(f)].type;
    std::vector<double> values;
    for (int64_t i = 0; i < source.size(); ++i) {
      for (int64_t j = 0; j < type.elements(); ++j)
        values.push_back(LoadAsDouble(type.dtype, source.View(i, f), j));
    }
    return values;
  }

  TempFolder folder_;
};

using Doubles = std::vector<double>;

TEST_F(CsvTest, ReadsALabelInTheLastColumn) {
  const SourcePtr source = Load("1,2.5,0\n-3,4e1,2\n");
  EXPECT_EQ(source->size(), 2);
  EXPECT_EQ(source->fields()[0], (Field{"features", {DType::kF32, {2}}, 0}));
  EXPECT_EQ(source->fields()[1], (Field{"label", {DType::kI64, {}}, 3}));
  EXPECT_EQ(Values(*source, "features"), (Doubles{1, 2.5, -3, 40}));
  EXPECT_EQ(Values(*source, "label"), (Doubles{0, 2}));
  EXPECT_EQ(source->resident_bytes(), 2 * 2 * 4 + 2 * 8);
}

TEST_F(CsvTest, ReadsANamedLabelAnywhere) {
  for (const std::string name : {"label", "Target", "y"}) {
    const SourcePtr source = Load("a," + name + ",b\n1,7,2\n3,8,4\n");
    EXPECT_EQ(Values(*source, "features"), (Doubles{1, 2, 3, 4}));
    EXPECT_EQ(Values(*source, "label"), (Doubles{7, 8}));
  }
}

// What pandas writes for a table without names, and, with an empty cell, for its index.
TEST_F(CsvTest, ColumnsThatAreNumberedAreAHeaderAndThatIsTold) {
  const auto splits = Open("0,1,2\n5,6,1\n7,8,0\n");
  ASSERT_TRUE(splits.ok()) << Message(splits);
  EXPECT_EQ(Values(*splits->train, "features"), (Doubles{5, 6, 7, 8}));
  EXPECT_EQ(Values(*splits->train, "label"), (Doubles{1, 0}));
  EXPECT_EQ(splits->notes,
            (std::vector<std::string>{
                "csv:" + folder_.path() +
                "/t.csv: the first line, 0,1,2, numbers the columns: it is read as their names, "
                "not as a sample. hint: if it is one, put a line of names above it"}));
  EXPECT_THAT(Open("0,1,2,3,4,5\n5,6,1,1,1,1\n")->notes,
              testing::ElementsAre(testing::HasSubstr("the first line, 0,1,2,3,..., numbers")));
}

TEST_F(CsvTest, OtherNumbersAreASampleAndNothingIsTold) {
  for (const std::string first : {"0,1,3", "1,2,3", "0,1.0,2", "0, 1 ,02", "-0,1,2", "0"}) {
    const auto splits = Open(first + "\n");
    ASSERT_TRUE(splits.ok()) << Message(splits);
    EXPECT_EQ(splits->train->size(), 1) << first;
    EXPECT_TRUE(splits->notes.empty()) << first;
  }
  const auto named = Open("a,b,c\n0,1,2\n");
  EXPECT_EQ(named->train->size(), 1);
  EXPECT_TRUE(named->notes.empty());
}

TEST_F(CsvTest, AFirstColumnWithoutANameIsRowLabelsAndThatIsTold) {
  for (const std::string header : {",0,1,2", ",a,b,c", "Unnamed: 0,a,b,c", "\"\",\"a\",b,y"}) {
    const auto splits = Open(header + "\n0,5,6,1\nsecond,7,8,0\n");
    ASSERT_TRUE(splits.ok()) << header << Message(splits);
    EXPECT_EQ(Values(*splits->train, "features"), (Doubles{5, 6, 7, 8})) << header;
    EXPECT_EQ(Values(*splits->train, "label"), (Doubles{1, 0})) << header;
    EXPECT_EQ(splits->notes,
              (std::vector<std::string>{"csv:" + folder_.path() +
                                        "/t.csv: column 1 has no name: it is taken for row labels "
                                        "and left out. hint: give it a name if it is data"}));
  }
  const SourcePtr one = Load(",a\n0,5\n1,6\n");
  EXPECT_EQ(one->fields().size(), 1U);
  EXPECT_EQ(Values(*one, "features"), (Doubles{5, 6}));
}

TEST_F(CsvTest, ReadsFractionsAsRegressionOnlyWhenNamed) {
  const SourcePtr named = Load("a,y\n1,0.5\n2,1\n");
  EXPECT_EQ(named->fields()[1], (Field{"label", {DType::kF32, {}}, 0}));
  const SourcePtr unnamed = Load("1,0.5\n2,1\n");
  EXPECT_EQ(unnamed->fields().size(), 1U);
  EXPECT_EQ(unnamed->fields()[0].type, (TensorType{DType::kF32, {2}}));
}

TEST_F(CsvTest, ReadsEveryLineEndQuotesBlanksAndMarks) {
  const Doubles expected{1, 2, 3, 4};
  for (const std::string text :
       {"1,2,0\n3,4,1", "1,2,0\r\n3,4,1\r\n", "1,2,0\r3,4,1\r",
        "\xEF\xBB\xBF"
        "1,2,0\n3,4,1\n",
        "\"1\",\"2\",\"0\"\n3,4,\"1\"\n", " 1 ,\t2,0 \n\n\n3, +4 ,1\n\n", "a,b,c\n1,2,0\n3,4,1\n",
        "\"a \"\"quoted\"\"\r\n, name\",b,c\n1,2,0\n3,4,1\n"}) {
    const SourcePtr source = Load(text);
    EXPECT_EQ(Values(*source, "features"), expected) << text;
    EXPECT_EQ(Values(*source, "label"), (Doubles{0, 1})) << text;
  }
}

TEST_F(CsvTest, ReadsGzipAndFilesLargerThanItsBuffer) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i) + ".25," + std::to_string(i % 3) + "\n";
  for (const std::string& bytes : {text, Gzip(text)}) {
    const SourcePtr source = Load(bytes);
    ASSERT_EQ(source->size(), 20000);
    EXPECT_EQ(Values(*source, "features")[19999], 19999.25);
    EXPECT_EQ(Values(*source, "label")[19999], 19999 % 3);
  }
}

TEST_F(CsvTest, NamesLineAndColumnOfABadCell) {
  ExpectBad("1,2,0\n3,x,1\n", ":2: column 2: 'x' is not a number");
  ExpectBad("a,b,y\n1,2,0\n\n3,4 5,1\n", ":4: column 2 ('b'): '4 5' is not a number");
  ExpectBad("1,2,0\n3,,1\n", ":2: column 2: is empty, should be a number");
  ExpectBad("1,2,0\n3,nan,1\n", ":2: column 2: 'nan' is not a finite number");
  ExpectBad("1,2,0\n3,1e300,1\n", ":2: column 2: '1e300' is too large for f32");
}

TEST_F(CsvTest, RefusesLinesOfOtherLengths) {
  ExpectBad("1,2,0\n3,4\n", ":2: has 2 cells, the first line has 3");
  ExpectBad("1,2,0\n3,4,5,6\n", ":2: has 4 cells, the first line has 3");
}

TEST_F(CsvTest, RefusesBrokenQuotes) {
  ExpectBad("1,2,0\n3,\"4,1\n", ":2: a quote is not closed");
  ExpectBad("1,2,0\n3,\"4\"5,1\n", ":2: text follows a closing quote");
  ExpectBad("1," + std::string(5000, '7') + "\n", ":1: a cell is longer than 4096 characters");
}

TEST_F(CsvTest, RefusesFilesWithoutSamples) {
  ExpectBad("", ": is empty");
  ExpectBad("\n\n", ": is empty");
  ExpectBad("a,b,y\n", ": has a header line and 0 samples, at least 1 is needed");
}

TEST_F(CsvTest, TellsOfBinaryFilesWithoutACrash) {
  std::string bytes;
  for (int i = 0; i < 3000; ++i) bytes.push_back(static_cast<char>(i * 131 + i / 7));
  EXPECT_EQ(Open(bytes).status().code(), ErrorCode::kInvalidData);
}

}  // namespace
}  // namespace ridge
