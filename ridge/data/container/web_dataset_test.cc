#include "ridge/data/container/web_dataset.h"

#include <set>

#include "ridge/data/container/test_containers.h"
#include "ridge/data/npy.h"

namespace ridge {
namespace {

std::string Npy(const std::vector<float>& values) {
  return NpyHeader({DType::kF32, {static_cast<int64_t>(values.size())}}) +
         Raw(values.data(), values.size() * sizeof(float));
}

class WebDatasetTest : public ContainerTest {
 protected:
  Result<DataSplits> OpenFile(const std::string& bytes, const std::string& options = "",
                              double hold_out = 0) {
    Put("a.tar", bytes);
    return Open("tar", "a.tar" + options, hold_out);
  }
  std::string Error(const std::string& bytes, const std::string& options = "") {
    return Plain(Message(OpenFile(bytes, options)));
  }
  // Labels of an archive, or the message.
  std::string Labels(const std::string& bytes, const std::string& options = "") {
    const auto splits = OpenFile(bytes, options);
    if (!splits.ok()) return Plain(splits.status().message());
    std::string text;
    for (const int64_t label : LabelsOf(*splits->train)) text += std::to_string(label) + " ";
    for (const std::string& name : splits->preprocessing->classes) text += name + " ";
    return text;
  }
};

TEST_F(WebDatasetTest, MembersOfOneNameAreASample) {
  const std::string photo = GoldenFile("pictures/420.jpg"),
                    drawing = GoldenFile("pictures/2-8.png");
  Put("photos/a/1.jpg", photo);
  Put("photos/a/2.jpg", drawing);
  const auto splits =
      OpenFile(Member("d/", "", '5') + Member("d.x/1.JPG", photo) + Member("d.x/1.cls", " 3\n") +
               Member("d.x/1.x.npy", Npy({1, 2})) + Member("d.x/1.txt", "hello") +
               Member("README", "?") + Member("__meta.json", "{}") + Member("d.x/2.cls", "0") +
               Member("d.x/2.jpg", drawing) + Member("d.x/2.x.npy", Npy({3, 4})) + TarEnd());
  const auto folder = Open("images", "photos");
  ASSERT_TRUE(splits.ok() && folder.ok()) << splits.status().message();
  const Source& source = *splits->train;
  EXPECT_EQ(FieldTexts(source), "image u8[8,8,3], x f32[2], label i64[]");
  EXPECT_EQ(LabelsOf(source), (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(ReadAs<float>(source, 1, "x"), (std::vector<float>{3, 4}));
  for (int64_t i = 0; i < 2; ++i)
    EXPECT_EQ(ReadAs<uint8_t>(source, i, "image"), ReadAs<uint8_t>(*folder->train, i, "image"));
  EXPECT_EQ(splits->sizes, (std::vector<ModelSize>{{"classes", 4}}));
  ASSERT_EQ(splits->notes.size(), 1);
  EXPECT_EQ(Plain(splits->notes[0]), "tar:DIR/a.tar: parts of the samples left out: txt");
}

TEST_F(WebDatasetTest, LabelsAreNumbersOrNamesOfClasses) {
  EXPECT_EQ(Labels(Member("1.cls", "7") + Member("2.cls", "-0") + TarEnd()), "7 0 ");
  EXPECT_EQ(Labels(Member("1.cls", "dog") + Member("2.cls", "3") + Member("3.cls", "cat\n") +
                   Member("4.cls", "dog") + TarEnd()),
            "2 0 1 2 3 cat dog ");
}

TEST_F(WebDatasetTest, AJsonHasTheLabelWhenAKeyIsGiven) {
  const std::string archive = Member("1.json", R"({"kind": "dog", "a": {"n": 3}, "f": 0.5})") +
                              Member("1.cls", "9") + TarEnd();
  EXPECT_EQ(Labels(archive), "9 ");
  EXPECT_EQ(Labels(archive, ",json=kind"), "0 dog ");
  EXPECT_EQ(Labels(archive, ",json=a.n"), "3 ");
  const std::string place = "DIR/a.tar: sample '1' at byte 0: ";
  EXPECT_EQ(Labels(archive, ",json=b"), place + "its json has no 'b'");
  EXPECT_EQ(Labels(archive, ",json=f.n"), place + "its json has no 'f.n'");
  EXPECT_EQ(Labels(archive, ",json=f"), place + "'f' of its json is neither a text nor an integer");
  EXPECT_EQ(Labels(Member("1.json", "{") + TarEnd(), ",json=f"), place + "its json is malformed");
  EXPECT_EQ(Labels(Member("1.cls", "1") + TarEnd(), ",json=f"), place + "has no part json");
}

TEST_F(WebDatasetTest, LongNamesAndSizesOfAllForms) {
  const std::string key(300, 'n');
  const auto gnu = [&](const std::string& suffix) {
    return Member("././@LongLink", key + suffix + std::string(1, '\0'), 'L');
  };
  EXPECT_EQ(Labels(gnu(".cls") + Member("cut", "4") + gnu(".txt") + Member("cut", "") + TarEnd()),
            "4 ");
  const auto pax = [](const std::string& record, char type = 'x') {
    std::string text = " " + record + "\n";
    const size_t bytes = text.size() + (text.size() + 2 < 100 ? 2 : 3);
    return Member("pax", std::to_string(bytes) + text, type);
  };
  EXPECT_EQ(
      Labels(pax("comment=x", 'g') + pax("path=" + key + ".cls") + Member("cut", "5") + TarEnd()),
      "5 ");
  EXPECT_EQ(Labels(pax("size=000000001") + HeaderBlock({"1.cls", 0}) + Padded("6") + TarEnd()),
            "6 ");
  const std::string base256 = "\x80" + std::string(10, '\0') + "\1";
  EXPECT_EQ(Labels(HeaderBlock({"1.cls", 0, '0', base256}) + Padded("7") + TarEnd()), "7 ");
  EXPECT_EQ(Labels(HeaderBlock({"1.cls", 1, '0', "", "folder"}) + Padded("8") + TarEnd()), "8 ");
  EXPECT_EQ(Labels(Gzip(Member("1.cls", "9") + TarEnd())), "9 ");
}

TEST_F(WebDatasetTest, SetsAreByNameAndHeldOutByKey) {
  Put("train-000.tar", Member("1.cls", "cat") + Member("2.cls", "dog") + TarEnd());
  Put("val-000.tar", Member("1.cls", "dog") + TarEnd());
  const auto sets = Open("tar", "{train,val}-000.tar");
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(LabelsOf(*sets->validation), std::vector<int64_t>{1});
  Put("val-000.tar", Member("1.cls", "emu") + TarEnd());
  EXPECT_EQ(Plain(Message(Open("tar", "*-000.tar"))),
            "DIR/val-000.tar: label 'emu' is none of the classes: cat, dog");
  std::string archive;
  for (int i = 0; i < 100; ++i) {
    archive += Member(std::to_string(i) + ".cls", std::to_string(i)) +
               Member(std::to_string(i) + ".npy", Npy({static_cast<float>(i)}));
  }
  const auto split = OpenFile(archive + TarEnd(), "", 0.3);
  ASSERT_TRUE(split.ok()) << split.status().message();
  std::set<int64_t> seen;
  for (const SourcePtr& part : {split->train, split->validation}) {
    EXPECT_GT(part->size(), 15);
    for (int64_t i = 0; i < part->size(); ++i) {
      const int64_t label = ReadAs<int64_t>(*part, i, "label")[0];
      EXPECT_EQ(ReadAs<float>(*part, i, "data")[0], static_cast<float>(label));
      seen.insert(label);
    }
  }
  EXPECT_EQ(seen.size(), 100);
}

TEST_F(WebDatasetTest, NumbersAndNamesDoNotMix) {
  Put("train-000.tar", Member("1.cls", "1") + TarEnd());
  Put("val-000.tar", Member("1.cls", "dog") + TarEnd());
  EXPECT_EQ(Plain(Message(Open("tar", "*-000.tar"))),
            "tar:DIR/*-000.tar: the labels of DIR/val-000.tar are names, those to train on are "
            "numbers");
}

TEST_F(WebDatasetTest, OfSeveralPicturesOneIsChosen) {
  const std::string photo = GoldenFile("pictures/420.jpg");
  const std::string archive = Member("1.in.jpg", photo) + Member("1.mask.png", photo) + TarEnd();
  EXPECT_EQ(Error(archive),
            "DIR/a.tar: sample '1' at byte 0: has several pictures: in.jpg, mask.png. hint: "
            "image=in.jpg");
  const auto splits = OpenFile(archive, ",image=in.jpg");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(FieldTexts(*splits->train), "image u8[8,8,3]");
}

TEST_F(WebDatasetTest, WhatIsKnownBeforeTheModel) {
  Put("a.tar", Member("1.jpg", GoldenFile("pictures/420.jpg")) + Member("1.cls", "4") + TarEnd());
  const auto facts = FactsBeforeModel("tar:" + Path("a.tar"));
  ASSERT_TRUE(facts.ok() && *facts) << facts.status().message();
  EXPECT_EQ((*facts)->fields.size(), 1);
  EXPECT_EQ((*facts)->sizes, (std::vector<ModelSize>{{"classes", 5}}));
  const auto sized = FactsBeforeModel("tar:" + Path("a.tar,size=7,classes=9"));
  ASSERT_TRUE(sized.ok()) << sized.status().message();
  EXPECT_EQ(TypeToString((*sized)->fields[0].type), "u8[7,7,3]");
  EXPECT_EQ((*sized)->sizes, (std::vector<ModelSize>{{"classes", 9}}));
}

TEST_F(WebDatasetTest, DamagedArchivesAreNamedWithMemberAndByte) {
  const std::string good = Member("1.cls", "1") + Member("2.cls", "2");
  EXPECT_EQ(Error(""), "DIR/a.tar: is empty");
  EXPECT_EQ(Error("hello"), "DIR/a.tar: is no tar archive");
  EXPECT_EQ(Error(std::string(2000, 'x')), "DIR/a.tar: is no tar archive");
  EXPECT_EQ(Error(TarEnd()), "DIR/a.tar: is no tar archive");
  EXPECT_EQ(Error(good),
            "DIR/a.tar: at byte 2048: the archive is cut off: its end has no mark, 0 "
            "bytes are left");
  EXPECT_EQ(Error(good.substr(0, 1100)),
            "DIR/a.tar: at byte 1024: the archive is cut off: its end has no mark, 76 bytes are "
            "left");
  EXPECT_EQ(Error(Member("1.cls", "1") + HeaderBlock({"2.jpg", 5000}) + "abc"),
            "DIR/a.tar: member '2.jpg' at byte 1024: has 5000 bytes, but the archive ends after 3 "
            "of them");
  const std::string huge = "\x80" + std::string(3, '\0') + "\x20" + std::string(7, '\0');
  EXPECT_EQ(Error(HeaderBlock({"2.jpg", 0, '0', huge}) + TarEnd()),
            "DIR/a.tar: member '2.jpg' at byte 0: has 2305843009213693952 bytes, but the archive "
            "ends after 1024 of them");
  const std::string negative(12, '\xFF');
  EXPECT_EQ(Error(HeaderBlock({"2.jpg", 0, '0', negative}) + TarEnd()),
            "DIR/a.tar: member '2.jpg' at byte 0: its size is no number");
  std::string flipped = good + TarEnd();
  flipped[1030] = '?';
  EXPECT_EQ(Error(flipped),
            "DIR/a.tar: at byte 1024: a member's header is damaged: its checksum is wrong");
  EXPECT_EQ(Error(good + TarEnd() + good + TarEnd()),
            "DIR/a.tar: at byte 2048: data follows the end of the archive: joined archives are not "
            "read");
  EXPECT_EQ(Error(Member("x", "4 a", 'x') + good + TarEnd()),
            "DIR/a.tar: member 'x' at byte 0: its pax header is malformed");
}

TEST_F(WebDatasetTest, LinksAndSparseFilesAreRefused) {
  const std::string link =
      "is a link, which is not read. hint: tar with --dereference and "
      "--hard-dereference";
  EXPECT_EQ(Error(Member("1.jpg", "", '1') + TarEnd()),
            "DIR/a.tar: member '1.jpg' at byte 0: " + link);
  EXPECT_EQ(Error(Member("../1.jpg", "", '2') + TarEnd()),
            "DIR/a.tar: member '../1.jpg' at byte 0: " + link);
  EXPECT_EQ(Error(Member("1.jpg", "", 'S') + TarEnd()),
            "DIR/a.tar: member '1.jpg' at byte 0: is a sparse file, which is not read");
  EXPECT_EQ(Error(Member("x", "22 GNU.sparse.major=1\n", 'x') + Member("1.cls", "") + TarEnd()),
            "DIR/a.tar: member '1.cls' at byte 1024: is a sparse file, which is not read");
}

TEST_F(WebDatasetTest, SamplesThatDifferFromTheFirstAreNamed) {
  const std::string first = Member("1.cls", "1") + Member("1.npy", Npy({1, 2}));
  const std::string place = "DIR/a.tar: sample '2' at byte 2048: ";
  const auto error = [&](const std::string& second) { return Error(first + second + TarEnd()); };
  EXPECT_EQ(error(Member("2.cls", "2")), place + "has no part npy");
  EXPECT_EQ(error(Member("2.npy", Npy({1, 2}))), place + "has no part cls");
  EXPECT_EQ(error(Member("2.cls", "2") + Member("2.npy", Npy({1}))),
            place + "its npy is f32[1], in the first sample it is f32[2]");
  EXPECT_EQ(error(Member("2.cls", "") + Member("2.npy", Npy({1, 2}))),
            place + "its label is empty");
  EXPECT_EQ(error(Member("2.cls", std::string(2000, '1')) + Member("2.npy", Npy({1, 2}))),
            place + "its cls has 2000 bytes, at most 1024 are read");
  EXPECT_EQ(error(Member("2.cls", "2") + Member("2.npy", Npy({1, 2}).substr(0, 100))),
            place + "its npy: is cut off within its .npy header");
  EXPECT_EQ(error(Member("2.cls", "2") + Member("2.npy", Npy({1, 2}) + "more")),
            place + "its npy declares f32[2], 8 bytes, but 12 follow");
  EXPECT_EQ(error(Member("2.cls", "2") + Member("2.CLS", "2")),
            "DIR/a.tar: member '2.CLS' at byte 3072: its sample has two parts 'cls'");
  EXPECT_EQ(error(Member("2.cls", "2") + Member("2.npy", Npy({1, 2})) + Member("1.jpg", "")),
            "DIR/a.tar: member '1.jpg' at byte 4096: sample '1' has begun before; its members must "
            "follow one another. hint: tar --sort=name");
  EXPECT_EQ(Error(Member("README", "x") + TarEnd()), "DIR/a.tar: holds no samples");
  EXPECT_EQ(Error(Member("1.txt", "x") + TarEnd()),
            "DIR/a.tar: sample '1' at byte 0: has no part that is read (jpg, jpeg, png, webp, cls, "
            "npy, json with json=KEY), only: txt");
}

TEST_F(WebDatasetTest, BadPicturesAreNamedWithTheirMember) {
  const std::string photo = GoldenFile("pictures/420.jpg");
  const auto splits =
      OpenFile(Member("1.jpg", photo) + Member("2.jpg", photo.substr(0, 1000)) + TarEnd());
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  std::vector<char> out(8 * 8 * 3);
  EXPECT_EQ(Plain(splits->train->ReadOne(1, 0, out.data()).message()),
            "DIR/a.tar: member '2.jpg' at byte 2560: its JPEG data is damaged: Premature end of "
            "JPEG file");
  EXPECT_EQ(Error(Member("1.jpg", "") + TarEnd()),
            "DIR/a.tar: sample '1' at byte 0: its jpg is empty");
}

TEST_F(WebDatasetTest, AReplacedFileIsNoticed) {
  const auto splits = OpenFile(Member("1.npy", Npy({1})) + TarEnd());
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  Put("a.tar", Member("1.npy", Npy({1})) + TarEnd() + TarEnd());
  float out = 0;
  EXPECT_EQ(Plain(splits->train->ReadOne(0, 0, &out).message()),
            "DIR/a.tar: has changed since the data was opened");
}

}  // namespace
}  // namespace ridge
