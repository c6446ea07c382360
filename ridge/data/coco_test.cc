#include "ridge/data/coco.h"

#include <cstring>
#include <filesystem>

#include "ridge/data/image/encode.h"
#include "ridge/data/test_files.h"

namespace ridge {
namespace {

constexpr const char* kImages =
    R"("images":[{"id":7,"file_name":"a.png","width":8,"height":4},)"
    R"({"height":4,"width":8,"id":3,"file_name":"deep/b.png","license":{"id":1}}])";
constexpr const char* kCategories =
    R"("categories":[{"id":18,"name":"dog","supercategory":"animal"},{"id":2,"name":"cat"}])";

std::string Json(const std::string& annotations, const std::string& images = kImages,
                 const std::string& categories = kCategories) {
  return "{\"info\":{\"id\":[1,{}]}," + images + ",\"annotations\":[" + annotations + "]," +
         categories + "}";
}
std::string One(const std::string& rest) { return R"({"id":1,"image_id":7,)" + rest + "}"; }

std::string Error(const std::string& text) { return Message(ParseCoco(text, "F", "DIR", nullptr)); }

// Classes are the categories by their ids; an outline's numbers are no box.
TEST(CocoTest, BoxesGoToTheirPicturesAsPartsOfThem) {
  const auto sets = ParseCoco(
      Json(One(R"("segmentation":[[1,2,3,4]],"bbox":[2,1,4,2],"category_id":18,"iscrowd":0)") +
           "," + One(R"("category_id":2,"bbox":[6,3,9,9])") + "," +
           One(R"("category_id":2,"bbox":[0,0,8,4],"iscrowd":1)") + "," +
           One(R"("category_id":2,"bbox":[1,1,0,2])")),
      "F", "DIR", nullptr);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets->classes, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(sets->train.size(), 2u);
  EXPECT_EQ(sets->train[0].path, "DIR/a.png");
  EXPECT_EQ(sets->train[0].boxes,
            (std::vector<ObjectBox>{{0.25, 0.25, 0.75, 0.75, 1}, {0.75, 0.75, 1, 1, 0}}));
  EXPECT_EQ(sets->train[1].path, "DIR/deep/b.png");
  EXPECT_TRUE(sets->train[1].boxes.empty());
}

TEST(CocoTest, WrongFilesAreRefusedWithTheirPlace) {
  EXPECT_EQ(Error("{\"images\":[1,"), "F: byte 13: is no JSON");
  EXPECT_EQ(Error("[]"), "F: has no images");
  EXPECT_EQ(Error(Json("", "\"images\":[]")), "F: has no images");
  EXPECT_EQ(Error(Json("", kImages, "\"categories\":[]")), "F: has no categories");
  EXPECT_EQ(Error(Json("", R"("images":[{"file_name":"a.png","width":8,"height":4}])")),
            "F: images 0: has no whole number as its id");
  EXPECT_EQ(Error(Json("", R"("images":[{"id":1.5,"file_name":"a.png","width":8,"height":4}])")),
            "F: images 0: has no whole number as its id");
  EXPECT_EQ(Error(Json("", R"("images":[{"id":1,"width":8,"height":4}])")),
            "F: images 0: has no file_name");
  EXPECT_EQ(Error(Json("", R"("images":[{"id":1,"file_name":"a.png","width":8}])")),
            "F: images 0: has no width and height");
  for (const char* name : {"../a.png", "/etc/a.png", "b/../../a.png", "a\\u0000.png"}) {
    EXPECT_NE(Error(Json("", std::string(R"("images":[{"id":1,"file_name":")") + name +
                                 R"(","width":8,"height":4}])"))
                  .find("leads out of the folder"),
              std::string::npos)
        << name;
  }
  EXPECT_EQ(Error(Json("", kImages, R"("categories":[{"id":2,"name":"a"},{"id":2,"name":"b"}])")),
            "F: categories 1: id 2 comes twice");
  EXPECT_EQ(Error(Json("", std::string("\"images\":[{\"x\":") + std::string(100, '['))),
            "F: images 0: is nested more than 64 deep");
}

TEST(CocoTest, AWrongAnnotationIsNamedAndSkippedWhereTheRunBearsIt) {
  const std::string good = One(R"("category_id":2,"bbox":[0,0,8,4])");
  const auto error = [&](const std::string& bad) { return Error(Json(good + "," + bad)); };
  EXPECT_EQ(error(R"({"image_id":8,"category_id":2,"bbox":[0,0,1,1]})"),
            "F: annotations 1: its image_id is none of the images");
  EXPECT_EQ(error(R"({"category_id":2,"bbox":[0,0,1,1]})"),
            "F: annotations 1: its image_id is none of the images");
  EXPECT_EQ(error(One(R"("category_id":3,"bbox":[0,0,1,1])")),
            "F: annotations 1: its category_id is none of the categories");
  EXPECT_EQ(error(One(R"("category_id":2,"bbox":[0,0,1])")),
            "F: annotations 1: its bbox has not 4 numbers");
  EXPECT_EQ(error(One(R"("category_id":2,"bbox":[0,0,1,1,1])")),
            "F: annotations 1: its bbox has not 4 numbers");
  EXPECT_EQ(error(One(R"("category_id":2)")), "F: annotations 1: its bbox has not 4 numbers");
  const auto bad = std::make_shared<BadRecords>(*BadRecordsPolicy::Parse("skip:1"));
  const auto sets =
      ParseCoco(Json(One(R"("category_id":3,"bbox":[0,0,1,1])") + "," + good), "F", "DIR", bad);
  ASSERT_TRUE(sets.ok()) << sets.status().message();
  EXPECT_EQ(sets->train[0].boxes.size(), 1u);
  EXPECT_EQ(bad->count(), 1);
}

TEST(CocoTest, PicturesLieBesideTheFileOrWhereItIsSaid) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.File("photos/deep"));
  const std::string png = EncodePng(RgbPicture::Filled({4, 8}, 9));
  folder.Write("photos/a.png", png);
  folder.Write("photos/deep/b.png", png);
  folder.Write("all.json", Json(One(R"("category_id":18,"bbox":[2,1,4,2])")));
  DataOptions options;
  options.model_inputs = {{"image", {DType::kF32, {3, 16, 16}}}};
  const std::string spec = "coco:" + folder.File("all.json");
  EXPECT_EQ(Message(OpenData(spec, options)),
            folder.File("a.png") + ": cannot be opened: No such file or directory");
  const auto splits = OpenData(spec + ",images=" + folder.File("photos"), options);
  ASSERT_TRUE(splits.ok()) << splits.status().message();
  ASSERT_EQ(splits->train->size(), 2);
  std::vector<float> box(4);
  ASSERT_TRUE(splits->train->ReadOne(0, 1, box.data()).ok());
  EXPECT_EQ(box, (std::vector<float>{4, 4, 12, 12}));
  EXPECT_EQ(splits->preprocessing->classes, (std::vector<std::string>{"cat", "dog"}));
}

}  // namespace
}  // namespace ridge
