// What a cursor can reach is an array of {x, y, text} beside the SVG, in units of its view box.
#include "ridge/report/walked_chart.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ridge/report/html.h"

namespace ridge {

const char kChartStyle[] =
    ".walk{overflow-x:auto}.walk:focus-visible{outline:2px solid var(--c0);outline-offset:2px}\n"
    ".walk svg{min-width:640px}.charts .walk svg{min-width:0}figure.walks{margin-bottom:12px}\n"
    ".walks .told{min-height:3em}.walks .cursor{stroke:var(--c3);stroke-width:2;fill:none}\n"
    "svg .area{fill:var(--c0);fill-opacity:.35;stroke:var(--c0)}\n"
    "svg .base{fill:var(--c0);fill-opacity:.35}svg .peak{fill:var(--c1)}\n"
    "svg text.name{fill:var(--text)}\n"
    ".forward{fill:var(--c0);background:var(--c0)}.backward{fill:var(--c1);background:var(--c1)}\n"
    ".optimizer{fill:var(--c2);background:var(--c2)}\n"
    ".evaluation{fill:var(--c3);background:var(--c3)}\n"
    "circle.rate,i.rate{fill:var(--c0);background:var(--c0)}path.rate{stroke:var(--c0)}\n"
    "path.linear{stroke:var(--soft);stroke-dasharray:4 4}"
    "i.linear{background:repeating-linear-gradient(90deg,var(--soft) 0 4px,transparent 4px 6px)}\n"
    ".compute{fill:var(--c1);background:var(--c1)}.memory{fill:var(--c0);background:var(--c0)}\n"
    ".latency{fill:var(--soft);background:var(--soft)}svg .roof{stroke:var(--text)}\n"
    "@media print{.walk svg{min-width:0}.walks .told,.walks .cursor{display:none}}\n";

const char kChartScript[] = R"(<script>
for (const figure of document.querySelectorAll('.walks')) {
  const chart = figure.querySelector('.walk'), svg = figure.querySelector('svg');
  const nodes = JSON.parse(figure.querySelector('script').textContent);
  const told = figure.querySelector('.told'), cursor = figure.querySelector('.cursor');
  let at = -1;
  const show = i => {
    at = Math.max(0, Math.min(nodes.length - 1, i));
    cursor.setAttribute('transform', `translate(${nodes[at].x} ${nodes[at].y})`);
    cursor.style.display = '';
    told.textContent = nodes[at].text;
    chart.setAttribute('aria-valuenow', at + 1);
    chart.setAttribute('aria-valuetext', nodes[at].text);
  };
  const nearest = (x, y) => {
    if ('end' in nodes[0]) return nodes.findIndex(n => n.end > x);
    const far = n => Math.hypot(n.x - x, n.y - y);
    return nodes.reduce((best, n, i) => far(n) < far(nodes[best]) ? i : best, 0);
  };
  const attributes = {role: 'slider', tabindex: 0, 'aria-label': chart.dataset.label,
    'aria-valuemin': 1, 'aria-valuemax': nodes.length, 'aria-valuenow': 1,
    'aria-valuetext': nodes[0].text};
  for (const [name, value] of Object.entries(attributes)) chart.setAttribute(name, value);
  svg.onmousemove = event => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const i = nearest((event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
    show(i < 0 ? nodes.length - 1 : i);
  };
  chart.onkeydown = event => {
    const steps = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageDown: 10,
      PageUp: -10, Home: -nodes.length, End: nodes.length};
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(at + steps[event.key]);
  };
}
</script>
)";

std::string DataElement(const std::string& id, const std::string& json) {
  std::string text;  // no tag may begin in it
  for (const char c : json) text += c == '<' ? "\\u003c" : std::string(1, c);
  return fmt::format("<script type=\"application/json\"{}>{}</script>\n",
                     id.empty() ? "" : fmt::format(" id=\"{}\"", id), text);
}

namespace {

double Tenths(double value) { return std::round(10 * value) / 10; }

std::string StopsOf(const WalkedChart& chart) {
  using Json = nlohmann::ordered_json;
  Json stops = Json::array();
  for (const ChartStop& stop : chart.stops) {
    Json json = {{"x", Tenths(stop.x)}, {"y", Tenths(stop.y)}};
    if (stop.end) json["end"] = std::round(100 * *stop.end) / 100;
    if (stop.bytes) json["bytes"] = *stop.bytes;
    json["text"] = stop.text;
    stops.push_back(std::move(json));
  }
  return DataElement("", stops.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

std::string WalkedFigure(const WalkedChart& chart) {
  const std::string step =
      chart.step.empty() ? "" : fmt::format(" data-step=\"{}\"", HtmlEscaped(chart.step));
  return fmt::format(
             "<figure class=\"walks\"{}>\n<figcaption>{}</figcaption>\n"
             "<div class=\"walk\" data-label=\"{}\">\n<svg viewBox=\"0 0 {} {}\" role=\"img\" "
             "aria-label=\"{}\">\n{}<g class=\"cursor\" style=\"display:none\">{}</g></svg></div>\n"
             "<div class=\"key\">{}</div>\n<p class=\"told soft\">{}</p>\n",
             step, HtmlEscaped(chart.caption), HtmlEscaped(chart.label), chart.wide, chart.high,
             HtmlEscaped(chart.caption), chart.drawing, chart.cursor, chart.keys, chart.hint) +
         StopsOf(chart) + "</figure>\n";
}

std::string ChartKey(const std::string& name, const std::string& text) {
  return fmt::format("<span><i class=\"{}\"></i>{}</span>", name, text);
}

std::string ChartLevel(double left, double right, double y, const std::string& name) {
  return fmt::format(
      "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
      "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
      left, right, y, left - 6, y + 4, name);
}

}  // namespace ridge
