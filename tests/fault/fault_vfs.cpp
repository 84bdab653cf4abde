#include "fault_vfs.h"

#include <sqlite3.h>

namespace hotlap {
namespace {

struct FaultFile {
  sqlite3_file base;  // first: SQLite sees only this part
  sqlite3_file* real;
};

sqlite3_vfs* real_vfs() {
  static sqlite3_vfs* const kReal = sqlite3_vfs_find(nullptr);
  return kReal;
}
sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file)->real; }  // made by open_file
FaultVfs& vfs() { return FaultVfs::instance(); }

int close_file(sqlite3_file* file) { return real(file)->pMethods->xClose(real(file)); }
int read_file(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  if (vfs().fails(false, true)) return SQLITE_IOERR_READ;
  return real(file)->pMethods->xRead(real(file), to, size, offset);
}
int write_file(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  if (!vfs().fails(true, false)) return real(file)->pMethods->xWrite(real(file), from, size, offset);
  switch (vfs().kind()) {
    case FaultKind::kFull: return SQLITE_FULL;
    case FaultKind::kShortWrite:
      (void)real(file)->pMethods->xWrite(real(file), from, size / 2, offset);
      return SQLITE_IOERR_WRITE;
    default: return SQLITE_IOERR_WRITE;
  }
}
int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  if (vfs().fails(false, false)) return SQLITE_IOERR_TRUNCATE;
  return real(file)->pMethods->xTruncate(real(file), size);
}
int sync_file(sqlite3_file* file, int flags) {
  if (vfs().fails(false, false)) return SQLITE_IOERR_FSYNC;
  return real(file)->pMethods->xSync(real(file), flags);
}
int file_size(sqlite3_file* file, sqlite3_int64* size) {
  if (vfs().fails(false, false)) return SQLITE_IOERR_FSTAT;
  return real(file)->pMethods->xFileSize(real(file), size);
}
int lock_file(sqlite3_file* file, int level) {
  if (vfs().fails(false, false)) return SQLITE_IOERR_LOCK;
  return real(file)->pMethods->xLock(real(file), level);
}
int unlock_file(sqlite3_file* file, int level) { return real(file)->pMethods->xUnlock(real(file), level); }
int check_lock(sqlite3_file* file, int* held) { return real(file)->pMethods->xCheckReservedLock(real(file), held); }
int control_file(sqlite3_file* file, int what, void* argument) {
  return real(file)->pMethods->xFileControl(real(file), what, argument);
}
int sector_size(sqlite3_file* file) { return real(file)->pMethods->xSectorSize(real(file)); }
int characteristics(sqlite3_file* file) { return real(file)->pMethods->xDeviceCharacteristics(real(file)); }
int map_shared(sqlite3_file* file, int page, int size, int extend, void volatile** to) {
  if (vfs().fails(false, false)) return SQLITE_IOERR_SHMMAP;
  return real(file)->pMethods->xShmMap(real(file), page, size, extend, to);
}
int lock_shared(sqlite3_file* file, int offset, int count, int flags) {
  // Unlocking never fails on a real system either.
  if ((flags & SQLITE_SHM_LOCK) != 0 && vfs().fails(false, false)) return SQLITE_IOERR_SHMLOCK;
  return real(file)->pMethods->xShmLock(real(file), offset, count, flags);
}
void barrier(sqlite3_file* file) { real(file)->pMethods->xShmBarrier(real(file)); }
int unmap_shared(sqlite3_file* file, int remove) { return real(file)->pMethods->xShmUnmap(real(file), remove); }

const sqlite3_io_methods kMethods{
    2,           close_file,  read_file,    write_file,   truncate_file, sync_file,       file_size,
    lock_file,   unlock_file, check_lock,   control_file, sector_size,   characteristics, map_shared,
    lock_shared, barrier,     unmap_shared, nullptr,      nullptr};

int open_file(sqlite3_vfs* /*self*/, sqlite3_filename name, sqlite3_file* file, int flags, int* flags_out) {
  auto* fault_file = reinterpret_cast<FaultFile*>(file);  // SQLite gives szOsFile bytes for it
  file->pMethods = nullptr;
  if (vfs().fails(false, false)) return SQLITE_CANTOPEN;
  fault_file->real = reinterpret_cast<sqlite3_file*>(fault_file + 1);
  const int code = real_vfs()->xOpen(real_vfs(), name, fault_file->real, flags, flags_out);
  if (fault_file->real->pMethods != nullptr) file->pMethods = &kMethods;
  return code;
}
int delete_file(sqlite3_vfs* /*self*/, const char* name, int sync) {
  if (vfs().fails(false, false)) return SQLITE_IOERR_DELETE;
  return real_vfs()->xDelete(real_vfs(), name, sync);
}
int access_file(sqlite3_vfs* /*self*/, const char* name, int flags, int* out) {
  if (vfs().fails(false, false)) return SQLITE_IOERR_ACCESS;
  return real_vfs()->xAccess(real_vfs(), name, flags, out);
}

}  // namespace

FaultVfs& FaultVfs::instance() {
  static FaultVfs vfs;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): SQLite's registry is global too
  return vfs;
}

FaultVfs::FaultVfs() {
  static sqlite3_vfs shim = *real_vfs();
  shim.pNext = nullptr;
  shim.zName = kName;
  shim.szOsFile = static_cast<int>(sizeof(FaultFile)) + real_vfs()->szOsFile;
  shim.xOpen = open_file;
  shim.xDelete = delete_file;
  shim.xAccess = access_file;
  sqlite3_vfs_register(&shim, 0);
}

void FaultVfs::plan(FaultKind kind, std::uint64_t first, std::uint64_t count) {
  kind_ = kind;
  first_ = first;
  count_ = count;
  operations_ = 0;
  failures_ = 0;
}

bool FaultVfs::fails(bool is_write, bool is_read) {
  const bool is_counted = kind_ == FaultKind::kIoError ? true : kind_ == FaultKind::kReadError ? is_read : is_write;
  if (!is_counted) return false;
  ++operations_;
  if (first_ == 0 || operations_ < first_ || operations_ - first_ >= count_) return false;
  ++failures_;
  return true;
}

}  // namespace hotlap
