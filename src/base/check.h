#pragma once
// Invariants. A failed check is a bug of ours: it prints the condition with its place and aborts. Never for bad input.
namespace hotlap::detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;
}  // namespace hotlap::detail

#define HOTLAP_CHECK(condition)                                       \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      ::hotlap::detail::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)

#ifdef NDEBUG
#define HOTLAP_DCHECK(condition) \
  do {                           \
    (void)sizeof(condition);     \
  } while (false)
#else
#define HOTLAP_DCHECK(condition) HOTLAP_CHECK(condition)
#endif
