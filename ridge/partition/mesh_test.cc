#include "ridge/partition/mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ridge {
namespace {

using testing::ElementsAre;

std::string ErrorOf(const std::string& text) {
  const Result<Mesh> mesh = ParseMesh(text);
  return mesh.ok() ? "" : mesh.status().message();
}

TEST(Mesh, IsPrintedAsItIsRead) {
  for (const char* text : {"d=2", "d=2,t=4", "data=8,model_parallel=2,p2=1"})
    EXPECT_EQ(MeshText(*ParseMesh(text)), text);
}

TEST(Mesh, NumbersDevicesAlongTheLastAxisFirst) {
  const Mesh mesh = *ParseMesh("d=2,t=3");
  EXPECT_EQ(mesh.devices(), 6);
  EXPECT_THAT(mesh.CoordinatesOf(4), ElementsAre(1, 1));
  EXPECT_THAT(mesh.PeersOf(4, mesh.Find("t")), ElementsAre(3, 4, 5));
  EXPECT_THAT(mesh.PeersOf(4, mesh.Find("d")), ElementsAre(1, 4));
  for (int64_t d = 0; d < mesh.devices(); ++d) EXPECT_EQ(mesh.DeviceAt(mesh.CoordinatesOf(d)), d);
}

TEST(Mesh, RefusesWithWhatIsThereAndWhatShouldBe) {
  EXPECT_EQ(ErrorOf(""),
            "mesh \"\": \"\" is no axis; it must be NAME=SIZE, and the name must begin with a "
            "letter. hint: write names and sizes, such as d=2,t=4");
  EXPECT_EQ(ErrorOf("d=2,"),
            "mesh \"d=2,\": \"\" is no axis; it must be NAME=SIZE, and the name must begin with a "
            "letter. hint: write names and sizes, such as d=2,t=4");
  EXPECT_EQ(ErrorOf("4"),
            "mesh \"4\": \"4\" is no axis; it must be NAME=SIZE, and the name must begin with a "
            "letter. hint: write names and sizes, such as d=2,t=4");
  EXPECT_EQ(
      ErrorOf("d=0"),
      "mesh \"d=0\": the size of d is \"0\"; it must be a number from 1 to 65536. hint: write "
      "names and sizes, such as d=2,t=4");
  EXPECT_EQ(ErrorOf("d=2x"),
            "mesh \"d=2x\": the size of d is \"2x\"; it must be a number from 1 to 65536. hint: "
            "write names and sizes, such as d=2,t=4");
  EXPECT_EQ(ErrorOf("d=2,d=2"),
            "mesh \"d=2,d=2\": axis d is there twice. hint: write names and sizes, such as "
            "d=2,t=4");
  EXPECT_EQ(ErrorOf("d=1024,t=1024"),
            "mesh \"d=1024,t=1024\": it has 1048576 devices; at most 65536 are possible. hint: "
            "write names and sizes, such as d=2,t=4");
}

}  // namespace
}  // namespace ridge
