// Both axes begin at zero, so that linear scaling is a straight line through the corner.
#include "ridge/report/scaling_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/core/units.h"
#include "ridge/report/html.h"
#include "ridge/report/walked_chart.h"

namespace ridge {
namespace {

using Curve = std::vector<const Offer*>;  // of one device, by count

std::vector<Curve> CurvesOf(const std::vector<Offer>& offers) {
  std::vector<Curve> curves;
  for (const Offer& offer : offers) {
    const auto known = std::find_if(curves.begin(), curves.end(), [&](const Curve& curve) {
      return curve[0]->device == offer.device && curve[0]->precision == offer.precision;
    });
    if (known == curves.end()) {
      curves.push_back({&offer});
    } else {
      known->push_back(&offer);
    }
  }
  std::erase_if(curves, [](const Curve& curve) { return curve.size() < 2; });
  for (Curve& curve : curves) {
    std::sort(curve.begin(), curve.end(),
              [](const Offer* a, const Offer* b) { return a->count < b->count; });
  }
  return curves;
}

// 1, 2 or 5 times a power of ten, of which 3 to 7 make `most`.
double LevelStep(double most) {
  const double power = std::pow(10, std::floor(std::log10(most / 3)));
  for (const double times : {5.0, 2.0}) {
    if (most / (times * power) >= 3) return times * power;
  }
  return power;
}

class ScalingDrawing {
 public:
  explicit ScalingDrawing(const Curve& curve) : curve_(curve) {
    const Offer& last = *curve.back();
    counts_ = static_cast<double>(last.count);
    linear_ = last.linear_share ? last.samples_s / *last.linear_share : 0;
    most_ = linear_;
    for (const Offer* offer : curve) most_ = std::max(most_, offer->samples_high_s);
  }

  std::string Text() const {
    WalkedChart chart;
    const Offer& last = *curve_.back();
    chart.caption = fmt::format("{}, {}: {} samples/s by {}", last.device, last.precision,
                                FormatCount(last.samples_s), last.count);
    chart.label = "Samples a second by number of " + last.device;
    chart.wide = kWide;
    chart.high = kBottom + 34;
    chart.drawing = Grid() + Linear() + Band() + Line();
    chart.cursor = "<circle r=\"7\"/>";
    chart.keys = Keys();
    for (const Offer* offer : curve_)
      chart.stops.push_back({X(offer->count), Y(offer->samples_s), StopText(*offer)});
    return WalkedFigure(chart);
  }

 private:
  static constexpr double kWide = 480, kLeft = 64, kRight = 466, kTop = 10, kBottom = 200;

  double X(int64_t count) const {
    return kLeft + (kRight - kLeft) * static_cast<double>(count) / counts_;
  }
  double Y(double rate) const { return kBottom - (kBottom - kTop) * rate / most_; }

  static std::string StopText(const Offer& offer) {
    std::string text = fmt::format("{} x {}: {} samples/s ({} to {})", offer.count, offer.device,
                                   FormatCount(offer.samples_s), FormatCount(offer.samples_low_s),
                                   FormatCount(offer.samples_high_s));
    if (offer.linear_share)
      text += fmt::format(", {} of linear", FormatPercent(*offer.linear_share));
    return text;
  }

  std::string Grid() const {
    const double step = LevelStep(most_);
    std::string text;
    for (double rate = 0; rate <= most_; rate += step)
      text += ChartLevel(kLeft, kRight, Y(rate), FormatCount(rate));
    for (const Offer* offer : curve_) {
      text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                          X(offer->count), kBottom + 16, offer->count);
    }
    return text + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">devices</text>\n",
                              (kLeft + kRight) / 2, kBottom + 31);
  }

  std::string Linear() const {
    if (linear_ <= 0) return "";
    return fmt::format("<path class=\"linear\" d=\"M{} {}L{:.1f} {:.1f}\"/>\n", kLeft, kBottom,
                       kRight, Y(linear_));
  }

  std::string Band() const {
    std::string points;
    for (const Offer* offer : curve_)
      points += fmt::format("{:.1f},{:.1f} ", X(offer->count), Y(offer->samples_high_s));
    for (auto offer = curve_.rbegin(); offer != curve_.rend(); ++offer)
      points += fmt::format("{:.1f},{:.1f} ", X((*offer)->count), Y((*offer)->samples_low_s));
    return fmt::format("<polygon class=\"base\" points=\"{}\"/>\n", points);
  }

  std::string Line() const {
    std::string path, marks;
    for (const Offer* offer : curve_) {
      const double x = X(offer->count), y = Y(offer->samples_s);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
      marks += fmt::format(
          "<circle class=\"rate\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}</title></circle>\n",
          x, y, HtmlEscaped(StopText(*offer)));
    }
    return fmt::format("<path class=\"rate\" d=\"{}\"/>\n{}", path, marks);
  }

  std::string Keys() const {
    return ChartKey("rate", "samples/s, with range") +
           (linear_ > 0 ? ChartKey("linear", "linear") : "");
  }

  const Curve& curve_;
  double counts_ = 1, linear_ = 0, most_ = 0;
};

}  // namespace

std::string ScalingCharts(const std::vector<Offer>& offers, size_t most) {
  std::string charts;
  size_t drawn = 0;
  for (const Curve& curve : CurvesOf(offers)) {
    if (drawn == most) break;
    charts += ScalingDrawing(curve).Text();
    ++drawn;
  }
  return charts.empty() ? "" : "<div class=\"charts\">\n" + charts + "</div>\n";
}

}  // namespace ridge
