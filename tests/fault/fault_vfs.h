#pragma once
// A SQLite VFS between the store and the real one, which fails on demand: tests count the operations of a clean run
// and then let each of them fail in turn.
#include <cstdint>

namespace hotlap {

enum class FaultKind : std::uint8_t {
  kIoError,     // every operation fails with an I/O error
  kFull,        // writes fail: no space left
  kShortWrite,  // writes leave half of their bytes and fail
  kReadError,   // reads fail
};

class FaultVfs {
 public:
  static constexpr const char* kName = "hotlap-fault";
  // Registers itself at first use; one for the whole program, used by one thread at a time.
  static FaultVfs& instance();

  // Operations count from 1 again; those from `first` to `first + count - 1` fail.
  void plan(FaultKind kind, std::uint64_t first, std::uint64_t count);
  void heal() { plan(FaultKind::kIoError, 0, 0); }
  std::uint64_t operations() const { return operations_; }
  std::uint64_t failures() const { return failures_; }

  // Counts one operation of this sort; true when it is to fail.
  bool fails(bool is_write, bool is_read);
  FaultKind kind() const { return kind_; }

 private:
  FaultVfs();
  FaultKind kind_ = FaultKind::kIoError;
  std::uint64_t first_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t operations_ = 0;
  std::uint64_t failures_ = 0;
};

}  // namespace hotlap
