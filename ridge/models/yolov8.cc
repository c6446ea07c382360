// yolov8n, _s, _m, _l, _x: the detectors that Ultralytics published in 2023.
//
// Convolutions with batch norm and SiLU.  A stage is a C2f block: half of its channels pass a chain
// of bottlenecks, and all results are concatenated (after Wang et al., "CSPNet", CVPRW 2020, and
// ELAN).  Features of strides 8, 16 and 32 go up and down once (PAN: Liu et al., CVPR 2018), and
// each has a head of two branches: distances and classes.  The sizes differ in depth and width.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/models/builtin.h"
#include "ridge/models/detection.h"
#include "ridge/models/variant_rows.h"
#include "ridge/models/weights/names.h"

namespace ridge {
namespace {

constexpr int64_t kImageMultiple = 32;

struct YoloNet {
  const char* name;
  double depth, width;
  int64_t most_channels;  // before `width`
};
constexpr YoloNet kYoloNets[] = {{"yolov8n", 0.33, 0.25, 1024},
                                 {"yolov8s", 0.33, 0.50, 1024},
                                 {"yolov8m", 0.67, 0.75, 768},
                                 {"yolov8l", 1.00, 1.00, 512},
                                 {"yolov8x", 1.00, 1.25, 512}};

// The next multiple of 8.
int64_t ScaledChannels(const YoloNet& net, int64_t channels) {
  const auto scaled = static_cast<double>(std::min(channels, net.most_channels)) * net.width;
  return static_cast<int64_t>(std::ceil(scaled / 8)) * 8;
}
int64_t ScaledDepth(const YoloNet& net, int64_t layers) {
  return std::max<int64_t>(1, std::lround(static_cast<double>(layers) * net.depth));
}

Value ConvNormSilu(GraphBuilder& b, Value x, int64_t channels, int64_t kernel,
                   const std::string& name, int64_t stride = 1) {
  const ConvOptions conv = {
      .kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = false};
  x = Conv(b, x, channels, name + ".conv", conv);
  return Silu(BatchNorm(b, x, name + ".bn", {.epsilon = 1e-3, .momentum = 0.03}));
}

Value C2fBottleneck(GraphBuilder& b, Value x, int64_t channels, bool shortcut,
                    const std::string& name) {
  const Value inner = ConvNormSilu(b, x, channels, 3, name + ".cv1");
  const Value y = ConvNormSilu(b, inner, channels, 3, name + ".cv2");
  return shortcut ? x + y : y;
}

Value C2f(GraphBuilder& b, Value x, int64_t channels, int64_t layers, bool shortcut,
          const std::string& name) {
  const int64_t half = channels / 2;
  const Value both = ConvNormSilu(b, x, 2 * half, 1, name + ".cv1");
  std::vector<Value> parts = {both};
  Value last = Slice(both, 1, half, 2 * half);
  for (int64_t i = 0; i < layers; ++i) {
    last = C2fBottleneck(b, last, half, shortcut, fmt::format("{}.m.{}", name, i));
    parts.push_back(last);
  }
  return ConvNormSilu(b, Concat(parts, 1), channels, 1, name + ".cv2");
}

// Three max pools in a row: windows of 5, 9 and 13.
Value Sppf(GraphBuilder& b, Value x, int64_t channels, const std::string& name) {
  if (!b.ok()) return {};
  x = ConvNormSilu(b, x, x.dims()[1] / 2, 1, name + ".cv1");
  std::vector<Value> parts = {x};
  for (int i = 0; i < 3; ++i) parts.push_back(MaxPool(parts.back(), 5, 1, 2, name + ".m"));
  return ConvNormSilu(b, Concat(parts, 1), channels, 1, name + ".cv2");
}

// Each pixel four times.
Value Upsample(Value x) {
  if (!x.valid()) return {};
  const Dims d = x.dims();
  const Value pixels = Reshape(x, {d[0], d[1], d[2], 1, d[3], 1});
  return Reshape(Expand(pixels, {d[0], d[1], d[2], 2, d[3], 2}), {d[0], d[1], 2 * d[2], 2 * d[3]});
}

class YoloBuilder {
 public:
  YoloBuilder(GraphBuilder& b, const YoloNet& net) : b_(b), net_(net) {}

  // Features of strides 8, 16 and 32.
  std::vector<Value> Features(Value x) {
    x = Down(Down(x, 64, 0), 128, 1);
    x = Stage(x, 128, 3, true, 2);
    const Value p3 = Stage(Down(x, 256, 3), 256, 6, true, 4);
    const Value p4 = Stage(Down(p3, 512, 5), 512, 6, true, 6);
    x = Stage(Down(p4, 1024, 7), 1024, 3, true, 8);
    const Value p5 = Sppf(b_, x, ScaledChannels(net_, 1024), "model.9");
    const Value up4 = Stage(Concat({Upsample(p5), p4}, 1), 512, 3, false, 12);
    const Value out3 = Stage(Concat({Upsample(up4), p3}, 1), 256, 3, false, 15);
    const Value out4 = Stage(Concat({Down(out3, 256, 16), up4}, 1), 512, 3, false, 18);
    const Value out5 = Stage(Concat({Down(out4, 512, 19), p5}, 1), 1024, 3, false, 21);
    return {out3, out4, out5};
  }

  std::vector<DetectionMap> Heads(const std::vector<Value>& features, int64_t classes) {
    if (!b_.ok()) return {};
    const int64_t first = features[0].dims()[1];
    const int64_t box_width = std::max<int64_t>(first / 4, 4 * kDistanceBins);
    const int64_t class_width = std::max(first, std::min<int64_t>(classes, 100));
    std::vector<DetectionMap> maps;
    for (size_t i = 0; i < features.size(); ++i) {
      DetectionMap map;
      map.stride = int64_t{8} << i;
      map.distances =
          Branch(features[i], box_width, 4 * kDistanceBins, 1.0, fmt::format("model.22.cv2.{}", i));
      // About five objects on an image of 640x640.
      const double cells = std::pow(640.0 / static_cast<double>(map.stride), 2);
      const double rare = std::log(5.0 / static_cast<double>(classes) / cells);
      map.classes =
          Branch(features[i], class_width, classes, rare, fmt::format("model.22.cv3.{}", i));
      maps.push_back(map);
    }
    return maps;
  }

 private:
  Value Down(Value x, int64_t channels, int layer) {
    return ConvNormSilu(b_, x, ScaledChannels(net_, channels), 3, fmt::format("model.{}", layer),
                        /*stride=*/2);
  }
  Value Stage(Value x, int64_t channels, int64_t layers, bool shortcut, int layer) {
    return C2f(b_, x, ScaledChannels(net_, channels), ScaledDepth(net_, layers), shortcut,
               fmt::format("model.{}", layer));
  }
  // Two convolutions, and one of 1x1 whose bias starts at `bias`.
  Value Branch(Value x, int64_t width, int64_t out, double bias, const std::string& name) {
    x = ConvNormSilu(b_, x, width, 3, name + ".0");
    x = ConvNormSilu(b_, x, width, 3, name + ".1");
    return Conv(b_, x, out, name + ".2", {.kernel = 1, .bias_start = bias});
  }

  GraphBuilder& b_;
  const YoloNet& net_;
};

Result<Graph> BuildYolo(const ModelArguments& arguments, const ModelOptions& options) {
  const YoloNet& net = RowOf(kYoloNets, arguments.model());
  const int64_t size = arguments["image"];
  if (size % kImageMultiple != 0) {
    return Status(ErrorCode::kInvalidModel,
                  fmt::format("{}: image is {}; it must be a multiple of {}", net.name, size,
                              kImageMultiple));
  }
  GraphBuilder b(net.name);
  YoloBuilder builder(b, net);
  const std::vector<Value> features = builder.Features(ImageInput(b, options, {3, size, size}));
  const auto maps = builder.Heads(features, arguments["classes"]);
  if (b.ok()) DetectionEnd(b, options, maps, arguments["boxes"]);
  return b.Build();
}

}  // namespace

BuiltinModel YoloV8Model() {
  const auto like = [](const char* name, const char* size) {
    return ModelVariant{name,
                        fmt::format("YOLOv8-{} as published by Ultralytics: a detector", size)};
  };
  return {.name = "yolov8n",
          .doc = "YOLOv8-n as published by Ultralytics: a detector",
          .parameters = {{"image", "height and width, a multiple of 32", 640, 32, 4096},
                         {"classes", "classes of objects", 80},
                         {"boxes", "most objects of an image", 64, 1, 4096}},
          .variants = {like("yolov8s", "s"), like("yolov8m", "m"), like("yolov8l", "l"),
                       like("yolov8x", "x")},
          .build = BuildYolo,
          .weight_names = YoloWeightNames};
}

}  // namespace ridge
