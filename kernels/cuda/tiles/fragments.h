// Layout of tiles in shared memory, and mapping of matrix elements to lanes of a warp. Instructions
// are mma.sync.m16n8k16 and ldmatrix on 16-bit elements (PTX ISA, "Matrix fragments for
// mma.m16n8k16" and "ldmatrix"). The functions are constexpr, so that tests compare them with a
// GEMM computed lane by lane.
//
// A row of a tile has `chunks` chunks of 16 bytes (8 elements).
#pragma once

namespace tpsim {

inline constexpr int kChunk = 8;  // elements

struct TilePlace {
  int row = 0;
  int chunk = 0;
};

// Returns the row and chunk whose address lane `lane` passes to ldmatrix.x4, to load 16 x 16
// elements of operand A from a tile [row of A][k].
constexpr TilePlace a_source(int lane) { return {lane % 8 + lane / 8 % 2 * 8, lane / 16}; }

// As a_source(), with ldmatrix.trans from a tile [k][row of A].
constexpr TilePlace a_source_by_depth(int lane) { return {lane % 8 + lane / 16 * 8, lane / 8 % 2}; }

// As a_source(), for two adjacent 16 x 8 operands B in a tile [column of B][k].
constexpr TilePlace b_source_by_column(int lane) {
  return {lane % 8 + lane / 16 * 8, lane / 8 % 2};
}

// As a_source(), with ldmatrix.trans for two operands B in a tile [k][column of B].
constexpr TilePlace b_source_by_depth(int lane) { return {lane % 8 + lane / 8 % 2 * 8, lane / 16}; }

// Row and column of accumulator `i` (0..3) of the 16 x 8 result.
constexpr int result_row(int lane, int i) { return lane / 4 + i / 2 * 8; }
constexpr int result_col(int lane, int i) { return lane % 4 * 2 + i % 2; }

// Returns the index, in chunks, of the chunk at (row, chunk) of a tile. The chunks of a row are
// permuted by the row number, so that the eight rows that ldmatrix reads at once are in different
// banks. `chunks` is a multiple of 8.
constexpr int swizzled(int row, int chunk, int chunks) {
  return row * chunks + (chunk ^ (row & 7));
}

}  // namespace tpsim
