// WalkedChart: a drawing that says its numbers without a script.  With one, a cursor tells the stop
// under the mouse, or the next one by an arrow key, in words; to a screen reader the chart is a
// slider of its stops.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridge {

// Where the cursor can be, in units of the drawing.
struct ChartStop {
  double x = 0, y = 0;
  std::string text;
  std::optional<double> end = {};     // stops that lie side by side: where this one ends
  std::optional<int64_t> bytes = {};  // the number behind the text
};

struct WalkedChart {
  std::string step;     // of a plan, which it is about; may be empty
  std::string caption;  // the numbers that matter most
  std::string label;    // "Memory at each node of train"
  double wide = 0, high = 0;
  std::string drawing, cursor;  // SVG; the cursor lies around the origin
  std::string keys, hint;       // HTML below the drawing
  std::vector<ChartStop> stops;
};

// REQUIRES: a stop.
std::string WalkedFigure(const WalkedChart& chart);

// "name" is a class of kChartStyle, which gives the colour.
std::string ChartKey(const std::string& name, const std::string& text);

// A line of the grid with its value at the left.
std::string ChartLevel(double left, double right, double y, const std::string& name);

// What the page needs once for its charts.
extern const char kChartStyle[];
extern const char kChartScript[];

// JSON within a script element that is no program.  Without an id where that is "".
std::string DataElement(const std::string& id, const std::string& json);

}  // namespace ridge
