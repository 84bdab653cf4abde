#pragma once
// Which GPU of the machine one of CUDA's devices is: a process may see few of them, in an order of its own.
#include <cstddef>
#include <cstdint>

namespace hotlap {

// The place of the GPU with this PCI address ("0000:3B:00.0", the domain of 4 or 8 digits) among those that the driver
// lists in `folder`, in the order of NVML, which is that of addresses; -1: it is not there.
int gpu_index_of_pci(const char* address, const char* folder);

// That of the device number `ordinal` by a list of numbers ("2,3"), as in CUDA_VISIBLE_DEVICES. No list: the same
// number. -1: the list names it otherwise, or not.
int gpu_index_of_list(std::uint32_t ordinal, const char* list);

}  // namespace hotlap
