#include "ridge/report/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ridge/report/html.h"

namespace ridge {

const char kGridStyle[] =
    "caption{text-align:left;font-weight:600;padding:0 0 4px;white-space:nowrap}\n"
    ".grid-table{margin-bottom:14px}\n"
    "th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid var(--c0)}\n"
    "th button::after{content:\" \\2195\";opacity:.35}\n"
    "th[aria-sort=ascending] button::after{content:\" \\25b2\";opacity:1}\n"
    "th[aria-sort=descending] button::after{content:\" \\25bc\";opacity:1}\n"
    "th button:hover{text-decoration:underline}\n"
    "td.t,th.t{text-align:left}td.w{white-space:normal;min-width:22em;max-width:44em}\n"
    "td details{margin:0}td ul{margin:2px "
    "0;padding-left:18px;text-align:left;white-space:normal;min-width:22em}\n"
    ".long{max-height:70vh;overflow:auto;margin-bottom:14px}\n"
    ".long:focus-visible{outline:2px solid var(--c0)}\n"
    ".long th{position:sticky;top:0;background:var(--back);box-shadow:0 1px var(--line)}\n"
    ".away{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}\n"
    "@media print{.long{max-height:none}.scroll{overflow:visible}.long table{font-size:8px}"
    ".long td,.long th{padding:1px 6px 1px 0;position:static}.long th{white-space:normal}"
    "th button{display:contents}th button::after{display:none}}\n";

const char kGridScript[] = R"(<script>
const said = document.body.appendChild(document.createElement('div'));
said.className = 'away';
said.setAttribute('role', 'status');
const compared = (a, b) => {  // cells; those without a number come last
  const x = a.dataset.v, y = b.dataset.v;
  if (x === undefined && y === undefined) return a.textContent.localeCompare(b.textContent);
  return x === undefined || y === undefined ? NaN : x - y;
};
for (const button of document.querySelectorAll('.grid-table th button')) button.onclick = () => {
  const title = button.parentNode, titles = [...title.parentNode.children];
  const column = titles.indexOf(title), table = title.closest('table');
  const sign = title.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
  const order = (a, b) => {
    const [x, y] = [a.children[column], b.children[column]], by = compared(x, y);
    return Number.isNaN(by) ? (x.dataset.v === undefined) - (y.dataset.v === undefined) : sign * by;
  };
  for (const other of titles) other.removeAttribute('aria-sort');
  title.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
  said.textContent =
    `${table.caption.textContent}: sorted by ${button.textContent}, ${title.getAttribute('aria-sort')}`;
};
</script>
)";

namespace {

bool IsNumbers(const Grid& grid, size_t column) {
  return std::any_of(grid.rows.begin(), grid.rows.end(),
                     [&](const auto& row) { return row[column].value.has_value(); });
}

// The text with its bar before it, or its items folded behind it.
std::string CellHtml(const GridCell& cell) {
  const std::string text = HtmlEscaped(cell.text);
  if (cell.bar) return HtmlBar(*cell.bar) + text;
  if (cell.items.empty()) return text;
  std::string items;
  for (const std::string& item : cell.items) items += "<li>" + HtmlEscaped(item) + "</li>";
  return fmt::format("<details><summary>{}</summary><ul>{}</ul></details>", text, items);
}

std::string CellText(const GridCell& cell, bool number) {
  constexpr size_t kOneLine = 40;
  const std::string text = CellHtml(cell);
  if (!cell.value || !std::isfinite(*cell.value))
    return fmt::format("<td{}>{}</td>",
                       number                        ? ""
                       : cell.text.size() > kOneLine ? " class=\"t w\""
                                                     : " class=\"t\"",
                       text);
  return fmt::format("<td data-v=\"{}\">{}</td>", *cell.value, text);
}

std::string MarkdownText(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '\\' || c == '<' || c == '*' || c == '_' || c == '`') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

// Around the table; a long one can be scrolled by the keyboard.
std::string FrameTag(const Grid& grid) {
  constexpr size_t kLong = 30;
  if (grid.rows.size() <= kLong) return "<div class=\"scroll\">";
  return fmt::format("<div class=\"scroll long\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">",
                     HtmlEscaped(grid.title));
}

}  // namespace

std::string HtmlGrid(const Grid& grid) {
  std::string head, body;
  for (size_t c = 0; c < grid.columns.size(); ++c) {
    head += fmt::format("<th scope=\"col\"{}><button type=\"button\">{}</button></th>",
                        IsNumbers(grid, c) ? "" : " class=\"t\"", HtmlEscaped(grid.columns[c]));
  }
  for (const std::vector<GridCell>& row : grid.rows) {
    body += "<tr>";
    for (size_t c = 0; c < row.size(); ++c) body += CellText(row[c], IsNumbers(grid, c));
    body += "</tr>\n";
  }
  return fmt::format(
      "{}<table class=\"grid-table\"><caption>{}</caption>\n"
      "<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
      FrameTag(grid), HtmlEscaped(grid.title), head, body);
}

std::string MarkdownGrid(const Grid& grid) {
  std::string text = fmt::format("### {}\n\n|", MarkdownText(grid.title));
  for (const std::string& column : grid.columns) text += fmt::format(" {} |", MarkdownText(column));
  text += "\n|";
  for (size_t c = 0; c < grid.columns.size(); ++c) text += IsNumbers(grid, c) ? "---:|" : "---|";
  text += "\n";
  for (const std::vector<GridCell>& row : grid.rows) {
    text += "|";
    for (const GridCell& cell : row) {
      text +=
          fmt::format(" {} |", MarkdownText(cell.items.empty()
                                                ? cell.text
                                                : fmt::format("{}", fmt::join(cell.items, "; "))));
    }
    text += "\n";
  }
  return text;
}

}  // namespace ridge
