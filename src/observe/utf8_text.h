#pragma once
// A short text in place, for names that are put together. Holds UTF-8; what does not fit is cut between characters.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "observe/names.h"

namespace hotlap {

class Utf8Text {
 public:
  Utf8Text& add(std::string_view text) {
    text = cut_utf8(text, sizeof bytes_ - size_);
    if (!text.empty()) std::memcpy(bytes_ + size_, text.data(), text.size());
    size_ += text.size();
    return *this;
  }
  Utf8Text& add(std::uint64_t number) {
    char digits[20];
    std::size_t at = sizeof digits;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return add({digits + at, sizeof digits - at});
  }
  // wchar_t is UTF-32 here; what is no character becomes U+FFFD.
  Utf8Text& add(const wchar_t* text) {
    for (; *text != L'\0' && size_ < kObserverNameBytesMax; ++text) add_character(static_cast<std::uint32_t>(*text));
    return *this;
  }
  std::string_view view() const { return {bytes_, size_}; }

 private:
  void add_character(std::uint32_t code) {
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) code = 0xFFFD;
    char raw[4];
    std::size_t bytes = 1;
    if (code < 0x80) {
      raw[0] = static_cast<char>(code);
    } else {
      bytes = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      constexpr unsigned char kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
      for (std::size_t at = bytes - 1; at > 0; --at, code >>= 6) raw[at] = static_cast<char>(0x80 | (code & 0x3F));
      raw[0] = static_cast<char>(kLead[bytes] | code);
    }
    if (size_ + bytes <= sizeof bytes_) {
      std::memcpy(bytes_ + size_, raw, bytes);
      size_ += bytes;
    }
  }

  char bytes_[kObserverNameBytesMax + 128];
  std::size_t size_ = 0;
};

}  // namespace hotlap
