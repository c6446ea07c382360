// One page: a flame chart of the step (step, part, class, kernel, node; width is time), the same
// nodes as a timeline with the arena below it, and the tables.  Plain HTML, SVG and a few lines of
// script that zoom; nothing is loaded from anywhere.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/core/units.h"
#include "ridge/report/html.h"
#include "ridge/report/profile.h"

namespace ridge {
namespace {

constexpr char kStyle[] = R"(td.t,th.t{text-align:left}
td.w{text-align:left;white-space:normal;min-width:24em;color:var(--soft)}
#flame{position:relative;overflow:hidden;cursor:pointer}
#flame div{position:absolute;height:21px;box-sizing:border-box;border:1px solid var(--back);border-radius:3px;color:#1c1e21;
font-size:12px;line-height:19px;padding:0 3px;overflow:hidden;white-space:nowrap;text-overflow:ellipsis}
.compute{background:#f0a35e}.memory{background:#7ab8d8}.reorder{background:#d87a9c}
.input,.runtime{background:#bbb}.step{background:#ddd}
svg .compute{fill:#f0a35e}svg .memory{fill:#7ab8d8}svg .reorder{fill:#d87a9c}
)";

constexpr char kScript[] = R"(<script>
const f=document.getElementById('flame'),all=[...f.children];
function zoom(a,w){for(const d of all){const x=(d.dataset.x-a)/w*100,v=d.dataset.w/w*100;
d.style.left=x+'%';d.style.width=v+'%';d.style.display=x+v<=0.001||x>=99.999||v<0.02?'none':''}}
f.onclick=e=>{const d=e.target;if(d!==f)zoom(+d.dataset.x,+d.dataset.w)};
zoom(0,1);
</script>)";

// "input" of "input wait": a word for the style sheet.
std::string ClassOf(ProfilePart part) {
  const std::string name = ProfilePartName(part);
  return name.substr(0, name.find(' '));
}

std::string Percent(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f} %", 100 * part / whole) : "";
}

class Flame {
 public:
  explicit Flame(const StepProfile& profile) : profile_(profile) {}
  std::string Text();

 private:
  // A box; what is inside it begins at its left edge.
  void Box(int level, double start_s, double seconds, const std::string& style,
           const std::string& label, const std::string& more);
  void Row(const ProfileRow& row, double start_s);
  void Group(const ProfileGroup& group, double start_s);

  const StepProfile& profile_;
  std::string text_;
};

std::string Flame::Text() {
  const double step_s = profile_.measured.step_s;
  Box(0, 0, step_s, "step", "step", "");
  double at = 0;
  for (size_t r = 0; r < profile_.rows.size();) {
    const ProfilePart part = profile_.rows[r].part;
    const double part_begin = at;
    for (; r < profile_.rows.size() && profile_.rows[r].part == part; ++r) {
      Row(profile_.rows[r], at);
      at += std::max(0.0, profile_.rows[r].seconds);
    }
    Box(1, part_begin, at - part_begin, ClassOf(part), ProfilePartName(part), "");
  }
  return "<div id=\"flame\" style=\"height:110px\">" + text_ + "</div>\n";
}

void Flame::Box(int level, double start_s, double seconds, const std::string& style,
                const std::string& label, const std::string& more) {
  const double step_s = profile_.measured.step_s;
  if (seconds <= 0 || step_s <= 0) return;
  const std::string title = fmt::format("{}: {}, {}{}{}", label, FormatSeconds(seconds),
                                        Percent(seconds, step_s), more.empty() ? "" : "\n", more);
  text_ += fmt::format(
      R"(<div class="{}" style="top:{}px" data-x="{:.6f}" data-w="{:.6f}" title="{}">{} {}</div>)",
      style, 22 * level, start_s / step_s, seconds / step_s, HtmlEscaped(title), HtmlEscaped(label),
      FormatSeconds(seconds));
  text_ += "\n";
}

void Flame::Row(const ProfileRow& row, double start_s) {
  if (row.name.empty()) return;
  Box(2, start_s, row.seconds, ClassOf(row.part), row.name, "");
  double at = start_s;
  for (const ProfileGroup& group : profile_.groups) {
    if (group.part != row.part || group.row != row.name) continue;
    Group(group, at);
    at += group.seconds;
  }
}

void Flame::Group(const ProfileGroup& group, double start_s) {
  const std::string more = fmt::format("{} of its limit\n{}\n{}",
                                       Percent(group.limit_s, group.seconds), group.key, group.why);
  const std::string label = fmt::format("{} {} x{}", group.op, group.name, group.nodes.size());
  Box(3, start_s, group.seconds, ClassOf(group.part), label, more);
  double at = start_s;
  for (const int n : group.nodes) {
    const auto index = static_cast<size_t>(n);
    Box(4, at, profile_.nodes[index].seconds, ClassOf(group.part),
        profile_.measured.step->nodes[index].name, more);
    at += profile_.nodes[index].seconds;
  }
}

// Nodes as they ran, and what of the arena is in use.
std::string Timeline(const StepProfile& profile) {
  constexpr double kWidth = 1150, kHeight = 140, kNodes = 24;
  const StepMeasurement& m = profile.measured;
  const std::vector<LiveBytes> live = LiveBytesByNode(*m.step, m.persistent_bytes);
  int64_t most = 1;
  for (const LiveBytes& bytes : live) most = std::max(most, bytes.total());
  std::string boxes, line = fmt::format("0,{:.1f}", kHeight);
  double at = m.input_wait_s;
  for (size_t n = 0; n < live.size(); ++n) {
    const double x = at / m.step_s * kWidth, width = profile.nodes[n].seconds / m.step_s * kWidth;
    const double y = kHeight - (kHeight - kNodes - 6) * static_cast<double>(live[n].total()) /
                                   static_cast<double>(most);
    line += fmt::format(" {:.2f},{:.1f} {:.2f},{:.1f}", x, y, x + width, y);
    boxes += fmt::format(
        R"(<rect class="{}" x="{:.2f}" y="0" width="{:.2f}" height="{}"><title>{} ({}): {}, {} in use</title></rect>)",
        ClassOf(profile.nodes[n].part), x, width, kNodes, HtmlEscaped(m.step->nodes[n].name),
        m.step->nodes[n].op, FormatSeconds(profile.nodes[n].seconds), FormatBytes(live[n].total()));
    boxes += "\n";
    at += profile.nodes[n].seconds;
  }
  line += fmt::format(" {:.2f},{:.1f}", at / m.step_s * kWidth, kHeight);
  return fmt::format(
      "<h2>In order, with the arena's bytes in use (at most {})</h2>\n"
      "<svg viewBox=\"0 0 {} {}\" width=\"100%\">\n{}<polygon points=\"{}\" fill=\"var(--c2)\" "
      "fill-opacity=\"0.4\"/>"
      "</svg>\n",
      FormatBytes(most), kWidth, kHeight, boxes, line);
}

std::string GroupTable(const StepProfile& profile) {
  std::string rows;
  const double step_s = profile.measured.step_s;
  for (const ProfileGroup& group : profile.groups) {
    rows += fmt::format(
        "<tr><td>{} x{}</td><td class=\"t\">{}</td><td>{}</td><td>{}</td><td class=\"t\"><span "
        "class=\"bar\" style=\"width:{:.0f}px\"></span></td><td>{:.1f}</td><td>{:.1f}</td>"
        "<td class=\"t\">{}</td><td>{}</td><td class=\"t\">{}</td><td class=\"w\">{}</td></tr>\n",
        HtmlEscaped(group.name), group.nodes.size(), group.op, FormatSeconds(group.seconds),
        Percent(group.seconds, step_s), 200 * group.seconds / step_s,
        group.flops / std::max(group.seconds, 1e-12) / 1e9,
        group.bytes / std::max(group.seconds, 1e-12) / 1e9, group.level,
        Percent(group.limit_s, group.seconds), HtmlEscaped(group.kernel), HtmlEscaped(group.why));
  }
  return "<h2>Kernels</h2>\n<div class=\"scroll\"><table><tr><th>node</th><th "
         "class=\"t\">operator</th><th>time</th>"
         "<th>share</th><th></th><th>GF/s</th><th>GB/s</th><th class=\"t\">in</th><th>of limit</th>"
         "<th class=\"t\">kernel</th><th class=\"t\">why</th></tr>\n" +
         rows + "</table></div>\n";
}

std::string AdviceList(const StepProfile& profile) {
  std::string rows;
  for (const ProfileAdvice& advice : profile.advice) {
    rows +=
        fmt::format("<li><b>-{}</b> ({} of the step): {}, {}</li>\n", FormatSeconds(advice.gain_s),
                    Percent(advice.gain_s, profile.measured.step_s), HtmlEscaped(advice.what),
                    HtmlEscaped(advice.how));
  }
  return rows.empty() ? "" : "<h2>What would help most</h2>\n<ol>" + rows + "</ol>\n";
}

}  // namespace

std::string ProfileToHtml(const StepProfile& profile) {
  const StepMeasurement& m = profile.measured;
  const std::string title = fmt::format("{}, batch {}, {}, {}, on {}", m.model, m.batch,
                                        m.optimizer, DTypeName(m.operands), m.limits.name);
  const std::string body = fmt::format(
      "<p>{} a step ({} without node times); roofline {}: {}</p>\n"
      "<p>Width is time; a click enlarges.</p>\n{}{}{}{}{}\n",
      FormatSeconds(m.step_s), FormatSeconds(m.plain_step_s),
      FormatSeconds(profile.roofline_step_s), Percent(profile.roofline_step_s, m.plain_step_s),
      Flame(profile).Text(), AdviceList(profile), Timeline(profile), GroupTable(profile), kScript);
  return HtmlPage(title, body, kStyle);
}

}  // namespace ridge
