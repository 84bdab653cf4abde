#pragma once
// Whether this program was built with a sanitizer, which maps terabytes that it never touches: a limit on
// address space would end it.
namespace hotlap {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHasSanitizer = true;
#else
inline constexpr bool kHasSanitizer = false;
#endif

}  // namespace hotlap
