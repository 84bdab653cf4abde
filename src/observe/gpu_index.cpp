#include "observe/gpu_index.h"

#include <dirent.h>

#include <cstdio>
#include <cstdlib>

namespace hotlap {
namespace {

// -1: no address of a PCI device.
long long number_of_pci(const char* address) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  unsigned function = 0;
  if (std::sscanf(address, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) return -1;
  if (bus > 0xFF || device > 0x1F || function > 7) return -1;
  return (static_cast<long long>(domain) << 16) | (bus << 8) | (device << 3) | function;
}

}  // namespace

int gpu_index_of_pci(const char* address, const char* folder) {
  const long long own = number_of_pci(address);
  DIR* listing = own < 0 ? nullptr : ::opendir(folder);
  if (listing == nullptr) return -1;
  int before = 0;
  bool is_there = false;
  while (const dirent* entry = ::readdir(listing)) {  // NOLINT(concurrency-mt-unsafe): a listing of our own
    const long long other = number_of_pci(entry->d_name);
    is_there |= other == own;
    if (other >= 0 && other < own) ++before;
  }
  ::closedir(listing);
  return is_there ? before : -1;
}

int gpu_index_of_list(std::uint32_t ordinal, const char* list) {
  if (list == nullptr || *list == '\0') return static_cast<int>(ordinal);
  for (std::uint32_t at = 0;; ++at) {
    char* end = nullptr;
    const long index = std::strtol(list, &end, 10);
    if (end == list || (*end != ',' && *end != '\0') || index < 0 || index > 10'000) return -1;
    if (at == ordinal) return static_cast<int>(index);
    if (*end == '\0') return -1;
    list = end + 1;
  }
}

}  // namespace hotlap
