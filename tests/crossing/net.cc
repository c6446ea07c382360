#include "tests/crossing/net.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <numeric>
#include <random>
#include <set>

namespace ridge::crossing {
namespace {

using Dims = std::vector<int64_t>;

int64_t Count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

std::string Join(const Dims& dims) { return fmt::format("{}", fmt::join(dims, ",")); }

// With the batch in front.
std::string Whole(const Dims& dims) {
  return dims.empty() ? fmt::format("{}", kBatch) : fmt::format("{},{}", kBatch, Join(dims));
}

class Drawer {
 public:
  explicit Drawer(uint64_t seed) : random_(static_cast<std::mt19937::result_type>(seed)) {}

  Net Draw() {
    net_.dtype = Below(2) == 0 ? "f64" : "f32";
    Inputs();
    for (int layer = 4 + Below(14); layer > 0; --layer) Layer();
    Scale(static_cast<int>(net_.lines.size()) - 1);  // something to train
    const int last = static_cast<int>(net_.lines.size()) - 1;
    net_.heads = {last};
    for (int more = Below(3); more > 0; --more) net_.heads.push_back(Any());
    return std::move(net_);
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  int64_t Between(int64_t first, int64_t last) {
    return first + Below(static_cast<int>(last - first + 1));
  }

  // Later lines more often: nets are deep rather than wide.
  int Any() {
    const int count = static_cast<int>(net_.lines.size());
    return Below(2) == 0 ? count - 1 - Below(std::min(count, 3)) : Below(count);
  }
  const Dims& DimsOf(int line) const { return net_.lines[static_cast<size_t>(line)].dims; }

  int AnyOfRank(size_t rank) {
    std::vector<int> found;
    for (int i = 0; i < static_cast<int>(net_.lines.size()); ++i) {
      if (DimsOf(i).size() == rank) found.push_back(i);
    }
    return found.empty() ? -1 : found[static_cast<size_t>(Below(static_cast<int>(found.size())))];
  }

  int OfDims(const Dims& dims, int but) {
    std::vector<int> found;
    for (int i = 0; i < static_cast<int>(net_.lines.size()); ++i) {
      if (DimsOf(i) == dims && i != but) found.push_back(i);
    }
    return found.empty() ? but : found[static_cast<size_t>(Below(static_cast<int>(found.size())))];
  }

  int Add(const std::string& call, std::vector<int> reads, Dims dims,
          std::vector<std::string> declares = {}, bool more = false) {
    Line line;
    line.name = fmt::format("v{}", net_.lines.size());
    if (more) line.more_results = fmt::format(", {0}m, {0}r", line.name);
    line.call = call;
    line.reads = std::move(reads);
    line.dims = std::move(dims);
    line.declares = std::move(declares);
    net_.lines.push_back(std::move(line));
    return static_cast<int>(net_.lines.size()) - 1;
  }

  // A new parameter, or one that is there already.
  std::string Param(const Dims& dims, const std::string& init, std::vector<std::string>& declares) {
    const std::string type = fmt::format("{}[{}]", net_.dtype, Join(dims));
    const std::string key = type + init;
    if (const auto known = params_.find(key); known != params_.end() && Below(4) == 0) {
      declares.push_back(known->second);
      return known->second.substr(0, known->second.find(' '));
    }
    const std::string name = fmt::format("p{}", count_++);
    declares.push_back(fmt::format("{} = parameter {} init={}", name, type, init));
    params_[key] = declares.back();
    return name;
  }

  void Input(const std::string& name, const Dims& dims) {
    std::string more = dims.empty() ? "" : "," + Join(dims);
    Add("", {}, dims, {fmt::format("{} = input {}[batch={}{}]", name, net_.dtype, kBatch, more)});
    net_.lines.back().name = name;
  }

  void Inputs() {
    Input("x", {Between(1, 6)});
    if (Below(3) == 0) Input("image", {Between(1, 3), Between(4, 6), Between(4, 6)});
    if (Below(3) == 0) Input("rows", {Between(1, 4), Between(2, 6)});
  }

  void Layer() {
    const int v = Any();
    using Make = void (Drawer::*)(int);
    static constexpr Make kMakes[] = {
        &Drawer::Unary,   &Drawer::Unary,     &Drawer::Binary,    &Drawer::Binary,
        &Drawer::Linear,  &Drawer::Linear,    &Drawer::Linear,    &Drawer::Scale,
        &Drawer::Softmax, &Drawer::Norm,      &Drawer::View,      &Drawer::Permute,
        &Drawer::Concat,  &Drawer::Slice,     &Drawer::Centre,    &Drawer::Conv,
        &Drawer::Conv,    &Drawer::Pool,      &Drawer::Dropout,   &Drawer::Attention,
        &Drawer::Expand,  &Drawer::BatchNorm, &Drawer::BatchNorm, &Drawer::Gather,
        &Drawer::Sum,     &Drawer::Running,   &Drawer::Wide};
    (this->*kMakes[static_cast<size_t>(Below(static_cast<int>(std::size(kMakes))))])(v);
  }

  void Unary(int v) {
    static constexpr const char* kOps[] = {"tanh", "sigmoid", "gelu", "relu", "neg", "silu", "abs"};
    Add(fmt::format("{}($0)", kOps[Below(std::size(kOps))]), {v}, DimsOf(v));
  }

  void Binary(int v) {
    static constexpr const char* kOps[] = {"add", "sub", "mul", "add", "maximum"};
    const int other = OfDims(DimsOf(v), v);
    Add(fmt::format("{}($0, $1)", kOps[Below(std::size(kOps))]), {v, other}, DimsOf(v));
  }

  void Linear(int v) {
    Dims dims = DimsOf(v);
    if (dims.empty() || dims.size() > 2) return Unary(v);
    std::vector<std::string> declares;
    const bool turned = Below(2) == 0;
    const int64_t from = dims.back(), to = Below(4) == 0 ? 16 : Between(1, 6);
    const std::string w = Param(turned ? Dims{to, from} : Dims{from, to}, "normal(0.4)", declares);
    std::string bias;
    if (Below(3) == 0) bias = ", " + Param({to}, "normal(0.3)", declares);
    dims.back() = to;
    Add(fmt::format("matmul($0, {}{}{})", w, bias, turned ? ", transpose_b=1" : ""), {v}, dims,
        declares);
  }

  void Scale(int v) {
    const Dims& dims = DimsOf(v);
    if (dims.empty()) return Unary(v);
    std::vector<std::string> declares;
    const std::string w = Param({dims.back()}, "normal(1)", declares);
    Add(fmt::format("{}($0, {})", Below(2) == 0 ? "mul" : "add", w), {v}, dims, declares);
  }

  void Softmax(int v) {
    const Dims& dims = DimsOf(v);
    if (dims.empty()) return Unary(v);
    Add(fmt::format("softmax($0, axis={})", dims.size()), {v}, dims);
  }

  void Norm(int v) {
    const Dims& dims = DimsOf(v);
    if (dims.empty() || dims.back() == 1) return Unary(v);
    std::vector<std::string> declares;
    const std::string w = Below(2) == 0 ? ", " + Param({dims.back()}, "normal(1)", declares) : "";
    Add(fmt::format("layer_norm($0{})", w), {v}, dims, declares, /*more=*/true);
  }

  void View(int v) {
    const Dims& dims = DimsOf(v);
    const int64_t count = Count(dims);
    Dims to{count};
    for (int64_t part = 2; part < count; ++part) {
      if (count % part == 0 && Below(2) == 0) to = {part, count / part};
    }
    if (to == dims) to = {1, count};
    Add(fmt::format("reshape($0, dims=[{}])", Whole(to)), {v}, to);
  }

  void Permute(int v) {
    const Dims& dims = DimsOf(v);
    if (dims.size() < 2) return Unary(v);
    Dims to = dims;
    std::swap(to[dims.size() - 1], to[dims.size() - 2]);
    std::vector<size_t> order(dims.size() + 1);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[dims.size()], order[dims.size() - 1]);
    Add(fmt::format("transpose($0, permutation=[{}])", fmt::join(order, ",")), {v}, to);
  }

  void Concat(int v) {
    Dims to = DimsOf(v);
    if (to.empty() || Count(to) > 200) return Unary(v);
    const int other = OfDims(to, v);
    const auto axis = static_cast<size_t>(Below(static_cast<int>(to.size())));
    to[axis] *= 2;
    Add(fmt::format("concat($0, $1, axis={})", axis + 1), {v, other}, to);
  }

  void Slice(int v) {
    Dims to = DimsOf(v);
    if (to.empty()) return Unary(v);
    const auto axis = static_cast<size_t>(Below(static_cast<int>(to.size())));
    if (to[axis] < 2) return Unary(v);
    const int64_t start = Between(0, to[axis] - 1), end = Between(start + 1, to[axis]);
    to[axis] = end - start;
    Add(fmt::format("slice($0, axes=[{}], starts=[{}], ends=[{}])", axis + 1, start, end), {v}, to);
  }

  void Centre(int v) {
    const Dims& dims = DimsOf(v);
    if (dims.empty()) return Unary(v);
    Dims one = dims;
    one.back() = 1;
    const int m = Add(fmt::format("{}($0, axes=[{}], keep_dims=1)",
                                  Below(2) == 0 ? "reduce_mean" : "reduce_max", dims.size()),
                      {v}, one);
    Add("sub($0, $1)", {v, m}, DimsOf(v));
  }

  void Conv(int) {
    const int v = AnyOfRank(3);
    if (v < 0) return Linear(Any());
    Dims to = DimsOf(v);
    std::vector<std::string> declares;
    const int64_t from = to[0];
    to[0] = Below(4) == 0 ? 20 : Between(1, 4);
    const std::string w = Param({to[0], from, 3, 3}, "normal(0.3)", declares);
    Add(fmt::format("conv($0, {}, padding=[1,1,1,1])", w), {v}, to, declares);
  }

  void Pool(int) {
    const int v = AnyOfRank(3);
    if (v < 0 || DimsOf(v)[1] < 2 || DimsOf(v)[2] < 2) return Unary(Any());
    Dims to = DimsOf(v);
    for (const size_t axis : {1, 2}) to[axis] = (to[axis] - 2) / 2 + 1;
    if (Below(2) == 0) {
      Add("max_pool($0, kernel=[2,2], stride=[2,2])", {v}, to);
      net_.lines.back().more_results = ", " + net_.lines.back().name + "i";
    } else {
      Add("avg_pool($0, kernel=[2,2], stride=[2,2])", {v}, to);
    }
  }

  void Dropout(int v) {
    Add(fmt::format("dropout($0, rng, rate=0.3, stream={})", count_++), {v}, DimsOf(v),
        {"rng = input i64[3]"});
  }

  void Attention(int) {
    const int v = AnyOfRank(3);
    if (v < 0) return Unary(Any());
    const Dims dims = DimsOf(v);
    const int other = OfDims(dims, v);
    Add("attention($0, $1, $0, scale=0.5)", {v, other}, dims);
    net_.lines.back().more_results = ", " + net_.lines.back().name + "l";
  }

  // Couples the samples: such nets are not cut.
  void BatchNorm(int v) {
    const Dims& dims = DimsOf(v);
    if (dims.empty() || dims.size() == 2 || Below(3) == 0) return Norm(v);
    std::vector<std::string> declares;
    const std::string scale = Param({dims[0]}, "normal(1)", declares);
    const std::string bias = Param({dims[0]}, "normal(0.5)", declares);
    const int y =
        Add(fmt::format("batch_norm($0, {}, {})", scale, bias), {v}, dims, declares, /*more=*/true);
    if (Below(2) == 0) Add("relu($0)", {y}, DimsOf(y));
  }

  void Gather(int) {
    std::vector<std::string> declares;
    const int64_t width = Between(1, 5);
    const std::string table = Param({4, width}, "normal(1)", declares);
    declares.push_back(fmt::format("ids = input i64[batch={},3]", kBatch));
    Add(fmt::format("gather({}, ids)", table), {}, {3, width}, declares);
  }

  void Sum(int v) {
    Dims to = DimsOf(v);
    if (to.size() < 2) return Unary(v);
    const auto axis = static_cast<size_t>(Below(static_cast<int>(to.size())));
    to.erase(to.begin() + static_cast<std::ptrdiff_t>(axis));
    Add(fmt::format("{}($0, axes=[{}])", Below(2) == 0 ? "reduce_sum" : "reduce_mean", axis + 1),
        {v}, to);
  }

  // A state that is read before or after its next contents are made: such nets are not cut.
  void Running(int v) {
    const Dims dims = DimsOf(v);
    if (dims.empty() || Below(2) == 0) return Unary(v);
    std::vector<int64_t> axes(dims.size());
    std::iota(axes.begin(), axes.end(), 0);
    const std::string s = fmt::format("s{}", count_++);
    const std::string state =
        fmt::format("{} = state {}[{}] init=constant(0.5)", s, net_.dtype, dims.back());
    const bool late = Below(2) == 0;
    const int y = late ? Add("tanh($0)", {v}, dims, {state})
                       : Add(fmt::format("add($0, {})", s), {v}, dims, {state});
    net_.lines.back().then = fmt::format(
        "  {0}m = reduce_mean({1}, axes=[{2}])\n  {0}n = add({0}, {0}m)\n  update {0} = {0}n\n", s,
        net_.lines.back().name, Join(axes));
    if (late) Add(fmt::format("add($0, {})", s), {y}, dims, {state});
  }

  // Weights that kernels want packed.
  void Wide(int v) {
    if (DimsOf(v).size() != 1) return Linear(v);
    std::vector<std::string> declares;
    const int64_t from = DimsOf(v)[0];
    const std::string up = Param({144, from}, "normal(0.2)", declares);
    const int wide = Add(fmt::format("matmul($0, {}, transpose_b=1)", up), {v}, {144}, declares);
    declares.clear();
    const std::string down = Param({80, 144}, "normal(0.1)", declares);
    Add(fmt::format("matmul($0, {}, transpose_b=1)", down), {wide}, {80}, declares);
  }

  // A parameter that is the same for all samples.
  void Expand(int v) {
    const Dims& dims = DimsOf(v);
    if (dims.empty()) return Unary(v);
    std::vector<std::string> declares;
    Dims one{1};
    one.insert(one.end(), dims.begin(), dims.end());
    const std::string w = Param(one, "normal(0.5)", declares);
    const std::string name = fmt::format("e{}", count_++);
    declares.push_back(fmt::format("{} = expand({}, dims=[{}])", name, w, Whole(dims)));
    Add(fmt::format("add($0, {})", name), {v}, dims, declares);
  }

  std::mt19937 random_;
  Net net_;
  std::map<std::string, std::string> params_;  // by type and init
  int count_ = 0;
};

std::string CallOf(const Net& net, const Line& line) {
  std::string text;
  for (size_t i = 0; i < line.call.size(); ++i) {
    if (line.call[i] != '$') {
      text += line.call[i];
      continue;
    }
    const int read = line.reads[static_cast<size_t>(line.call[++i] - '0')];
    text += net.lines[static_cast<size_t>(read)].name;
  }
  return text;
}

// Each head adds the mean of a curved function of it; the first one is a classifier's where it
// has the shape for that.
std::string LossOf(const Net& net) {
  std::string text, sum;
  for (size_t h = 0; h < net.heads.size(); ++h) {
    const Line& head = net.lines[static_cast<size_t>(net.heads[h])];
    const bool classes = h == 0 && head.dims.size() == 1 && head.dims[0] > 1;
    if (classes) {
      text += fmt::format("  label = input i64[batch={}]\n", kBatch);
      text += fmt::format("  h{} = softmax_cross_entropy({}, label)\n", h, head.name);
    } else {
      text += fmt::format("  h{}t = tanh({})\n  h{}s = sub(h{}t, half)\n", h, head.name, h, h);
      text += fmt::format("  h{0} = mul(h{0}s, h{0}s)\n", h);
    }
    const bool last = h + 1 == net.heads.size();
    const std::string mean = last && h == 0 ? "loss" : fmt::format("m{}", h);
    text += fmt::format("  {} = reduce_mean(h{})\n", mean, h);
    if (h > 0) {
      const std::string total = last ? "loss" : fmt::format("t{}", h);
      text += fmt::format("  {} = add({}, m{})\n", total, sum, h);
      sum = total;
    } else {
      sum = mean;
    }
  }
  return text;
}

}  // namespace

Net DrawNet(uint64_t seed) { return Drawer(seed).Draw(); }

std::vector<bool> NeededLines(const Net& net) {
  std::vector<bool> needed(net.lines.size(), false);
  for (const int head : net.heads) needed[static_cast<size_t>(head)] = true;
  for (size_t i = net.lines.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const int read : net.lines[i].reads) needed[static_cast<size_t>(read)] = true;
  }
  return needed;
}

std::string TextOf(const Net& net) {
  const std::vector<bool> needed = NeededLines(net);
  std::string text = "graph net\n";
  std::set<std::string> declared;
  const auto declare = [&](const std::string& line) {
    if (declared.insert(line).second) text += "  " + line + "\n";
  };
  for (size_t i = 0; i < net.lines.size(); ++i) {
    const Line& line = net.lines[i];
    if (!needed[i]) continue;
    for (const std::string& declaration : line.declares) declare(declaration);
    if (!line.call.empty())
      text += fmt::format("  {}{} = {}\n", line.name, line.more_results, CallOf(net, line));
    text += line.then;
  }
  text += fmt::format("  half = constant {}[] 0.5\n", net.dtype);
  return text + LossOf(net) + "  output loss\n";
}

}  // namespace ridge::crossing
