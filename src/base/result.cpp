#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace hotlap {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInternal: return "internal";
    case ErrorCode::kInvalidInput: return "invalid-input";
    case ErrorCode::kNotFound: return "not-found";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kIo: return "io";
    case ErrorCode::kCorrupt: return "corrupt";
    case ErrorCode::kResourceLimit: return "resource-limit";
    case ErrorCode::kCancelled: return "cancelled";
  }
  return "internal";
}

Error errno_error(std::string_view what, int error_number) {
  ErrorCode code = ErrorCode::kIo;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:  // a file of a process that ended
    case ENODEV: code = ErrorCode::kNotFound; break;
    case EOPNOTSUPP:
    case ENOSYS: code = ErrorCode::kUnsupported; break;
    default: break;
  }
  return Error{code, std::string(what) + ": " + std::generic_category().message(error_number), error_number};
}

}  // namespace hotlap
