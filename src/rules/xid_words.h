#pragma once
// What the numbers of NVIDIA's driver errors (XID) mean for the one who trains. Thread-safe: nothing here has state.
#include <cstdint>
#include <string>
#include <string_view>

namespace hotlap {

enum class XidBlame : std::uint8_t { kAftermath, kProgram, kDriver, kWear, kBoard };  // in the order of their gravity

struct XidMeaning {
  int number = 0;
  XidBlame blame = XidBlame::kDriver;
  std::string_view words;
  bool is_fatal() const { return blame == XidBlame::kBoard; }
};
// Of a number that is not listed: an error of the driver, without more.
XidMeaning xid_meaning(int number);
// The gravest of "79, 45"; of several the first.
XidMeaning gravest_xid(std::string_view numbers);
// What to do about it.
std::string_view xid_advice(const XidMeaning& xid);

}  // namespace hotlap
