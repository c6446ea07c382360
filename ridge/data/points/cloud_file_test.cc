#include "ridge/data/points/cloud_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ridge/data/npy.h"
#include "ridge/data/points/cloud_reader.h"

namespace ridge {
namespace {

template <typename T>
std::string Bytes(T value, bool big_endian = false) {
  std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
  if (big_endian) std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

std::string Error(const std::string& file) {
  const auto header = ReadCloudHeader(file, static_cast<int64_t>(file.size()));
  if (!header.ok()) return header.status().message();
  std::vector<double> points(static_cast<size_t>(3 * header->points_made()));
  std::vector<char> scratch(static_cast<size_t>(CloudScratchBytes(*header)));
  return ReadCloud(file, *header, scratch, points.data()).message();
}

std::vector<double> Points(const std::string& file) {
  const auto header = ReadCloudHeader(file, static_cast<int64_t>(file.size()));
  EXPECT_TRUE(header.ok()) << header.status().message();
  if (!header.ok()) return {};
  std::vector<double> points(static_cast<size_t>(3 * header->points_made()));
  std::vector<char> scratch(static_cast<size_t>(CloudScratchBytes(*header)));
  const Status status = ReadCloud(file, *header, scratch, points.data());
  EXPECT_TRUE(status.ok()) << status.message();
  return points;
}

std::string Ply(const std::string& format, const std::string& rest, const std::string& data) {
  return "ply\nformat " + format + " 1.0\ncomment made by hand\n" + rest + "end_header\n" + data;
}

const std::vector<double> kTwo = {1, -2, 3.5, 4, 5, -6.25};

TEST(CloudFileTest, PlyOfEveryFormatHoldsTheSamePoints) {
  const std::string element =
      "element vertex 2\nproperty uchar red\nproperty float x\nproperty double y\n"
      "property float32 z\nelement face 1\nproperty list uchar int vertex_indices\n";
  EXPECT_EQ(Points(Ply("ascii", element, "7 1 -2 3.5\n8 +4 5 -6.25\n3 0 1 1\n")), kTwo);
  for (const bool big : {false, true}) {
    std::string data;
    for (size_t i = 0; i < 2; ++i) {
      data += Bytes(static_cast<uint8_t>(i), big) + Bytes(static_cast<float>(kTwo[3 * i]), big) +
              Bytes(kTwo[3 * i + 1], big) + Bytes(static_cast<float>(kTwo[3 * i + 2]), big);
    }
    data += Bytes<uint8_t>(3) + std::string(12, '\0');
    const std::string format = big ? "binary_big_endian" : "binary_little_endian";
    EXPECT_EQ(Points(Ply(format, element, data)), kTwo);
    EXPECT_EQ(Error(Ply(format, element, data.substr(0, 33))),
              "its PLY header declares 2 vertices of 17 bytes or more, and 33 bytes follow");
  }
}

TEST(CloudFileTest, PlyElementsBeforeTheVerticesAreSkipped) {
  const std::string element =
      "element camera 2\nproperty short a\nproperty short b\nelement vertex 1\n"
      "property short z\nproperty short y\nproperty short x\n";
  EXPECT_EQ(Points(Ply("ascii", element, "9 9\n9 9\n3 2 1\n")), (std::vector<double>{1, 2, 3}));
  const std::string data =
      std::string(8, '\t') + Bytes<int16_t>(3) + Bytes<int16_t>(2) + Bytes<int16_t>(-1);
  EXPECT_EQ(Points(Ply("binary_little_endian", element, data)), (std::vector<double>{-1, 2, 3}));
  EXPECT_EQ(
      Error(Ply("ascii", "element a 1\nproperty list int int b\nelement vertex 1\nproperty int x\n",
                "")),
      "its PLY file has an element with lists before the vertices");
}

TEST(CloudFileTest, ArraysOfNumpyGiveTheirFirstThreeColumns) {
  std::string file = NpyHeader({DType::kF32, {2, 4}});
  for (const float x : {1.F, -2.F, 3.5F, 9.F, 4.F, 5.F, -6.25F, 9.F}) file += Bytes(x);
  EXPECT_EQ(Points(file), kTwo);
  std::string wide = NpyHeader({DType::kF64, {2, 3}});
  for (const double x : kTwo) wide += Bytes(x);
  EXPECT_EQ(Points(wide), kTwo);
  EXPECT_EQ(Error(wide + "x"), "its array is f64[2,3], 48 bytes, and 49 follow");
  EXPECT_EQ(Error(NpyHeader({DType::kF32, {2, 2}}) + std::string(16, '\0')),
            "its array is f32[2,2]; it must be f32 or f64 [N,3], with 1 to 16777216 rows of 3 "
            "numbers or more");
}

TEST(CloudFileTest, OffWithoutFacesIsItsCorners) {
  EXPECT_EQ(Points("OFF\n# a comment\n2 0 0\n1 -2 3.5 255 0 0\n4 5 -6.25"), kTwo);
  EXPECT_EQ(Points("OFF2 0 0\r\n1 -2 3.5\r\n4 5 -6.25\r\n"), kTwo);
}

// A square of side 2 at z=1 and a far smaller one at z=0: nine tenths of the area and one.
TEST(CloudFileTest, PlacesOnAMeshAreDrawnByArea) {
  const std::string mesh =
      "OFF 8 2 0\n0 0 1\n3 0 1\n3 3 1\n0 3 1\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n"
      "4 0 1 2 3 0.5 0.5 0.5\n4 4 5 6 7\n";
  const std::vector<double> points = Points(mesh);
  ASSERT_EQ(points.size(), 3U * kMeshPoints);
  EXPECT_EQ(points, Points(mesh));
  double on_top = 0, x = 0;
  for (size_t i = 0; i < points.size(); i += 3) {
    const bool top = points[i + 2] > 0.5;
    ASSERT_NEAR(points[i + 2], top ? 1 : 0, 1e-12);
    ASSERT_TRUE(points[i] >= 0 && points[i] <= (top ? 3 : 1));
    on_top += top ? 1 : 0;
    x += top ? points[i] : 0;
  }
  EXPECT_NEAR(on_top / kMeshPoints, 0.9, 0.01);  // a deviation of 0.003
  EXPECT_NEAR(x / on_top, 1.5, 0.04);            // 0.009
}

TEST(CloudFileTest, HeadersThatLieAreRefusedBeforeAnythingIsAllocated) {
  const std::string xyz = "property float x\nproperty float y\nproperty float z\n";
  EXPECT_EQ(Error("solid cube"), "is no PLY, OFF or NumPy file");
  EXPECT_EQ(Error("ply\nformat ascii 1.0\n"), "its PLY header has no end_header in 21 bytes");
  EXPECT_EQ(Error(Ply("ascii", "element vertex 99999999999\n" + xyz, "")),
            "its PLY header declares 99999999999 vertices; 1 to 16777216 are read");
  EXPECT_EQ(Error(Ply("ascii", "element vertex 1000000\n" + xyz, "1 2 3\n")),
            "its PLY header declares 1000000 vertices of 6 bytes or more, and 6 bytes follow");
  EXPECT_EQ(Error(Ply("ascii", "element vertex 0\n" + xyz, "")),
            "its PLY header declares 0 vertices; 1 to 16777216 are read");
  EXPECT_EQ(Error(Ply("text", "element vertex 1\n" + xyz, "1 2 3")),
            "its PLY format is 'text'; it must be ascii, binary_little_endian or "
            "binary_big_endian");
  EXPECT_EQ(Error(Ply("ascii", "element vertex 1\n" + xyz + "format binary_big_endian 1.0\n", "1")),
            "its PLY header must name its format once, before the elements");
  EXPECT_EQ(Error("ply\nformat ascii 1.0\nelement vertex 1\n" + xyz + "end_header"),
            "its PLY header has no end_header in 99 bytes");
  EXPECT_EQ(Error("OFF 1 0 0"), "its OFF header has no numbers of corners, faces and edges");
  EXPECT_EQ(Error(Ply("ascii", "element vertex 1\nproperty float x\n", "1")),
            "its PLY vertices have no property 'y'");
  EXPECT_EQ(
      Error(Ply("ascii", "element b 9223372036854775807\nproperty int a\nelement vertex 1\n", "")),
      "its PLY header declares 9223372036854775807 elements before the vertices, more than "
      "the file can hold");
  EXPECT_EQ(Error("OFF\n8 999999999 0\n"),
            "its OFF header declares 8 corners and 999999999 faces, and 1 bytes follow");
  EXPECT_EQ(Error("OFF\n1 1 0\n0 0 0\n3 0 0 1\n"), "face 0 names a corner that is none of the 1");
  EXPECT_EQ(Error("OFF\n1 1 0\n0 0 0\n3 0 0 0\n"), "the area of its faces is 0");
  EXPECT_EQ(Error("OFF\n1 0 0\n0 nan 0\n"),
            "point 0 has a coordinate that is nan; it must be finite, at most 1e+38");
  EXPECT_EQ(Error("OFF\n2 0 0\n0 1 0\n0 one 0\n"), "point 1 of 2 has no number in column 2");
}

TEST(CloudFileTest, MessagesHoldNoControlBytesOfTheFile) {
  const std::string type = "\x1b[31m\xe2" + std::string(5000, 'a');
  EXPECT_EQ(Error(Ply("ascii", "element vertex 1\nproperty " + type + " x\n", "1")),
            "its PLY header has a property of type '?[31m?" + std::string(34, 'a') + "...'");
  std::string npy = NpyHeader({DType::kF32, {2, 3}});
  npy.replace(npy.find("<f4"), 3,
              "\x1b\xff"
              "4");
  EXPECT_THAT(Error(npy), testing::StartsWith("has dtype '??4', should be "));
}

// ---- points of a cloud

std::string Line(int64_t count) {
  std::string file = "OFF " + std::to_string(count) + " 0 0\n";
  for (int64_t i = 0; i < count; ++i) file += std::to_string(i) + " 0 0\n";
  return file;
}

std::vector<float> Chosen(const std::string& file, const PointTarget& target,
                          const CropDraw* draw = nullptr) {
  CloudReader reader(target);
  reader.Admit(*ReadCloudHeader(file, static_cast<int64_t>(file.size())));
  std::vector<char> scratch(static_cast<size_t>(reader.scratch_bytes()));
  std::vector<float> out(static_cast<size_t>(3 * target.count));
  const Status status = reader.Read(file, scratch, out.data(), draw);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<float> x;
  for (size_t i = 0; i < out.size(); i += 3) x.push_back(out[i]);
  return x;
}

using Floats = std::vector<float>;

TEST(CloudReaderTest, PicksAreWhatTheySay) {
  constexpr auto kNone = PointScale::kNone;
  EXPECT_EQ(Chosen(Line(10), {4, PointPick::kEven, kNone}), (Floats{0, 2, 5, 7}));
  EXPECT_EQ(Chosen(Line(10), {4, PointPick::kFirst, kNone}), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(Chosen(Line(10), {4, PointPick::kFarthest, kNone}), (Floats{0, 9, 4, 2}));
  for (const PointPick pick : {PointPick::kEven, PointPick::kFirst})
    EXPECT_EQ(Chosen(Line(3), {7, pick, kNone}), (Floats{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(Chosen(Line(3), {5, PointPick::kFarthest, kNone}), (Floats{0, 2, 1, 0, 2}));
}

TEST(CloudReaderTest, TheSphereHasItsCenterInTheMeanAndRadiusOne) {
  EXPECT_EQ(Chosen(Line(3), {.count = 3}), (Floats{-1, 0, 1}));
  EXPECT_EQ(Chosen(Line(1), {.count = 2}), (Floats{0, 0}));
  // The square of 2.675e-162 is 1.45 of the least denormal number, and rounds to it.
  for (const float x : Chosen("OFF 2 0 0\n0 0 0\n5.35e-162 0 0\n", {.count = 2}))
    EXPECT_LE(std::abs(x), 1.F);
}

TEST(CloudReaderTest, DrawsAreFunctionsOfSeedEpochAndSample) {
  const auto draw = [](uint64_t seed, uint32_t epoch, int64_t sample, PointPick pick) {
    CropDraw at;
    at.key = {seed, 5, epoch};
    at.sample = sample;
    return Chosen(Line(50), {20, pick, PointScale::kNone}, &at);
  };
  for (const PointPick pick : {PointPick::kEven, PointPick::kFarthest}) {
    Floats drawn = draw(1, 2, 3, pick);
    EXPECT_EQ(drawn, draw(1, 2, 3, pick));
    EXPECT_NE(drawn, draw(2, 2, 3, pick));
    EXPECT_NE(drawn, draw(1, 3, 3, pick));
    EXPECT_NE(drawn, draw(1, 2, 4, pick));
    std::sort(drawn.begin(), drawn.end());
    EXPECT_EQ(std::unique(drawn.begin(), drawn.end()), drawn.end()) << "a point is drawn once";
  }
}

}  // namespace
}  // namespace ridge
