// pointnet2: PointNet++ with single-scale grouping, a classifier of point clouds (Qi et al.,
// NeurIPS 2017), without dropout.
//
// Layers, names and starting values are those of github.com/yanx27/Pointnet_Pointnet2_pytorch
// (pointnet2_cls_ssg, without normals).  A level of set abstraction chooses far points as centers,
// groups the neighbours of each, and takes the maximum of a small network over a group; the last
// one has a single group.  The first center is point 0, where that implementation draws one.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "ridge/models/builtin.h"
#include "ridge/models/layers.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

struct Cloud {
  Value places;    // [B,N,3]
  Value features;  // [B,N,C]; invalid: none
};

// x [B,N,C], indices i64[B, ..] -> [B, .., C], each sample's own points.
Value Take(Value x, Value indices) {
  if (!x.valid() || !indices.valid()) return {};
  const Dims dims = x.dims();
  Dims rows = indices.dims();
  rows.push_back(1);
  const Value flat = Op("ravel_index", {ReshapeExactly(indices, rows)},
                        {{"dims", {dims[0], dims[1]}}, {"batch_dims", 1}});
  return Gather(ReshapeExactly(x, {dims[0] * dims[1], dims[2]}), flat);
}

struct Level {
  std::string name;
  int64_t centers = 0, neighbours = 0;
  double radius = 0;
  std::vector<int64_t> channels;
};

// Convolutions of 1x1 over x [B,C,K,M], then the maximum over K: [B,C',M].
Value PointNet(GraphBuilder& b, Value x, const Level& level) {
  for (size_t i = 0; i < level.channels.size(); ++i) {
    x = Conv(b, x, level.channels[i], fmt::format("{}.mlp_convs.{}", level.name, i), {.kernel = 1});
    x = Relu(BatchNorm(b, x, fmt::format("{}.mlp_bns.{}", level.name, i)));
  }
  return Op("reduce_max", {x}, {{"axes", {2}}, {"ties", "first"}}, level.name);
}

// Places of the neighbours, seen from their centers, before their features: [B,M,K,3+C].
Value Group(const Cloud& cloud, Value centers, Value neighbours) {
  if (!centers.valid()) return {};
  const Dims dims = centers.dims();
  const Value places = Take(cloud.places, neighbours);
  const Value seen = places - ReshapeExactly(centers, {dims[0], dims[1], 1, dims[2]});
  return cloud.features.valid() ? Concat({seen, Take(cloud.features, neighbours)}, 3) : seen;
}

Cloud SetAbstraction(GraphBuilder& b, const Cloud& cloud, const Level& level) {
  const Value chosen =
      Op("farthest_points", {cloud.places}, {{"count", level.centers}}, level.name + ".centers");
  const Value centers = Take(cloud.places, chosen);
  const Value neighbours =
      Op("ball_query", {cloud.places, centers},
         {{"count", level.neighbours}, {"radius", level.radius}}, level.name + ".neighbours");
  const Value grouped = Group(cloud, centers, neighbours);
  if (!b.ok()) return {};
  const Value features = PointNet(b, Transpose(grouped, {0, 3, 2, 1}), level);
  return {centers, b.ok() ? Transpose(features, {0, 2, 1}) : Value()};
}

// One group of all points: [B,C'].
Value SetOfAll(GraphBuilder& b, const Cloud& cloud, const Level& level) {
  if (!b.ok()) return {};
  const Value points = Transpose(Concat({cloud.places, cloud.features}, 2), {0, 2, 1});
  const Dims dims = points.dims();
  return Flatten(PointNet(b, ReshapeExactly(points, {dims[0], dims[1], dims[2], 1}), level));
}

Result<Graph> BuildPointNet2(const ModelArguments& arguments, const ModelOptions& options) {
  const int64_t points = arguments["points"], centers = arguments["centers"];
  const int64_t neighbours = arguments["neighbours"];
  const double radius = arguments.Real("radius");
  if (centers > points) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("pointnet2: centers is {}; it must be at most points, {}. hint: "
                              "centers={}",
                              centers, points, std::max<int64_t>(4, points / 8 * 4)));
  }
  GraphBuilder b(arguments.model());
  Cloud cloud;
  cloud.places = b.Input("points", {options.dtype, {options.batch, points, 3}}, {"batch", "", ""});
  cloud = SetAbstraction(b, cloud, {"sa1", centers, neighbours, radius, {64, 64, 128}});
  cloud =
      SetAbstraction(b, cloud, {"sa2", centers / 4, 2 * neighbours, 2 * radius, {128, 128, 256}});
  Value x = SetOfAll(b, cloud, {.name = "sa3", .channels = {256, 512, 1024}});
  x = Relu(BatchNorm(b, b.Linear(x, 512, "fc1"), "bn1"));
  x = Relu(BatchNorm(b, b.Linear(x, 256, "fc2"), "bn2"));
  ClassifierEnd(b, options, b.Linear(x, arguments["classes"], "fc3"));
  return b.Build();
}

}  // namespace

BuiltinModel PointNet2Model() {
  return {
      .name = "pointnet2",
      .doc = "PointNet++ (single-scale grouping): a classifier of point clouds, without dropout",
      .parameters = {{"points", "points of a cloud", 1024, 4, 1 << 20},
                     {"centers", "groups of the first level; the second has a quarter", 512, 4,
                      1 << 16},
                     {"neighbours", "points of its groups; the second level has twice as many", 32,
                      1, 1 << 12},
                     {"radius",
                      "of its groups; twice that in the second",
                      0,
                      0,
                      0,
                      {},
                      RealRange{0.2, 0, 1000}},
                     {"classes", "classes", 40}},
      .build = BuildPointNet2,
      .weight_names = TorchvisionWeightNames};
}

}  // namespace ridge
