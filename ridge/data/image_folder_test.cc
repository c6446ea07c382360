#include "ridge/data/image_folder.h"

#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "ridge/core/files.h"
#include "ridge/data/batch_loader.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

std::string Golden(const std::string& name) {
  return *ReadFile(std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/golden/pictures/" + name);
}

class ImageFolderTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(folder_.File(path)).parent_path());
    folder_.Write(path, bytes);
  }
  void PutCatsAndDogs(const std::string& below) {
    Put(below + "dog/b.PNG", Golden("2-8.png"));
    Put(below + "dog/a.jpeg", Golden("420.jpg"));
    Put(below + "cat/deep/c.webp", Golden("lossy.webp"));
  }

  // The folder, and options behind it; its path in messages is "DIR".
  Result<DataSplits> Open(const std::string& options = "", const TensorType& image = kColor) {
    DataOptions data;
    data.model_inputs = {{"image", image}, {"label", {DType::kI64, {}}, 10}};
    return OpenData("images:" + folder_.path() + options, data);
  }
  std::string Error(const std::string& options = "", const TensorType& image = kColor) {
    return Plain(Message(Open(options, image)));
  }
  std::string Plain(std::string text) {
    for (size_t at = 0; (at = text.find(folder_.path())) != std::string::npos;)
      text.replace(at, folder_.path().size(), "DIR");
    return text;
  }

  inline static const TensorType kColor{DType::kF32, {3, 8, 8}};
  TempFolder folder_;
};

std::vector<int64_t> Labels(const Source& source) {
  std::vector<int64_t> labels(static_cast<size_t>(source.size()));
  for (int64_t i = 0; i < source.size(); ++i)
    EXPECT_TRUE(source.ReadOne(i, 1, &labels[static_cast<size_t>(i)]).ok());
  return labels;
}

std::vector<uint8_t> Image(const Source& source, int64_t index) {
  std::vector<uint8_t> pixels(static_cast<size_t>(source.fields()[0].type.bytes()));
  const Status status = source.ReadOne(index, 0, pixels.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return pixels;
}

TEST_F(ImageFolderTest, APatternNamesFilesAndTheirFoldersAreClasses) {
  PutCatsAndDogs("");
  Put("dog/notes.txt", "no picture");
  const auto splits = Open("/{dog,cat/deep}/*");
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->preprocessing->classes, (std::vector<std::string>{"deep", "dog"}));
  EXPECT_EQ(Labels(*splits->train), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(Plain(splits->train->Origin(1)), "DIR/dog/a.jpeg");
  ASSERT_EQ(splits->notes.size(), 1U);
  EXPECT_EQ(Plain(splits->notes[0]),
            "images:DIR/{dog,cat/deep}/*: 1 file is left out, as its suffix is not one of .jpg, "
            ".jpeg, .png, .webp: DIR/dog/notes.txt");
  EXPECT_EQ(Error("/*/*.txt"),
            "images:DIR/*/*.txt: no file that matches DIR/*/*.txt is a picture (.jpg, .jpeg, .png, "
            ".webp)");
  DataOptions kept;
  kept.preprocessing = splits->preprocessing;
  Put("cow/a.jpg", Golden("grey.jpg"));
  EXPECT_EQ(Plain(Message(OpenData("images:" + folder_.path() + "/c*/*.jpg", kept))),
            "images:DIR/c*/*.jpg: cow is none of the run's classes: deep, dog");
}

TEST_F(ImageFolderTest, ClassesAreFoldersInTheOrderOfTheirBytes) {
  PutCatsAndDogs("");
  Put("Zebra/a.jpg", Golden("grey.jpg"));
  Put(".hidden/a.jpg", "");
  Put("cat/.hidden.jpg", "");
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  const Source& source = *splits->train;
  EXPECT_EQ(Labels(source), (std::vector<int64_t>{0, 1, 2, 2}));
  EXPECT_EQ(splits->preprocessing->classes, (std::vector<std::string>{"Zebra", "cat", "dog"}));
  EXPECT_EQ(splits->sizes, (std::vector<ModelSize>{{"classes", 3}}));
  EXPECT_EQ(source.fields()[1].classes, 3);
  EXPECT_EQ(TypeToString(source.fields()[0].type), "u8[8,8,3]");
  EXPECT_EQ(splits->test, nullptr);
  EXPECT_TRUE(splits->notes.empty());
  EXPECT_EQ(Plain(source.Origin(3)), "DIR/dog/b.PNG");
}

TEST_F(ImageFolderTest, TrainValAndTestAreSets) {
  PutCatsAndDogs("train/");
  PutCatsAndDogs("val/");
  PutCatsAndDogs("test/");
  Put("test/cat/more.jpg", Golden("grey.jpg"));
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(splits->train->size(), 3);
  EXPECT_EQ(splits->validation->size(), 3);
  EXPECT_EQ(splits->test->size(), 4);
  Put("val/cow/a.jpg", Golden("grey.jpg"));
  EXPECT_EQ(Error(), "images:DIR: DIR/train has no folder 'cow', which DIR/val has");
  Put("train/cow/a.jpg", Golden("grey.jpg"));
  EXPECT_EQ(Error(), "images:DIR: DIR/test has no folder 'cow', which DIR/train has");
}

TEST_F(ImageFolderTest, AClassMayBeCalledTrain) {
  PutCatsAndDogs("");
  Put("train/a.jpg", Golden("grey.jpg"));
  EXPECT_EQ(Open()->train->fields()[1].classes, 3);
}

TEST_F(ImageFolderTest, TakesTheModelsSizeAndChannels) {
  PutCatsAndDogs("");
  const auto type = [&](const std::string& options, Dims dims) {
    const auto splits = Open(options, {DType::kF32, std::move(dims)});
    return splits.ok() ? TypeToString(splits->train->fields()[0].type) : Message(splits);
  };
  EXPECT_EQ(type("", {3, 20, 30}), "u8[20,30,3]");
  EXPECT_EQ(type("", {20, 30, 3}), "u8[20,30,3]");
  EXPECT_EQ(type("", {1, 28, 28}), "u8[28,28]");
  EXPECT_EQ(type("", {28, 28}), "u8[28,28]");
  EXPECT_EQ(type(",size=16", {3, 20, 30}), "u8[16,16,3]");
  EXPECT_EQ(type(",size=16x24", {784}), "u8[16,24,3]");
  EXPECT_EQ(type(",size=28", {784}), "u8[28,28]");
}

TEST_F(ImageFolderTest, AsksForASizeThatTheModelDoesNotSay) {
  PutCatsAndDogs("");
  EXPECT_EQ(Error("", {DType::kF32, {784}}),
            "data 'images:DIR': no size is given, and the model has no image of 1 or 3 channels "
            "that says one. hint: images:DIR,size=224");
}

TEST_F(ImageFolderTest, RefusesOptionsItDoesNotKnow) {
  PutCatsAndDogs("");
  EXPECT_EQ(Error(",siz=3"),
            "data 'images:DIR,siz=3': no option 'siz' (it takes: size, fit, resize, normalize)");
  EXPECT_EQ(Error(",size=0"),
            "data 'images:DIR,size=0': size is '0'; it must be N or HxW, each from 1 to 16384");
  EXPECT_EQ(Error(",fit=fill,size=3"),
            "data 'images:DIR,fit=fill,size=3': fit is 'fill'; it must be crop, stretch or pad");
  EXPECT_EQ(Message(OpenData("images:")), "data 'images:': names no folder; write images:DIR");
}

TEST_F(ImageFolderTest, RefusesMeansItCannotUse) {
  PutCatsAndDogs("");
  for (const char* wrong : {"imagenot", "0.5:0", "1/2:3", ":", "nan:1", "0.1/:1/1", "1:-1"}) {
    EXPECT_NE(Error(std::string(",normalize=") + wrong)
                  .find(std::string(",normalize=") + wrong + "': normalize is '" + wrong +
                        "'; it must be imagenet, 0.5, none, or MEAN:STD with one number each"),
              std::string::npos)
        << wrong;
  }
  EXPECT_EQ(
      Error(",normalize=imagenet", {DType::kF32, {1, 28, 28}}),
      "data 'images:DIR,normalize=imagenet': normalize has 3 means; the model's pictures have "
      "1 channel. hint: normalize=0.5");
}

TEST_F(ImageFolderTest, KeepsWhatItDoesToPictures) {
  PutCatsAndDogs("");
  const auto pictures = *Open(",size=20x31,fit=stretch,resize=nearest,normalize=0.1/0.2/0.3:1/2/3")
                             ->preprocessing->pictures;
  EXPECT_EQ(pictures.target,
            (PictureTarget{{20, 31}, 3, ImageFit::kStretch, ResizeFilter::kNearest}));
  EXPECT_EQ(pictures.normalization, (PixelNormalization{{0.1, 0.2, 0.3}, {1, 2, 3}}));
  const auto plain = *Open("", {DType::kF32, {28, 28}})->preprocessing->pictures;
  EXPECT_EQ(plain.target, (PictureTarget{{28, 28}, 1}));
  EXPECT_TRUE(plain.normalization.empty());
}

// A run's evaluation data names only the folder.
TEST_F(ImageFolderTest, OtherPicturesGoThroughTheRunsPreprocessing) {
  PutCatsAndDogs("");
  const auto splits = Open(",size=20x31,fit=stretch,normalize=imagenet");
  DataOptions options;
  options.model_inputs = {{"image", kColor}};
  options.preprocessing = splits->preprocessing;
  const auto open = [&](const std::string& more) {
    return OpenData("images:" + folder_.path() + more, options);
  };
  const auto other = open("");
  EXPECT_EQ(*other->preprocessing, *splits->preprocessing);
  EXPECT_EQ(other->train->fields(), splits->train->fields());
  EXPECT_EQ(Image(*other->train, 1), Image(*splits->train, 1));
  const auto facts = FactsBeforeModel("images:" + folder_.path(), options);
  EXPECT_EQ(TypeToString((*facts)->fields.at(0).type), "u8[20,31,3]");
  const PicturePreprocessing said = *open(",normalize=none,fit=crop")->preprocessing->pictures;
  EXPECT_TRUE(said.normalization.empty());
  EXPECT_EQ(said.target, (PictureTarget{{20, 31}}));
}

TEST_F(ImageFolderTest, NamesTheFolderThatIsMissingOrEmpty) {
  EXPECT_EQ(Error(),
            "images:DIR: DIR holds no folders; each class needs one: DIR/CLASS/picture.jpg");
  EXPECT_EQ(Error("/no"), "images:DIR/no: there is no folder DIR/no");
  PutCatsAndDogs("");
  Put("cow/notes.txt", "");
  EXPECT_EQ(Error(), "images:DIR: DIR/cow holds no picture (.jpg, .jpeg, .png, .webp)");
}

TEST_F(ImageFolderTest, TellsWhatItLeavesOut) {
  PutCatsAndDogs("");
  Put("cat/readme.txt", "");
  EXPECT_EQ(Plain(Open()->notes.at(0)),
            "images:DIR: 1 file is left out, as its suffix is not one of .jpg, .jpeg, .png, .webp: "
            "DIR/cat/readme.txt");
  Put("dog/x.gif", "");
  EXPECT_EQ(Plain(Open()->notes.at(0)),
            "images:DIR: 2 files are left out, as their suffix is not one of .jpg, .jpeg, .png, "
            ".webp: DIR/cat/readme.txt and others");
}

TEST_F(ImageFolderTest, FindsBadFilesWhenItOpens) {
  PutCatsAndDogs("");
  Put("cat/x.jpg", "");
  EXPECT_EQ(Error(), "DIR/cat/x.jpg: is empty");
  Put("cat/x.jpg", "GIF89a");
  EXPECT_EQ(Error(), "DIR/cat/x.jpg: is no JPEG, PNG or WebP file: it begins with 47 49 46 38");
  Put("cat/x.jpg", std::string("\xFF\xD8\xFF\xC0\x00\x11\x08\xFF\xFF\xFF\xFF\x03", 12));
  EXPECT_EQ(Error(), "DIR/cat/x.jpg: has 65535x65535 pixels, at most 268435456 pixels are read");
  std::filesystem::remove(folder_.File("cat/x.jpg"));
  ASSERT_EQ(::mkfifo(folder_.File("cat/x.jpg").c_str(), 0600), 0);
  EXPECT_EQ(Error(), "DIR/cat/x.jpg: is no regular file");
}

TEST_F(ImageFolderTest, AFolderMayBeCalledLikeAPicture) {
  PutCatsAndDogs("");
  Put("cat/x.jpg/y.jpg", Golden("grey.jpg"));
  EXPECT_EQ(Open()->train->size(), 4);
}

TEST_F(ImageFolderTest, NamesNeedNotBeUtf8) {
  PutCatsAndDogs("");
  Put("\xFF\xFE/\x80.jpg", Golden("grey.jpg"));
  const auto splits = Open();
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(Image(*splits->train, 3).size(), 192U);
}

TEST_F(ImageFolderTest, RefusesFoldersThatNeverEnd) {
  PutCatsAndDogs("");
  std::filesystem::create_directory_symlink(folder_.File("cat"), folder_.File("cat/again"));
  EXPECT_NE(Error().find("folders are nested more than 32 deep"), std::string::npos);
}

TEST_F(ImageFolderTest, NamesTheFileThatIsDamaged) {
  PutCatsAndDogs("");
  const std::string whole = Golden("420.jpg");
  Put("cat/a.jpg", whole.substr(0, whole.size() / 2));
  const auto splits = Open();
  ASSERT_TRUE(splits.ok());
  uint8_t pixels[192];
  EXPECT_EQ(Plain(splits->train->ReadOne(0, 0, pixels).message()),
            "DIR/cat/a.jpg: its JPEG data is damaged: Premature end of JPEG file");
  Put("cat/a.jpg", Golden("444.jpg"));
  EXPECT_EQ(Plain(splits->train->ReadOne(0, 0, pixels).message()),
            "DIR/cat/a.jpg: has changed since the data was opened");
  std::filesystem::remove(folder_.File("cat/a.jpg"));
  EXPECT_EQ(Plain(splits->train->ReadOne(0, 0, pixels).message()),
            "DIR/cat/a.jpg: cannot be opened: No such file or directory");
}

TEST_F(ImageFolderTest, HoldsTheListOnly) {
  PutCatsAndDogs("");
  EXPECT_LT(Open()->train->resident_bytes(), 1000);
  EXPECT_GT(Open()->train->scratch_bytes(), 61 * 47 * 3);
}

// Each thread has a scratch of its own; what they read is what one thread reads.
TEST_F(ImageFolderTest, IsReadByManyThreadsAlike) {
  for (const char* name : {"420.jpg", "cmyk.jpg", "grey.jpg", "progressive.jpg", "alpha.webp",
                           "2-8-interlaced.png", "0-16.png", "3-4-trns.png"})
    Put(std::string("all/") + name, Golden(name));
  const auto splits = Open(",size=20x31");
  const Source& source = *splits->train;
  std::vector<std::vector<uint8_t>> expected;
  for (int64_t i = 0; i < source.size(); ++i) expected.push_back(Image(source, i));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int64_t i = 0; i < source.size(); ++i)
        EXPECT_EQ(Image(source, i), expected[static_cast<size_t>(i)]) << i;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ImageFolderTest, AFolderAloneIsGuessed) {
  PutCatsAndDogs("");
  DataOptions options;
  options.model_inputs = {{"image", kColor}};
  const auto splits = OpenData(folder_.path() + "/", options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(Plain(splits->notes.at(0)), "data 'DIR/': is read as images:DIR/");
  EXPECT_NE(Message(OpenData(folder_.File("dog"))).find("is not a known kind"), std::string::npos);
}

TEST_F(ImageFolderTest, TellsItsClassesBeforeTheModelIsKnown) {
  PutCatsAndDogs("");
  const auto facts = FactsBeforeModel("images:" + folder_.path());
  ASSERT_TRUE(facts.ok() && facts->has_value());
  EXPECT_EQ((*facts)->fields.size(), 1U);
  EXPECT_EQ((*facts)->sizes, (std::vector<ModelSize>{{"classes", 2}}));
  EXPECT_EQ((*FactsBeforeModel("images:" + folder_.path() + ",size=9"))->fields.size(), 2U);
  EXPECT_FALSE((*FactsBeforeModel("csv:x")).has_value());
  EXPECT_TRUE((*FactsBeforeModel("synthetic"))->fields.empty());
}

TEST_F(ImageFolderTest, ClassesOfARunKeepTheirNumbers) {
  PutCatsAndDogs("");
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = {"bird", "cat", "dog"};
  DataOptions options;
  options.model_inputs = {{"image", kColor}};
  options.preprocessing = preprocessing;
  const auto splits = OpenData("images:" + folder_.path(), options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  EXPECT_EQ(Labels(*splits->train), (std::vector<int64_t>{1, 2, 2}));
  EXPECT_EQ(splits->train->fields()[1].classes, 3);
  EXPECT_EQ(splits->preprocessing->classes, preprocessing->classes);
  preprocessing->classes = {"bird", "cat"};
  EXPECT_EQ(Plain(Message(OpenData("images:" + folder_.path(), options))),
            "images:DIR: DIR/dog is none of the run's classes: bird, cat");
}

}  // namespace
}  // namespace ridge
