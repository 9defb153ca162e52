// Arguments of the sorting kernels; host and device share them.
#pragma once

namespace tenon::cuda {

constexpr int kSortThreads = 256;
constexpr int kSortPiece = 1024;  // elements that a block sorts in shared memory; a power of two

struct SortArgs {
  const void* x = nullptr;
  void* values = nullptr;
  long long* indices = nullptr;
  const void* from = nullptr;  // items of all rows
  void* to = nullptr;
  long long rows = 0, length = 0, first = 0, count = 0, descending = 0;
  long long pieces = 0;  // pieces per row
  long long width = 0;   // length of the sorted runs that are merged
};

}  // namespace tenon::cuda
