// Run-time arguments of the convolution kernels that work on image patches; host and device share
// these structs. Sizes and strides are arguments and never part of a kernel's source.
//
// A unit is 16 bytes in shared memory: kVector neighbouring elements along k, 8 of 16 bits or 4 of
// tf32. A feature map normally has, at each position, one unit for every group of kVector channels.
// With few channels (kShifts) it has one unit per channel, which holds the elements under the taps
// of one row of a filter. The units of a block's patch are numbered group * taps + tap.
#pragma once

#include "cuda/kernels/divisor.cuh"

namespace tenon::cuda {

/// A feature map [image, channel, row, column] by strides, in elements.
struct ConvImage {
  const void* data = nullptr;
  int image_stride = 0, group_stride = 0, row_stride = 0, column_stride = 0, element_stride = 0;
  int images = 0, height = 0, width = 0;
  int groups = 0;    // units at each position
  int elements = 0;  // channels of the map; kShifts: taps in a row of the filter
  int shift = 0;     // kShifts: columns from one element to the next; else 0
};

/// The part of a feature map that a block holds in shared memory, with zeros outside the map.
struct ConvPatch {
  Divisor height, width, groups;  // size in positions; units at each position
  int images = 0;
  int pitch = 0;  // units from one position to the next, odd
};

/// Taps of a filter as positions in a patch; with kShifts only the rows.
struct ConvTaps {
  Divisor count, columns;             // all taps; taps in a row
  int row_step = 0, column_step = 0;  // in positions
};

/// Filters [row of the result, group, tap] by strides, element by element.
struct ConvFilters {
  const void* data = nullptr;
  int filter_stride = 0, group_stride = 0, row_stride = 0, column_stride = 0, element_stride = 0;
};

/// The part of the result that a block computes: `images` images, `rows` x `columns` pixels of
/// each.
struct ConvRegion {
  Divisor blocks_m, bands, strips;  // number of blocks along filters, rows and columns
  Divisor pixels, columns;          // rows * columns and columns that a block has in one image
  int images = 0, rows = 0;
  int height = 0, width = 0;            // size of the result
  int step_rows = 1, step_columns = 1;  // image positions from one pixel to the next
  int first_row = 0, first_column = 0;  // image position under the first pixel's first tap
  int places = 0, workers = 0;  // tiles that use the same filters; blocks that share these tiles
};

/// Results [image, filter, pixel] of a convolution. The input gradient of a convolution is a
/// convolution too.
struct ConvProblem {
  ConvImage image;
  ConvFilters filters;
  ConvPatch patch;
  ConvTaps taps;
  ConvRegion region;
  int rows = 0;   // filters per group of the convolution
  int chunk = 0;  // groups of units that are staged at a time
  int sums = 0;   // offset of the sums in shared memory, in units; 0: they overwrite the operands
  int pitch = 0;  // units from one filter to the next, odd
  int image_step = 0, filter_step = 0;  // steps from one group of the convolution to the next
};

/// A convolution of stride 1 over 16-bit feature maps whose rows are whole groups of 8 pixels, so
/// that they are loaded 16 bytes at a time (conv_rows.cuh). A block computes kM filters at kN
/// pixels: whole rows, of one image or of several whole images.
struct ConvRows {
  ConvImage image;
  ConvFilters filters;
  Divisor blocks_m, bands;   // number of blocks along filters and rows of the result
  Divisor pieces;            // pieces of kPixels pixels in a block's whole patch, for one channel
  Divisor row_pieces, rows;  // pieces in a row; rows of the patch in one image
  Divisor edge;              // columns of the patch outside the image, at least 1
  Divisor eighths, columns;  // groups of 8 results: in one image of a block; in a row
  Divisor groups;            // units at each position
  int images = 0, rows_of_band = 0;
  int edges = 0;  // units of the patch outside the image
  int filters_in_all = 0, result_width = 0;
  int first_row = 0, first_column = 0, row_dilation = 1, column_dilation = 1;
  // In units: distance between positions, rows, images and filters (the last one is odd); offset of
  // the filters.
  int pitch = 0, row_pitch = 0, image_pitch = 0, filter_pitch = 0, filters_at = 0;
  int places = 0;
};

/// The weight gradient [filter, column], summed over pixels. A cell is a band of `rows_of_band`
/// rows of one image. In block (x, y, z), x selects filters and groups of units, y selects `cells`
/// cells, and z is the group of the convolution.
struct ConvGradient {
  ConvImage image;
  ConvPatch patch;  // images: cells that are staged together; groups: groups of a block
  ConvTaps taps;
  const void* data = nullptr;  // the output gradient [image, filter, pixel]
  int image_stride = 0, filter_stride = 0;
  Divisor blocks_m, bands;
  Divisor slots, columns;            // pixels of a cell, rounded up; columns of the output
  int rows_of_band = 0, height = 0;  // rows of the output: in a band, in an image
  int cells = 0, cells_in_all = 0;   // number of cells: of a block, of all blocks
  int pitch = 0;                     // units from one filter to the next, odd
  int step_rows = 1, step_columns = 1, first_row = 0, first_column = 0;  // as in ConvRegion
  int filters = 0;  // filters in a group of the convolution
  int group_columns = 0, tap_columns = 0, element_columns = 0;  // strides in the result's columns
  int result_columns = 0, result_rows = 0;  // columns of a group; rows of all groups
  int image_step = 0, filter_step = 0;
  // For images that are loaded 16 bytes at a time: groups of 8 pixels that a block has in one
  // filter's gradient, pieces of a row of the image, columns of the patch outside the image (at
  // least 1), and units outside the image.
  Divisor eighths, row_pieces, edge;
  int edges = 0;
  float* partials = nullptr;  // [split][result_rows][result_columns]
};

/// Adds `splits` partial results of `rows` x `columns` in order.
struct ConvSum {
  const float* partials = nullptr;
  Divisor columns;  // columns divided by the kernel's vector width
  int items = 0, splits = 0;
  int runs = 1;  // threads that share an item, a power of 2
};

}  // namespace tenon::cuda
