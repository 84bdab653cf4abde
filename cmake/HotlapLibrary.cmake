# One helper per kind of target. Ranks come from layers.txt, so that CMake and tools/check_layers.py read the same table.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/layers.txt)
file(STRINGS ${CMAKE_SOURCE_DIR}/layers.txt _lines REGEX "^[0-9]")
set(HOTLAP_LIBRARIES "")  # in the order of layers.txt, which is by rank
foreach(_line IN LISTS _lines)
  string(REGEX MATCH "^([0-9]+)[ \t]+([a-z_]+)" _ "${_line}")
  set(HOTLAP_RANK_${CMAKE_MATCH_2} ${CMAKE_MATCH_1})
  list(APPEND HOTLAP_LIBRARIES ${CMAKE_MATCH_2})
endforeach()

# hotlap_library(name SOURCES … HEADERS … DEPS <lower-ranked libraries> LINK <third-party targets> TESTS <*_test.cpp>)
function(hotlap_library name)
  cmake_parse_arguments(A "" "" "SOURCES;HEADERS;DEPS;LINK;TESTS" ${ARGN})
  add_library(hotlap_${name} STATIC ${A_SOURCES})
  set_target_properties(hotlap_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_sources(hotlap_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${CMAKE_SOURCE_DIR}/src FILES ${A_HEADERS})
  set_property(TARGET hotlap_${name} PROPERTY VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(hotlap_${name} PRIVATE hotlap_warnings)
  foreach(d IN LISTS A_DEPS)
    if(NOT HOTLAP_RANK_${d} LESS HOTLAP_RANK_${name})
      message(FATAL_ERROR
        "layering: ${name} (rank ${HOTLAP_RANK_${name}}) may not depend on ${d} (rank ${HOTLAP_RANK_${d}})")
    endif()
    target_link_libraries(hotlap_${name} PUBLIC hotlap_${d})
  endforeach()
  target_link_libraries(hotlap_${name} PRIVATE ${A_LINK})
  if(A_TESTS)
    hotlap_test(${name}_test SOURCES ${A_TESTS} LINK hotlap_${name} ${A_LINK})
  endif()
endfunction()

# hotlap_program(name SOURCES … LINK …): build/<preset>/<name>, which needs nothing at run time but glibc.
function(hotlap_program name)
  cmake_parse_arguments(A "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_LINK} hotlap_warnings)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  if(HOTLAP_SANITIZE STREQUAL "")
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections)
    add_test(NAME check.needs_only_glibc.${name}
      COMMAND ${HOTLAP_PYTHON} ${CMAKE_SOURCE_DIR}/tools/check_binary.py $<TARGET_FILE:${name}>)
    set_tests_properties(check.needs_only_glibc.${name} PROPERTIES LABELS fast)
  endif()
endfunction()

# hotlap_test(name SOURCES … LINK … [LABELS …]): a GoogleTest program; every test case is one ctest entry.
function(hotlap_test name)
  cmake_parse_arguments(A "" "" "SOURCES;LINK;LABELS" ${ARGN})
  if(NOT A_LABELS)
    set(A_LABELS fast)
  endif()
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_LINK} hotlap_warnings GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE HOTLAP_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS "${A_LABELS}" TIMEOUT 300)
endfunction()

# hotlap_python_test(name PATH [LABELS …] [TIMEOUT s]): one pytest file (or folder) as one ctest entry. Tests find the
# program in $HOTLAP, the repository in $HOTLAP_SOURCE_DIR, and write to temporary folders only.
function(hotlap_python_test name path)
  cmake_parse_arguments(A "" "TIMEOUT" "LABELS" ${ARGN})
  if(NOT A_LABELS)
    set(A_LABELS fast)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  add_test(NAME ${name} COMMAND ${HOTLAP_PYTHON} -B -m pytest -q -p no:cacheprovider ${path}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT} ENVIRONMENT
    "HOTLAP=${CMAKE_BINARY_DIR}/hotlap;HOTLAP_SOURCE_DIR=${CMAKE_SOURCE_DIR};PYTHONPATH=${CMAKE_SOURCE_DIR}/python/src")
endfunction()

# hotlap_fuzz(name LINK …): fuzz/<name>_fuzz.cpp. In the `fuzz` preset a libFuzzer program; in every other build a
# program that replays fuzz/corpus/<name>/, so that targets never rot and double as reproducers.
function(hotlap_fuzz name)
  cmake_parse_arguments(A "" "" "LINK" ${ARGN})
  add_executable(${name}_fuzz ${CMAKE_SOURCE_DIR}/fuzz/${name}_fuzz.cpp)
  target_link_libraries(${name}_fuzz PRIVATE ${A_LINK} hotlap_warnings)
  target_compile_options(${name}_fuzz PRIVATE -Wno-missing-declarations)  # the entry point has its name from libFuzzer
  if(HOTLAP_FUZZ)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(${name}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/fuzz/replay_main.cpp)
    add_test(NAME fuzz.replay.${name} COMMAND ${name}_fuzz ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz.replay.${name} PROPERTIES LABELS fast TIMEOUT 300)
  endif()
endfunction()

# hotlap_plugin_table(collect CollectorSpec collector all_collectors src/collect/plugins)
# writes one sorted, explicit table from the file names: plugins/cpu.cpp must define `extern constinit const
# CollectorSpec collector_cpu{…};`. A file whose symbol does not match fails at link time.
function(hotlap_plugin_table lib type prefix fn dir)
  file(GLOB _files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.cpp)
  list(FILTER _files EXCLUDE REGEX "_test\\.cpp$")
  list(SORT _files)
  set(_decl "")
  set(_rows "")
  foreach(f IN LISTS _files)
    get_filename_component(n ${f} NAME_WE)
    string(APPEND _decl "extern const ${type} ${prefix}_${n};\n")
    string(APPEND _rows "    &${prefix}_${n},\n")
  endforeach()
  list(LENGTH _files _count)
  set(_out ${CMAKE_BINARY_DIR}/gen/${lib}_${prefix}_table.cpp)
  file(CONFIGURE OUTPUT ${_out} CONTENT "// Generated from the file names in ${dir}.\n#include <array>\n\n#include \"${lib}/registry.h\"\n\nnamespace hotlap {\n${_decl}namespace {\nconstexpr std::array<const ${type}*, ${_count}> kAll{\n${_rows}};\n}  // namespace\nstd::span<const ${type}* const> ${fn}() { return kAll; }\n}  // namespace hotlap\n" @ONLY)
  target_sources(hotlap_${lib} PRIVATE ${_files} ${_out})
endfunction()
