#pragma once
// What a program that uses NVTX version 2 or 3 and a library that it injects say to each other: tables of functions
// whose numbers and layouts NVTX keeps for ever. Declared here as far as we use it; there is no header of NVIDIA's on
// the machines that build us.
#include <cstddef>
#include <cstdint>

namespace hotlap::nvtx {

// InitializeInjectionNvtx2(get_export_table) asks for the table of kCallbacks.
using GetExportTable = const void* (*)(std::uint32_t table);
inline constexpr std::uint32_t kCallbacks = 1;

using Function = void (*)();
// `table` becomes an array of `size` places, by the numbers below; each leads to a function pointer that is ours to
// set.
struct CallbacksTable {
  std::size_t struct_size;
  int (*function_table)(std::uint32_t module, Function*** table, unsigned int* size);
};
inline constexpr std::uint32_t kModuleCore = 1;
inline constexpr std::uint32_t kModuleDomains = 5;

enum Core : unsigned int {
  kMarkEx = 1,
  kMarkA = 2,
  kMarkW = 3,
  kRangeStartEx = 4,
  kRangeStartA = 5,
  kRangeStartW = 6,
  kRangeEnd = 7,
  kRangePushEx = 8,
  kRangePushA = 9,
  kRangePushW = 10,
  kRangePop = 11,
  kNameCategoryA = 12,
  kNameCategoryW = 13,
  kNameOsThreadA = 14,
  kNameOsThreadW = 15,
};
enum Domains : unsigned int {
  kDomainMarkEx = 1,
  kDomainRangeStartEx = 2,
  kDomainRangeEnd = 3,
  kDomainRangePushEx = 4,
  kDomainRangePop = 5,
  kDomainNameCategoryA = 8,
  kDomainNameCategoryW = 9,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW = 11,
  kDomainCreateA = 12,
  kDomainCreateW = 13,
  kDomainDestroy = 14,
};

// Handles are the tool's own; the program hands them back.
using Domain = void*;
using RegisteredString = void*;
using RangeId = std::uint64_t;

union Message {
  const char* ascii;
  const wchar_t* unicode;
  RegisteredString registered;
};
enum MessageType : std::int32_t { kMessageNone = 0, kMessageAscii = 1, kMessageUnicode = 2, kMessageRegistered = 3 };
enum PayloadType : std::int32_t { kPayloadUint64 = 1, kPayloadInt64 = 2, kPayloadUint32 = 4, kPayloadInt32 = 5 };

struct EventAttributes {
  std::uint16_t version;
  std::uint16_t size;  // of the struct that the program was compiled with
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type;
  std::int32_t reserved;
  union {
    std::uint64_t uint64;
    std::int64_t int64;
    std::uint32_t uint32;
    std::int32_t int32;
  } payload;
  std::int32_t message_type;
  Message message;
};
static_assert(offsetof(EventAttributes, payload) == 24 && offsetof(EventAttributes, message) == 40 &&
              sizeof(EventAttributes) == 48);

inline constexpr int kNotTracked = -2;  // of a push or pop

}  // namespace hotlap::nvtx
