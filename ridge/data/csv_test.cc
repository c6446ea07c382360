#include "ridge/data/csv.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "ridge/data/test_files.h"

namespace ridge {
namespace {

constexpr char kPlain[] = ",standardize=no";
constexpr char kIsLast[] = "the label is the last column, '";

class CsvTest : public testing::Test {
 protected:
  // Numbers as they are, unless `options` say otherwise.
  Result<DataSplits> Open(const std::string& text, const std::string& options = kPlain,
                          const DataOptions& data = {}) {
    return OpenData("csv:" + folder_.Write("t.csv", text) + options, data);
  }
  SourcePtr Load(const std::string& text, const std::string& options = kPlain) {
    const auto splits = Open(text, options);
    if (!splits.ok()) ADD_FAILURE() << Message(splits);
    return splits.ok() ? splits->train : CountingSource(1);
  }
  void ExpectBad(const std::string& text, const std::string& expected,
                 const std::string& options = "") {
    const auto splits = Open(text, options);
    ASSERT_FALSE(splits.ok()) << text;
    EXPECT_EQ(splits.status().code(), ErrorCode::kInvalidData);
    EXPECT_EQ(Message(splits), folder_.path() + "/t.csv" + expected);
  }
  void ExpectNotes(const Result<DataSplits>& splits, const std::vector<std::string>& expected,
                   const std::string& options = "") {
    ASSERT_TRUE(splits.ok()) << Message(splits);
    std::vector<std::string> notes;
    for (const std::string& note : expected)
      notes.push_back("csv:" + folder_.path() + "/t.csv" + options + ": " + note);
    EXPECT_EQ(splits->notes, notes);
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

TEST_F(CsvTest, TheOriginOfARowIsItsLine) {
  const SourcePtr source = Load("a,b,label\n1,2,0\n\n3,4,1\n\"5\",6,1\n");
  EXPECT_EQ(source->Origin(0), folder_.path() + "/t.csv:2");
  EXPECT_EQ(source->Origin(1), folder_.path() + "/t.csv:4");
  const Result<SourcePtr> last = TakeLast(source, 1);
  ASSERT_TRUE(last.ok()) << Message(last);
  EXPECT_EQ((*last)->Origin(0), folder_.path() + "/t.csv:5");
}

TEST_F(CsvTest, ReadsALabelInTheLastColumn) {
  const SourcePtr source = Load("1,2.5,0\n-3,4e1,2\n");
  EXPECT_EQ(source->size(), 2);
  EXPECT_EQ(source->fields()[0], (Field{"features", {DType::kF32, {2}}, 0}));
  EXPECT_EQ(source->fields()[1], (Field{"label", {DType::kI64, {}}, 3}));
  EXPECT_EQ(Values(*source, "features"), (Doubles{1, 2.5, -3, 40}));
  EXPECT_EQ(Values(*source, "label"), (Doubles{0, 2}));
  EXPECT_EQ(source->resident_bytes(), 2 * 2 * 4 + 2 * 8 + 2 * 4);  // and the lines
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
  const auto splits = Open("0,1,label\n0,1,2\n5,6,1\n", ",label=label");
  EXPECT_EQ(splits->train->size(), 2);
  const auto numbered = Open("0,1,2\n5,6,1\n7,8,0\n", ",label=2,standardize=no");
  ExpectNotes(numbered,
              {"the first line, 0,1,2, numbers the columns: it is read as their names, not as a "
               "sample. hint: if it is one, add ,header=no"},
              ",label=2,standardize=no");
  EXPECT_EQ(Values(*numbered->train, "features"), (Doubles{5, 6, 7, 8}));
  EXPECT_EQ(Values(*numbered->train, "label"), (Doubles{1, 0}));
  EXPECT_THAT(Open("0,1,2,3,4,5\n5,6,1,1,1,1\n")->notes[0],
              testing::HasSubstr("the first line, 0,1,2,3,..., numbers"));
}

TEST_F(CsvTest, OtherNumbersAreASampleAndNothingIsTold) {
  for (const std::string first : {"0,1,3", "1,2,3", "0,1.0,2", "0, 1 ,02", "-0,1,2", "0"}) {
    const auto splits = Open(first + "\n");
    ASSERT_TRUE(splits.ok()) << Message(splits);
    EXPECT_EQ(splits->train->size(), 1) << first;
    EXPECT_TRUE(splits->notes.empty()) << first;
  }
  const auto named = Open("a,b,label\n0,1,2\n");
  EXPECT_EQ(named->train->size(), 1);
  EXPECT_TRUE(named->notes.empty());
}

TEST_F(CsvTest, AFirstColumnWithoutANameIsRowLabelsAndThatIsTold) {
  for (const std::string header : {",a,b,label", "Unnamed: 0,a,b,y", "\"\",\"a\",b,y"}) {
    const auto splits = Open(header + "\n0,5,6,1\nsecond,7,8,0\n", "");
    ExpectNotes(splits, {"column 1 has no name: it is taken for row labels and left out. hint: "
                         "give it a name if it is data"});
    EXPECT_EQ(Values(*splits->train, "features"), (Doubles{-1, -1, 1, 1})) << header;
    EXPECT_EQ(Values(*splits->train, "label"), (Doubles{1, 0})) << header;
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

std::string Repeated(const std::string& line, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += line;
  return text;
}

TEST_F(CsvTest, NamesLineAndColumnOfABadCell) {
  const std::string spec = "csv:" + folder_.path() + "/t.csv";
  const std::string hint =
      " of 10 cells of this column are. hint: an empty cell is a missing "
      "value; ";
  ExpectBad(Repeated("1,2,0\n", 9) + "3,x,1\n",
            ":10: column 2: 'x' is not a number; 9" + hint + spec +
                ",category=2 takes the column for words, " + spec + ",drop=2 leaves it out");
  ExpectBad("a,b,y\n1,2,0\n\n3,4 5,1\n" + Repeated("1,2,0\n", 8),
            ":4: column 2 ('b'): '4 5' is not a number; 9" + hint + spec +
                ",category=b takes the column for words, " + spec + ",drop=b leaves it out");
  ExpectBad("1,2,0\n3,inf,1\n", ":2: column 2: 'inf' is not a finite number");
  ExpectBad("1,2,0\n3,1e300,1\n", ":2: column 2: '1e300' is too large for f32");
}

TEST_F(CsvTest, RefusesLinesOfOtherLengths) {
  ExpectBad("1,2,0\n3,4\n", ":2: has 2 cells, the first line has 3");
  ExpectBad("1,2,0\n3,4,5,6\n", ":2: has 4 cells, the first line has 3");
}

TEST_F(CsvTest, RefusesBrokenQuotes) {
  ExpectBad("1,2,0\n3,\"4,1\n", ":2: a quote is not closed");
  ExpectBad("1,2,0\n3,\"4\"5,1\n", ":2: text follows a closing quote");
  ExpectBad("1," + std::string(70000, '7') + "\n", ":1: a cell is longer than 65536 characters");
}

TEST_F(CsvTest, RefusesFilesWithoutSamples) {
  ExpectBad("", ": is empty");
  ExpectBad("\n\n", ": is empty");
  ExpectBad("a,b,y\n", ": has a header line and 0 samples, at least 1 is needed");
}

TEST_F(CsvTest, FindsTheDelimiter) {
  for (const std::string mark : {",", ";", "\t", "|"}) {
    const SourcePtr source = Load("a" + mark + "b" + mark + "label\n1" + mark + " 2 " + mark +
                                  "0\n\"3\"" + mark + "4" + mark + "1\n");
    EXPECT_EQ(Values(*source, "features"), (Doubles{1, 2, 3, 4})) << mark;
    EXPECT_EQ(Values(*source, "label"), (Doubles{0, 1})) << mark;
  }
  // Others may stand in cells, with or without quotes.
  const SourcePtr text = Load("a,t,label\n1,x;y,0\n2,x,1\n3,\"p,q\",0\n");
  EXPECT_EQ(Values(*text, "features"), (Doubles{1, 0, 0, 1, 2, 0, 1, 0, 3, 1, 0, 0}));
}

TEST_F(CsvTest, DecimalCommasAreFoundAndToldOf) {
  const auto splits = Open("a;b;label\n1,5;-2;0\n3;4,25e1;1\n");
  ExpectNotes(splits, {"numbers are read with a decimal comma"}, kPlain);
  EXPECT_EQ(Values(*splits->train, "features"), (Doubles{1.5, -2, 3, 42.5}));
  const SourcePtr points = Load("a;label\n1.5;0\n2;1\n");
  EXPECT_EQ(Values(*points, "features"), (Doubles{1.5, 2}));
  EXPECT_TRUE(Open("1.5\t0\n2.5\t1\n", ",delimiter=tab,decimal=point").ok());
}

TEST_F(CsvTest, AHeaderIsALineOfTextsAboveNumbers) {
  EXPECT_EQ(Load("5.1,3.5,setosa\n4.9,3,virginica\n")->size(), 2);
  EXPECT_EQ(Load("length,width,species\n5.1,3.5,setosa\n4.9,3,setosa\n")->size(), 2);
  EXPECT_EQ(Load("NA,3.5,setosa\n4.9,3,virginica\n")->size(), 2);
  const auto words = Open("cap,odor,label\nx,n,e\nx,y,p\n", "");
  EXPECT_EQ(words->train->size(), 2);
  ExpectNotes(words, {"the first line is read as the columns' names. hint: if it is not, add "
                      ",header=no"});
  const auto letters = Open("x,n,e\nx,y,p\n", "");
  EXPECT_EQ(letters->train->size(), 2);
  ExpectNotes(letters, {"the first line is read as a sample. hint: if it is not, add ,header=yes"});
  ExpectNotes(Open("x,n,e\nx,y,p\n", ",header=yes,label=e"), {}, ",header=yes,label=e");
}

TEST_F(CsvTest, WordsAreClassesSortedByBytes) {
  const auto splits = Open("a,species\n1,virginica\n2,Setosa\n3,virginica\n");
  EXPECT_EQ(splits->train->fields()[1], (Field{"label", {DType::kI64, {}}, 2}));
  EXPECT_EQ(Values(*splits->train, "label"), (Doubles{1, 0, 1}));
  EXPECT_EQ(splits->preprocessing->classes, (std::vector<std::string>{"Setosa", "virginica"}));
  EXPECT_EQ(splits->sizes, (std::vector<ModelSize>{{"inputs", 1}, {"classes", 2}}));
}

TEST_F(CsvTest, TheLabelIsTheOneThatIsNamedElseTheLastThatCanBeOne) {
  const std::string text = "kind,a,b\nx,1,0\ny,2,1\n";
  EXPECT_EQ(Values(*Load(text, ",label=kind,standardize=no"), "label"), (Doubles{0, 1}));
  EXPECT_EQ(Values(*Load("species,a,b\nx,1,0\ny,2,1\n"), "label"), (Doubles{0, 1}));
  ExpectNotes(Open(text, ""), {std::string(kIsLast) + "b'. hint: csv:" + folder_.path() +
                               "/t.csv,label=NAME names another"});
  EXPECT_EQ(Load(text, ",label=none")->FindField("label"), -1);
  EXPECT_EQ(Open(text, ",label=c").status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Message(Open(text, ",label=c")), "data 'csv:" + folder_.path() +
                                                 "/t.csv,label=c': no column 'c' (it has: "
                                                 "kind,a,b)");
}

TEST_F(CsvTest, WordsAndTruthValuesAreFeatures) {
  const auto splits = Open("color,on,label\nred,yes,0\nblue,No,1\nred,TRUE,1\n");
  EXPECT_EQ(Values(*splits->train, "features"), (Doubles{0, 1, 1, 1, 0, 0, 0, 1, 1}));
  const std::vector<TableColumn>& columns = splits->preprocessing->table->columns;
  EXPECT_EQ(columns[0].kind, ColumnKind::kCategory);
  EXPECT_EQ(columns[0].values, (std::vector<std::string>{"blue", "red"}));
  EXPECT_EQ(columns[1].kind, ColumnKind::kBoolean);
  const SourcePtr zip = Load("zip,label\n20095,0\n10115,1\n", ",category=zip");
  EXPECT_EQ(Values(*zip, "features"), (Doubles{0, 1, 1, 0}));
}

TEST_F(CsvTest, NumbersAreStandardizedAndConstantOnesAreZero) {
  const auto splits = Open("a,b,label\n1,7,0\n3,7,1\n5,7,0\n7,7,1\n", "");
  const double deviation = std::sqrt(5.0);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(static_cast<float>(Values(*splits->train, "features")[2 * i]),
                    static_cast<float>((2 * i - 3) / deviation));
    EXPECT_EQ(Values(*splits->train, "features")[2 * i + 1], 0);
  }
  EXPECT_EQ(splits->preprocessing->table->columns[0].mean, 4);
  EXPECT_DOUBLE_EQ(splits->preprocessing->table->columns[0].std, deviation);
}

TEST_F(CsvTest, EmptyCellsAreTheMeanAndOneMoreFeatureTells) {
  for (const std::string missing : {"", "NA", "n/a", "NaN", "null", "?"}) {
    const SourcePtr source = Load("a,c,label\n1,x,0\n" + missing + ",y,1\n5," + missing + ",1\n");
    EXPECT_EQ(Values(*source, "features"), (Doubles{1, 0, 1, 0, 0,  //
                                                    3, 1, 0, 1, 0,  //
                                                    5, 0, 0, 0, 1}))
        << missing;
  }
  const SourcePtr standardized = Load("a,label\n1,0\n,1\n5,1\n", "");
  EXPECT_EQ(Values(*standardized, "features"), (Doubles{-1, 0, 0, 1, 1, 0}));
}

TEST_F(CsvTest, RowsWithoutALabelAreLeftOut) {
  const auto splits = Open("a,label\n1,x\n2,\n3,y\n", "");
  EXPECT_EQ(splits->train->size(), 2);
  ExpectNotes(splits, {"1 row without 'label': left out"});
  EXPECT_EQ(Load("a,b\n1,x\n2,\n3,y\n")->size(), 2);  // the label is found at the end
  ExpectBad("a,label\n1,\n2,\n", ": no row has a label: column 2 ('label') is empty");
}

TEST_F(CsvTest, RowNumbersDatesAndFreeTextAreLeftOutAndThatIsTold) {
  std::string text = "PassengerId,a,born,name,none,label\n";
  for (int i = 0; i < 12; ++i)
    text += fmt::format("{},{},2001-02-{:02},n{},,{}\n", i + 1, i * i, i + 1, i, i % 2);
  const auto splits = Open(text, "");
  const std::string spec = "csv:" + folder_.path() + "/t.csv";
  ExpectNotes(splits, {"left out: 'PassengerId' numbers the rows, 'born' holds dates, 'name' has "
                       "12 different texts, 'none' is empty. hint: " +
                       spec + ",category=NAME or ,number=NAME keeps a column"});
  EXPECT_EQ(splits->sizes, (std::vector<ModelSize>{{"inputs", 1}, {"classes", 2}}));
  EXPECT_EQ(Open(text, ",number=PassengerId,category=name,drop=born")->sizes[0].value, 14);
  ExpectBad("a\n2001-02-03\n2002-03-04\n", ": no column is a feature or a label; 'a' holds dates",
            ",header=yes");
}

TEST_F(CsvTest, OptionsAreChecked) {
  const std::string start = "data 'csv:" + folder_.path() + "/t.csv";
  EXPECT_EQ(Message(Open("1,0\n", ",delimeter=tab")),
            start +
                ",delimeter=tab': no option 'delimeter' (it takes: delimiter, decimal, header, "
                "label, drop, category, number, standardize)");
  EXPECT_EQ(Message(Open("1,0\n", ",header=maybe")),
            start + ",header=maybe': header is 'maybe'; it must be one of yes, no");
  EXPECT_EQ(Message(Open("1,0\n", ",drop=")), start +
                                                  ",drop=': drop= names no column. hint: "
                                                  "drop=NAME");
}

TEST_F(CsvTest, AnotherFileGoesThroughTheSamePreprocessing) {
  const std::string train = "a,color,species\n1,red,x\n3,blue,y\n";
  const auto trained = Open(train, "");
  DataOptions known;
  known.preprocessing = trained->preprocessing;
  // Columns in another order, one more of them, and another mean.
  const auto other = Open("more,species,color,a\n9,y,red,5\n9,y,green,\n9,x,,1\n", "", known);
  ExpectNotes(other,
              {"1 cell of 'a' empty, which none of the training data is: read as the mean",
               "1 cell of 'color' with no value of the training data, such as 'green': no category "
               "there",
               "1 cell of 'color' empty, which none of the training data is: no category there"});
  EXPECT_EQ(Values(*other->train, "features"), (Doubles{3, 0, 1, 0, 0, 0, -1, 0, 0}));
  EXPECT_EQ(Values(*other->train, "label"), (Doubles{1, 1, 0}));
  EXPECT_EQ(Message(Open("color,species\nred,x\nred,y\n", ",header=yes", known)),
            folder_.path() +
                "/t.csv: no column 'a', which is a feature of the training data; it "
                "has: color, species");
  EXPECT_EQ(Message(Open("a,color,species\n1,red,z\n2,red,x\n", "", known)),
            folder_.path() +
                "/t.csv:2: column 3 ('species'): 'z' is no class of the training "
                "data: x, y");
}

// The rows that are held out, by their first feature.
std::vector<double> HeldOut(const DataSplits& splits, std::vector<double> features) {
  const auto first = static_cast<size_t>(splits.train->fields()[0].type.elements());
  std::vector<double> rows;
  for (size_t i = 0; i < features.size(); i += first) rows.push_back(features[i]);
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST_F(CsvTest, HoldsOutByContent) {
  DataOptions data;
  data.hold_out = 0.2;
  std::vector<std::string> lines;
  for (int i = 0; i < 500; ++i) lines.push_back(fmt::format("{}.5,{}\n", i, i % 3));
  std::string text, reversed = "1000.5,0\n";
  for (const std::string& line : lines) {
    text += line;
    reversed = line + line + reversed;  // duplicates, and one row more
  }
  const auto splits = Open(text, kPlain, data);
  const auto held_out = HeldOut(*splits, Values(*splits->validation, "features"));
  EXPECT_EQ(splits->train->size() + splits->validation->size(), 500);
  EXPECT_NEAR(static_cast<double>(held_out.size()), 100, 30);
  const auto again = Open(reversed, kPlain, data);
  auto twice = HeldOut(*again, Values(*again->validation, "features"));
  std::erase(twice, 1000.5);
  std::vector<double> expected = held_out;
  expected.insert(expected.end(), held_out.begin(), held_out.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(twice, expected);
  EXPECT_EQ(splits->resident_bytes(), 500 * (4 + 8 + 4));
}

TEST_F(CsvTest, StatisticsAreThoseOfTheTrainingPart) {
  DataOptions data;
  data.hold_out = 0.5;
  const auto plain = Open("1,0\n2,1\n4,0\n8,1\n16,0\n32,1\n", kPlain, data);
  double sum = 0;
  for (const double x : Values(*plain->train, "features")) sum += x;
  const auto splits = Open("1,0\n2,1\n4,0\n8,1\n16,0\n32,1\n", "", data);
  EXPECT_DOUBLE_EQ(splits->preprocessing->table->columns[0].mean,
                   sum / static_cast<double>(plain->train->size()));
  EXPECT_GT(splits->validation->size(), 0);
}

TEST_F(CsvTest, SmallTablesHoldOutOneSampleAndEqualSamplesNone) {
  DataOptions data;
  for (const double fraction : {1e-9, 1 - 1e-9}) {
    data.hold_out = fraction;
    const auto splits = Open("1,0\n2,1\n4,0\n", kPlain, data);
    EXPECT_EQ((fraction < 0.5 ? splits->validation : splits->train)->size(), 1);
  }
  EXPECT_EQ(Message(Open("1,0\n1,0\n", kPlain, data)),
            folder_.path() + "/t.csv: all samples are equal: none can be held out for validation");
}

TEST_F(CsvTest, BytesThatAreNoUtf8AreLatin1) {
  const auto splits = Open("caf\xE9,label\n1,M\xFCnchen\n2,Z\xC3\xBCrich\n");
  EXPECT_EQ(splits->preprocessing->classes,
            (std::vector<std::string>{"M\xC3\xBCnchen", "Z\xC3\xBCrich"}));
  EXPECT_EQ(splits->preprocessing->table->columns[0].name, "caf\xC3\xA9");
}

TEST_F(CsvTest, HostileFilesAreRefusedOrRead) {
  ExpectBad(std::string(10 << 20, 'x'), ":1: a cell is longer than 65536 characters");
  ExpectBad(Repeated("1,", 1 << 20) + "1\n", ":1: a line has more than 1048576 cells");
  EXPECT_TRUE(Open(Repeated("1,", 99'999) + "1\n" + Repeated("2,", 99'999) + "0\n").ok());
  EXPECT_TRUE(Open(std::string("a\0b,0\nc,1\n", 10)).ok());
  EXPECT_EQ(Message(OpenData("csv:" + folder_.path())),
            folder_.path() + ": is a folder, not a file");
}

TEST_F(CsvTest, TellsOfBinaryFilesWithoutACrash) {
  std::string bytes;
  for (int i = 0; i < 3000; ++i) bytes.push_back(static_cast<char>(i * 131 + i / 7));
  EXPECT_EQ(Open(bytes).status().code(), ErrorCode::kInvalidData);
}

}  // namespace
}  // namespace ridge
