// Which lane of a warp holds which element, for mma.sync.m16n8k16 and ldmatrix on 16-bit elements
// (PTX ISA, "Matrix fragments for mma.m16n8k16" and "ldmatrix"), and where tiles lie in shared
// memory. Plain arithmetic, so that tests hold it against a product computed lane by lane.
//
// A tile has rows of `chunks` pieces of 16 bytes (8 elements).
#pragma once

namespace tpsim {

inline constexpr int kChunk = 8;  // elements

struct TilePlace {
  int row = 0;
  int chunk = 0;
};

// Where lane `lane` points ldmatrix.x4 for 16 x 16 of operand A, whose rows are the tile's rows.
constexpr TilePlace a_source(int lane) { return {lane % 8 + lane / 8 % 2 * 8, lane / 16}; }

// The same with .trans, for A whose rows are the tile's columns (k runs down the tile's rows).
constexpr TilePlace a_source_by_depth(int lane) { return {lane % 8 + lane / 16 * 8, lane / 8 % 2}; }

// For two neighbouring 16 x 8 operands B whose columns are the tile's rows (k runs along a row).
constexpr TilePlace b_source_by_column(int lane) {
  return {lane % 8 + lane / 16 * 8, lane / 8 % 2};
}

// The same with .trans, for B whose k runs down the tile's rows.
constexpr TilePlace b_source_by_depth(int lane) { return {lane % 8 + lane / 8 % 2 * 8, lane / 16}; }

// Row and column of accumulator `i` (0..3) of the 16 x 8 result.
constexpr int result_row(int lane, int i) { return lane / 4 + i / 2 * 8; }
constexpr int result_col(int lane, int i) { return lane % 4 * 2 + i % 2; }

// Index, in chunks, of a tile's piece: the pieces of a row change places with the row, so that the
// eight rows that ldmatrix reads at once lie in different banks. `chunks` is a multiple of 8.
constexpr int swizzled(int row, int chunk, int chunks) {
  return row * chunks + (chunk ^ (row & 7));
}

}  // namespace tpsim
