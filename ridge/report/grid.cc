#include "ridge/report/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/report/html.h"

namespace ridge {

const char kGridStyle[] =
    "caption{text-align:left;font-weight:600;padding:0 0 4px}\n"
    "th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid var(--c0)}\n"
    "th[aria-sort=ascending] button::after{content:\" \\25b2\"}\n"
    "th[aria-sort=descending] button::after{content:\" \\25bc\"}\n"
    "th button:hover{text-decoration:underline}\n"
    ".grid-table{margin-bottom:14px}caption{white-space:nowrap}\n"
    "td.t,th.t{text-align:left}td.t{white-space:normal;max-width:44em}\n";

const char kGridScript[] = R"(<script>
for(const b of document.querySelectorAll('.grid-table th button'))b.onclick=()=>{
const th=b.parentNode,row=th.parentNode,i=[...row.children].indexOf(th),body=th.closest('table').tBodies[0];
const up=th.getAttribute('aria-sort')!=='ascending';
for(const o of row.children)o.removeAttribute('aria-sort');
th.setAttribute('aria-sort',up?'ascending':'descending');
const key=r=>{const c=r.children[i];return 'v' in c.dataset?+c.dataset.v:null};
const less=(a,b)=>{const x=key(a),y=key(b);
if(x===null||y===null)return x!==null?-1:y!==null?1:(up?1:-1)*a.children[i].textContent.localeCompare(b.children[i].textContent);
return up?x-y:y-x};
body.append(...[...body.rows].sort(less))};
</script>
)";

namespace {

bool IsNumbers(const Grid& grid, size_t column) {
  return std::any_of(grid.rows.begin(), grid.rows.end(),
                     [&](const auto& row) { return row[column].value.has_value(); });
}

std::string CellText(const GridCell& cell, bool number) {
  const std::string text = HtmlEscaped(cell.text);
  if (!cell.value || !std::isfinite(*cell.value))
    return fmt::format("<td{}>{}</td>", number ? "" : " class=\"t\"", text);
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
      "<div class=\"scroll\"><table class=\"grid-table\"><caption>{}</caption>\n"
      "<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
      HtmlEscaped(grid.title), head, body);
}

std::string MarkdownGrid(const Grid& grid) {
  std::string text = fmt::format("### {}\n\n|", MarkdownText(grid.title));
  for (const std::string& column : grid.columns) text += fmt::format(" {} |", MarkdownText(column));
  text += "\n|";
  for (size_t c = 0; c < grid.columns.size(); ++c) text += IsNumbers(grid, c) ? "---:|" : "---|";
  text += "\n";
  for (const std::vector<GridCell>& row : grid.rows) {
    text += "|";
    for (const GridCell& cell : row) text += fmt::format(" {} |", MarkdownText(cell.text));
    text += "\n";
  }
  return text;
}

}  // namespace ridge
