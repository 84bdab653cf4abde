#include "ingest/json_objects.h"

namespace hotlap {

void JsonObjectCutter::begin() {
  offset_ = static_cast<std::int64_t>(bytes_);
  depth_ = 1;
  arrays_ = 0;
  before_ = '{';
  is_in_string_ = false;
  is_escaped_ = false;
  keep('{');
}

JsonObjectCutter::Next JsonObjectCutter::look(char c) {
  if (is_in_string_) {
    if (c == '\n') return Next::kDamagedHere;  // no string of JSON has one: the line was cut off
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (c == '\\') {
      is_escaped_ = true;
    } else if (c == '"') {
      is_in_string_ = false;
      before_ = '"';
    }
    return Next::kGoOn;
  }
  switch (c) {
    case ' ':
    case '\t':
    case '\r':
    case '\n': return Next::kGoOn;
    case '"': is_in_string_ = true; return Next::kGoOn;
    case '{':
    case '[': {
      // A value stands after ':', or in an array; anywhere else the object before was cut off.
      const bool is_value = before_ == ':' || before_ == '[' || (before_ == ',' && is_array(depth_));
      if (!is_value) return c == '{' ? Next::kDamagedBefore : Next::kDamagedHere;
      if (depth_ == kDepthMax) return Next::kDamagedHere;
      ++depth_;
      const std::uint64_t bit = std::uint64_t{1} << depth_;
      arrays_ = c == '[' ? arrays_ | bit : arrays_ & ~bit;
      break;
    }
    case '}':
    case ']':
      if (is_array(depth_) != (c == ']')) return Next::kDamagedHere;
      if (--depth_ == 0) {
        depth_ = 1;  // until it is given
        return Next::kWhole;
      }
      break;
    default: break;
  }
  before_ = c;
  return Next::kGoOn;
}

}  // namespace hotlap
