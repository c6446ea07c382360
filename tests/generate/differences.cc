#include "tests/generate/differences.h"

#include <fmt/format.h>

#include <cmath>

#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

using Direction = std::map<std::string, Tensor>;

class Line {
 public:
  Line(const Graph& graph, const NamedTensors& leaves, Direction direction)
      : graph_(graph), leaves_(leaves), direction_(std::move(direction)) {}

  // The loss at leaves + t * direction.
  Result<double> At(double t) const {
    NamedTensors moved = leaves_;
    for (const auto& [name, d] : direction_) {
      const Tensor& from = leaves_.at(name);
      Tensor to(from.type());
      for (int64_t i = 0; i < from.elements(); ++i)
        to.as_mutable<double>()[i] = from.at(i) + t * d.at(i);
      moved[name] = std::move(to);
    }
    RIDGE_ASSIGN_OR_RETURN(const std::vector<Tensor> values, EvaluateGraph(graph_, moved));
    return values[static_cast<size_t>(graph_.FindOutput("loss"))].at(0);
  }

 private:
  const Graph& graph_;
  const NamedTensors& leaves_;
  const Direction direction_;
};

struct Slope {
  double value = 0, error = 0;
  double bend = 0;  // by how much right and left differ, less what a smooth function would
};

// Central differences of two steps, extrapolated (Richardson); their difference tells the error.
Result<Slope> SlopeAt(const Line& line, double here, double h) {
  double side[4];
  const double at[] = {h, -h, h / 2, -h / 2};
  for (int i = 0; i < 4; ++i) {
    RIDGE_ASSIGN_OR_RETURN(side[i], line.At(at[i]));
  }
  const double wide = (side[0] - side[1]) / (2 * h), near = (side[2] - side[3]) / h;
  const double noise = 0x1p-50 * (std::abs(here) + std::abs(side[0])) / h;
  const double wide_bend = (side[0] - 2 * here + side[1]) / h;
  const double near_bend = (side[2] - 2 * here + side[3]) / (h / 2);
  return Slope{(4 * near - wide) / 3, std::abs(near - wide) / 3 + noise,
               std::abs(near_bend - wide_bend / 2)};
}

struct Projection {
  double value = 0, magnitude = 0;
};

Projection Project(const NamedTensors& gradients, const Direction& direction) {
  Projection sum;
  for (const auto& [name, d] : direction) {
    const Tensor& g = gradients.at(name);
    for (int64_t i = 0; i < d.elements(); ++i) {
      sum.value += g.at(i) * d.at(i);
      sum.magnitude += std::abs(g.at(i) * d.at(i));
    }
  }
  return sum;
}

Result<Difference> CompareAlong(const Line& line, const Projection& projection,
                                const std::string& what, std::string& text) {
  constexpr double kAllowed = 1e-6, kKnown = 1e-4;
  RIDGE_ASSIGN_OR_RETURN(const double here, line.At(0));
  bool differs = false;
  for (const double h : {1e-3, 1e-4, 1e-5, 1e-6}) {
    RIDGE_ASSIGN_OR_RETURN(const Slope slope, SlopeAt(line, here, h));
    const double scale = projection.magnitude + std::abs(slope.value) + 1e-3;
    const double off = std::abs(slope.value - projection.value);
    if (off <= kAllowed * scale + slope.error * 0.01) return Difference::kAgrees;
    // Whether the slope is known well enough to say that this is wrong.  If so for all small
    // steps, it is: a kink that a step just touches is not seen by the next.
    differs =
        slope.error <= kKnown * scale && slope.bend <= kKnown * scale && off > 10 * slope.error;
    if (differs)
      text = fmt::format("along {} the slope is {}, that of the gradients {}", what, slope.value,
                         projection.value);
  }
  return differs ? Difference::kDiffers : Difference::kKink;
}

}  // namespace

Result<Difference> CompareWithDifferences(const Graph& forward, const NamedTensors& leaves,
                                          const NamedTensors& gradients, Dice dice,
                                          std::string& text) {
  Direction all;
  for (const auto& [name, gradient] : gradients) {
    if (name == "loss" || !leaves.contains(name)) continue;
    Tensor d({DType::kF64, gradient.type().dims});
    for (int64_t i = 0; i < d.elements(); ++i) d.as_mutable<double>()[i] = dice.Between(-1, 1);
    all[name] = std::move(d);
  }
  if (all.empty()) return Difference::kAgrees;
  auto one = all.begin();
  std::advance(one, dice.Below(static_cast<int64_t>(all.size())));
  const Direction alone = {*one};
  RIDGE_ASSIGN_OR_RETURN(const Difference whole,
                         CompareAlong(Line(forward, leaves, all), Project(gradients, all),
                                      "all leaves together", text));
  if (whole == Difference::kDiffers) return whole;
  RIDGE_ASSIGN_OR_RETURN(const Difference part,
                         CompareAlong(Line(forward, leaves, alone), Project(gradients, alone),
                                      "'" + one->first + "'", text));
  return part == Difference::kAgrees ? whole : part;
}

}  // namespace ridge
