#pragma once
// Opens a recording for reading and holds it to its format before anything else is read from it.
#include <string>

#include "base/result.h"
#include "store/sqlite_db.h"

namespace hotlap {

// What to do about a damaged recording; ends every error that says so.
Error with_advice(Error error);

// One clear error for every way in which a file may not be a recording that this version can read.
Result<Database> open_recording(const std::string& path);

}  // namespace hotlap
