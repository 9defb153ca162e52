// The interface between the emulated driver and the kernels that the emulated compiler makes.
//
// A kernel library exports one Module, which names its entries, its index variables and its static
// shared memory. The driver gives it a Runtime, which implements all operations of several threads.
// No standard headers, because this file is included into device code.
#pragma once

namespace tenon_emulator {

struct Index3 {
  unsigned x, y, z;
};

enum class Shuffle { Xor, Down, From };
enum class Mma { Bf16, F16, Tf32 };

/// Called by device code on the fiber of one thread. Warp-wide functions return when every lane of
/// the warp has called; the operations are those of the PTX instructions.
struct Runtime {
  void (*sync_block)();
  void (*sync_warp)();
  /// Replaces `value`, which has 4 or 8 bytes.
  void (*shuffle)(Shuffle mode, void* value, int bytes, int argument);
  void (*mma)(Mma kind, float* d, const unsigned* a, const unsigned* b);
  void (*load_matrix)(int count, bool transposed, unsigned* registers, const void* row);
  /// Asynchronous copies are executed as late as the rules allow, so that a missing wait shows.
  void (*copy_async)(void* shared, const void* global, int bytes, bool inside);
  void (*copy_async_commit)();
  void (*copy_async_wait)(int groups_left);
  unsigned char* (*dynamic_shared)();
  /// Ends the launch with a message.
  void (*trap)(const char* message);
};

struct Entry {
  const char* name;
  void (*call)(void** params);
  int count;
  const unsigned* sizes;   // bytes of each parameter
  const bool* is_pointer;  // whether its type is a pointer
  unsigned max_threads;    // __launch_bounds__, 1024 without
  const Entry* next;
};

struct Module {
  Index3 *thread, *block, *grid_dim, *block_dim;
  const Runtime** runtime;
  unsigned char *shared_begin, *shared_end;
  const Entry* const* entries;
};

/// Precedes the library's bytes in a "cubin"; `size` counts both.
struct Image {
  char magic[16];
  unsigned long long size;
  unsigned arch;   // 90: runs on 9.x
  unsigned exact;  // 1 for sm_90a: runs on 9.0 only
};
constexpr char image_magic[16] = "tenon emulated";

}  // namespace tenon_emulator
