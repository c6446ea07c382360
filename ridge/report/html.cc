#include "ridge/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/core/units.h"
#include "ridge/graph/base64.h"

namespace ridge {
namespace {

constexpr const char* kStyle =
    ":root{color-scheme:light dark;--back:#fff;--text:#1c1e21;--soft:#62676f;--line:#d9dce1;"
    "--card:#f5f6f8;--bar:#7aa6d8;--c0:#2f6fb7;--c1:#d9822b;--c2:#3a9a5b;--c3:#a4549e;"
    "--good:#2c8a4b;--bad:#c23b3b}\n"
    "@media screen and "
    "(prefers-color-scheme:dark){:root{--back:#15171b;--text:#e5e7eb;--soft:#9aa1ab;"
    "--line:#343942;--card:#1e2126;--bar:#4d7db3;--c0:#6aa9ec;--c1:#f0a35e;--c2:#63c788;"
    "--c3:#cf8bca;--good:#63c788;--bad:#ef7d7d}}\n"
    "*{box-sizing:border-box}\n"
    "body{font:14px/1.45 system-ui,sans-serif;margin:0 auto;padding:20px;max-width:1120px;"
    "background:var(--back);color:var(--text)}\n"
    "h1{font-size:21px;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:16px;margin:30px 0 8px}\n"
    "p{margin:4px 0}.soft{color:var(--soft)}.bad{color:var(--bad)}.good{color:var(--good)}\n"
    ".scroll{overflow-x:auto}\n"
    "table{border-collapse:collapse}td,th{padding:3px 14px 3px 0;text-align:right;"
    "white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    "td:first-child,th:first-child,.texts td,.texts th{text-align:left}\n"
    ".texts td{white-space:normal;overflow-wrap:anywhere}\n"
    "th{border-bottom:1px solid var(--line);color:var(--soft);font-weight:500}\n"
    ".bar{display:inline-block;height:10px;background:var(--bar);border-radius:2px;"
    "vertical-align:middle}.room{display:inline-block;width:min(160px,20vw);text-align:left}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:16px}\n"
    "figure{margin:0;background:var(--card);border-radius:6px;padding:10px 12px}\n"
    "figcaption{font-weight:600;margin-bottom:4px}\n"
    "svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);font-size:11px}\n"
    "svg .grid{stroke:var(--line);stroke-width:1}svg path{fill:none;stroke-width:1.8}\n"
    ".key{margin-top:4px;color:var(--soft)}.key span{margin-right:14px}\n"
    ".key i{display:inline-block;width:14px;height:3px;vertical-align:middle;margin-right:5px}\n"
    "details{margin-top:8px}summary{cursor:pointer}\n";

// "0.0123", "12,300".
std::string Number(double value) {
  constexpr double kLarge = 1000;
  return std::abs(value) < kLarge ? fmt::format("{:.3g}", value) : FormatCount(value);
}

// ---- charts

constexpr double kWidth = 480, kHeight = 220, kLeft = 58, kRight = 10, kTop = 8, kBottom = 22;
constexpr int kColours = 4;

struct Extent {
  double least = 0, most = 0;
  bool known = false;

  void Add(double value) {
    if (!std::isfinite(value)) return;
    least = known ? std::min(least, value) : value;
    most = known ? std::max(most, value) : value;
    known = true;
  }
  double At(double value) const { return most > least ? (value - least) / (most - least) : 0.5; }
};

struct ChartExtent {
  Extent x, y;
};

ChartExtent ExtentOf(const LineChart& chart) {
  ChartExtent extent;
  for (const ChartLine& line : chart.lines) {
    for (const auto& [x, y] : line.points) {
      if (!std::isfinite(y) || !std::isfinite(x)) continue;
      extent.x.Add(x);
      extent.y.Add(y);
    }
  }
  return extent;
}

double PlaceX(const ChartExtent& extent, double x) {
  return kLeft + (kWidth - kLeft - kRight) * extent.x.At(x);
}
double PlaceY(const ChartExtent& extent, double y) {
  return kHeight - kBottom - (kHeight - kTop - kBottom) * extent.y.At(y);
}

std::string Grid(const LineChart& chart, const ChartExtent& extent) {
  constexpr int kLines = 4;
  std::string text;
  const int lines = extent.y.most > extent.y.least ? kLines : 0;
  for (int i = 0; i <= lines; ++i) {
    const double share = lines == 0 ? 0.5 : static_cast<double>(i) / lines;
    const double value = extent.y.least + share * (extent.y.most - extent.y.least);
    const double y = PlaceY(extent, value);
    text += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft, kWidth - kRight, y, y, kLeft - 6, y + 4, Number(value));
  }
  text += fmt::format(
      "<text x=\"{}\" y=\"{}\">{} {}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
      kLeft, kHeight - 6, HtmlEscaped(chart.x_name), Number(extent.x.least), kWidth - kRight,
      kHeight - 6, Number(extent.x.most));
  return text;
}

// A line breaks where a value is not finite.  Few points are marked, each with its numbers.
std::string Drawn(const ChartLine& line, const ChartExtent& extent, const std::string& colour) {
  constexpr size_t kMostMarks = 200;
  std::string path, marks;
  bool begins = true;
  for (const auto& [x, y] : line.points) {
    if (!std::isfinite(y) || !std::isfinite(x)) {
      begins = true;
      continue;
    }
    const double px = PlaceX(extent, x), py = PlaceY(extent, y);
    path += fmt::format("{}{:.1f} {:.1f}", begins ? "M" : "L", px, py);
    begins = false;
    if (line.points.size() > kMostMarks) continue;
    marks += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"><title>{}: {} at {}</title>"
        "</circle>\n",
        px, py, line.points.size() > 40 ? 1.5 : 3, colour, HtmlEscaped(line.name), Number(y),
        Number(x));
  }
  return fmt::format("<path d=\"{}\" stroke=\"{}\"/>\n{}", path, colour, marks);
}

}  // namespace

std::string HtmlEscaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return out;
}

std::string HtmlPage(const std::string& title, const std::string& body, const std::string& style) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>{0}</title>\n<style>\n{1}{2}</style></head>\n<body>\n<h1>{0}</h1>\n{3}</body></"
      "html>\n",
      HtmlEscaped(title), kStyle, style, body);
}

std::string HtmlTable(const std::vector<std::vector<std::string>>& rows, bool texts) {
  std::string out =
      fmt::format("<div class=\"scroll\"><table{}>\n", texts ? " class=\"texts\"" : "");
  for (size_t r = 0; r < rows.size(); ++r) {
    const char* cell = r == 0 ? "th" : "td";
    out += "<tr>";
    for (const std::string& text : rows[r]) out += fmt::format("<{0}>{1}</{0}>", cell, text);
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string HtmlPicture(const RgbPicture& picture, const std::string& text,
                        const std::string& origin) {
  const std::string png = EncodePng(picture);
  return fmt::format(
      "<img width=\"{}\" height=\"{}\" title=\"{}\" alt=\"{}\" src=\"data:image/png;base64,{}\">\n",
      picture.size.width, picture.size.height, HtmlEscaped(origin), HtmlEscaped(text),
      EncodeBase64({reinterpret_cast<const uint8_t*>(png.data()), png.size()}));
}

std::string HtmlBar(double share) {
  const double percent = std::isfinite(share) ? 100 * std::clamp(share, 0.0, 1.0) : 0;
  return fmt::format(
      "<span class=\"room\"><span class=\"bar\" style=\"width:{:.1f}%\"></span></span>", percent);
}

std::string SvgLineChart(const LineChart& chart) {
  const ChartExtent extent = ExtentOf(chart);
  if (!extent.y.known) return "";
  std::string lines, keys;
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const std::string colour = fmt::format("var(--c{})", i % kColours);
    lines += Drawn(chart.lines[i], extent, colour);
    if (chart.lines.size() == 1) continue;
    keys += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", colour,
                        HtmlEscaped(chart.lines[i].name));
  }
  return fmt::format(
      "<figure><figcaption>{}</figcaption>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\">\n{}{}</svg>\n<div class=\"key\">{}</div></figure>\n",
      HtmlEscaped(chart.title), kWidth, kHeight, HtmlEscaped(chart.title), Grid(chart, extent),
      lines, keys);
}

namespace {

// Where the matrix begins, by the longest name.
double RoomForNames(const std::vector<std::string>& names) {
  constexpr double kLetter = 6.5, kLeast = 24, kMost = 150;
  size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, name.size());
  return std::clamp(kLetter * static_cast<double>(longest) + 14, kLeast, kMost);
}

class ConfusionDrawing {
 public:
  ConfusionDrawing(const std::vector<std::string>& names, const std::vector<int64_t>& counts)
      : names_(names),
        counts_(counts),
        cell_(names.size() <= 12   ? 40
              : names.size() <= 30 ? 24
                                   : 12),
        room_(RoomForNames(names)) {}

  std::string Text() const {
    const double side = room_ + cell_ * static_cast<double>(names_.size());
    std::string out = fmt::format(
        "<div class=\"scroll\"><svg viewBox=\"0 0 {0} {0}\" style=\"max-width:{0}px;"
        "min-width:{1}px\" role=\"img\" aria-label=\"confusion matrix\">\n",
        side, std::min(side, 320.0));
    for (size_t row = 0; row < names_.size(); ++row) out += Row(row);
    return out + "</svg></div>\n";
  }

 private:
  double Place(size_t i) const { return room_ + cell_ * static_cast<double>(i); }
  std::string Name(size_t i) const {
    constexpr size_t kMostBytes = 22;
    const std::string& name = names_[i];
    return HtmlEscaped(name.size() <= kMostBytes ? name : FirstBytes(name, kMostBytes));
  }
  // Not in the middle of a character of UTF-8.
  static std::string FirstBytes(const std::string& text, size_t count) {
    while (count > 0 && (static_cast<unsigned char>(text[count]) & 0xc0) == 0x80) --count;
    return text.substr(0, count);
  }

  std::string Row(size_t row) const {
    const size_t n = names_.size();
    int64_t total = 0;
    for (size_t column = 0; column < n; ++column) total += counts_[row * n + column];
    std::string out = fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
                                  room_ - 6, Place(row) + cell_ / 2 + 4, Name(row));
    out += fmt::format("<text transform=\"translate({} {}) rotate(-60)\">{}</text>\n",
                       Place(row) + cell_ / 2, room_ - 6, Name(row));
    for (size_t column = 0; column < n; ++column) out += Cell(row, column, total);
    return out;
  }

  std::string Cell(size_t row, size_t column, int64_t total) const {
    const int64_t count = counts_[row * names_.size() + column];
    const double share = total > 0 ? static_cast<double>(count) / static_cast<double>(total) : 0;
    std::string out = fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" "
        "fill-opacity=\"{:.3f}\" stroke=\"var(--line)\"><title>{} as {}: {} of {}</title></rect>\n",
        Place(column), Place(row), cell_, cell_, row == column ? "var(--good)" : "var(--bad)",
        0.75 * share, HtmlEscaped(names_[row]), HtmlEscaped(names_[column]), count, total);
    constexpr double kLeastForText = 20;
    if (cell_ < kLeastForText || count == 0) return out;
    return out + fmt::format(
                     "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" style=\"fill:var(--text)\">"
                     "{}</text>\n",
                     Place(column) + cell_ / 2, Place(row) + cell_ / 2 + 4, count);
  }

  const std::vector<std::string>& names_;
  const std::vector<int64_t>& counts_;
  const double cell_, room_;
};

}  // namespace

std::string SvgConfusion(const std::vector<std::string>& names,
                         const std::vector<int64_t>& counts) {
  return ConfusionDrawing(names, counts).Text();
}

}  // namespace ridge
