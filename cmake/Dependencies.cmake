# Third-party libraries, linked statically so that the program needs nothing but glibc.
find_package(Threads REQUIRED)
find_package(GTest REQUIRED)

# hotlap_archive(target archive): an imported target for lib<archive>.a
function(hotlap_archive target archive)
  find_library(${target}_ARCHIVE NAMES lib${archive}.a REQUIRED)
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${${target}_ARCHIVE})
endfunction()
hotlap_archive(hotlap_sqlite3 sqlite3)
target_link_libraries(hotlap_sqlite3 INTERFACE m ${CMAKE_DL_LIBS} Threads::Threads)
hotlap_archive(hotlap_zstd zstd)
hotlap_archive(hotlap_zlib z)

# Debian ships fmt as a shared object only; its implementation is in its headers, so it is compiled here, once.
add_library(hotlap_fmt STATIC ${CMAKE_SOURCE_DIR}/cmake/fmt_static.cpp)

# hotlap_headers(target header): an interface target for a header-only library; fails at configure time if it is absent.
function(hotlap_headers target header)
  find_path(${target}_DIR ${header} REQUIRED)
  add_library(${target} INTERFACE)
endfunction()
# ISA-L: declarations only; the library is looked for at run time (design 0001).
hotlap_headers(hotlap_isal isa-l/igzip_lib.h)
hotlap_headers(hotlap_spdlog spdlog/spdlog.h)
target_compile_definitions(hotlap_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
target_link_libraries(hotlap_spdlog INTERFACE hotlap_fmt Threads::Threads)
hotlap_headers(hotlap_rapidjson rapidjson/writer.h)
hotlap_headers(hotlap_cli11 CLI/CLI.hpp)
hotlap_headers(hotlap_tomlplusplus toml++/toml.h)
hotlap_headers(hotlap_boost_math boost/math/distributions/students_t.hpp)
