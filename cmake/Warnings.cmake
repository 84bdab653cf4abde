# Compiler warnings and sanitizers, as one interface target that every target of ours links.
add_library(hotlap_warnings INTERFACE)
target_compile_options(hotlap_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wmissing-declarations -Wold-style-cast -Wimplicit-fallthrough
  # g++ 12 at -O3 warns falsely when a one-character literal is assigned to a std::string.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # Designated initialisers that leave defaulted members out are the point of our spec structs.
  -Wno-missing-field-initializers)
# Errors with the compilers of our checks; with a newer one a new warning must not keep a user from building.
if(HOTLAP_WERROR AND (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13))
  target_compile_options(hotlap_warnings INTERFACE -Werror)
endif()

if(HOTLAP_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(HOTLAP_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT HOTLAP_SANITIZE STREQUAL "")
  message(FATAL_ERROR "HOTLAP_SANITIZE is '${HOTLAP_SANITIZE}'; it takes 'address', 'thread' or nothing")
endif()

if(HOTLAP_FUZZ)
  # Every library reports which branches an input reaches; without it libFuzzer only guesses.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
