// Texts of reductions: how blocks share out numbers that are each made of many terms.
//
// A block takes a tile of `columns` numbers, with `lanes` threads for each; where numbers are
// neighbours in memory, a column is `wide` of them, which a thread loads at once.  The terms of a
// number may be cut into parts, each of one tile of its own: their results go to workspace,
// `outputs` of them for each part, and a second pass joins them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ridge/core/shape.h"

namespace ridge::cuda {

// Values for FillText.
using TextValues = std::vector<std::pair<std::string_view, std::string>>;

inline constexpr int64_t kMostAhead = 8;

struct ReduceTile {
  int64_t outputs = 1, width = 1;  // numbers, and terms of each
  int columns = 1, lanes = 256;    // powers of two; their product is kBlockThreads
  bool rows = true;                // terms that are neighbours lie beside each other
  int pack = 1;                    // terms that a thread loads at once
  int wide = 1;                    // numbers of a column; pack or wide is 1
  int64_t parts = 1, span = 1;     // span: packs of a part

  int64_t ColumnTiles() const;
  int64_t Tiles() const;
  int64_t Blocks() const;
  // Packs that a thread asks for before it adds them up.
  int64_t Ahead(int64_t most = kMostAhead) const;
  // ahead: Ahead(), columns, lanes, rows, tiles, parts, outputs, packs, span, pack, wide, load:
  // pack * wide, number: of a column that element k of a load belongs to, threads, scratch: threads
  // * wide, own: Tile<columns, lanes, rows>
  TextValues Values() const;
};

// Tile<Columns, Lanes, Rows>: the place of a thread, and BlockJoin over the lanes of a column, of
// one number or an array.
std::string_view ReduceTileText();

// A row-major array whose dimensions stay or are reduced.
struct ReduceView {
  Dims kept, kept_strides, reduced, reduced_strides;

  int64_t outputs() const { return ElementCount(kept); }
  int64_t width() const { return ElementCount(reduced); }
  // Where number `o` begins, and where its term `r` lies from there.
  std::string FirstText(const std::string& o) const;
  std::string TermText(const std::string& r) const;
};
ReduceView ViewReduction(const Dims& dims, const std::vector<bool>& reduced);

// The tile of a pass over `view`, whose elements have so many bytes.  The terms are cut into parts
// as long as there are no more tiles than `most_tiles`, and a thread of wide columns has as many
// packs as `least_wide`.
ReduceTile TileOf(const ReduceView& view, int64_t element_bytes, int64_t most_tiles,
                  int64_t least_wide);
// The tile of the pass that joins parts: term p of number o lies at p * outputs + o.
ReduceTile TileOfParts(int64_t outputs, int64_t parts);

// Kernel join_sums(const R* terms, `parameters`): for each number `o` the statement `write` with
// the `sum` of its parts. REQUIRES: ReduceTileText() and a type R before it.
std::string JoinSumsText(const ReduceTile& tile, const std::string& parameters,
                         const std::string& write);

}  // namespace ridge::cuda
