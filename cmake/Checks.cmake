# The quick checks of tools/check.sh lint run as tests, so that nobody forgets them.
# The Python that has torch where the machine's package manager brought it; another one on PATH may not.
set(HOTLAP_PYTHON /usr/bin/python3 CACHE FILEPATH "Python that runs the tests: with pytest, numpy and torch")

foreach(_check layers text)
  add_test(NAME check.${_check} COMMAND ${HOTLAP_PYTHON} -B ${CMAKE_SOURCE_DIR}/tools/check_${_check}.py)
  set_tests_properties(check.${_check} PROPERTIES LABELS fast)
endforeach()
add_test(NAME check.python COMMAND ${CMAKE_SOURCE_DIR}/tools/check.sh python-syntax)
set_tests_properties(check.python PROPERTIES LABELS fast)
add_test(NAME check.format COMMAND ${CMAKE_SOURCE_DIR}/tools/check.sh format)
set_tests_properties(check.format PROPERTIES LABELS fast SKIP_RETURN_CODE 77)
file(GLOB _tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/tests/test_*.py)
foreach(_file IN LISTS _tests)
  get_filename_component(_name ${_file} NAME_WE)
  add_test(NAME tools.${_name} COMMAND ${HOTLAP_PYTHON} -B ${_file})
  set_tests_properties(tools.${_name} PROPERTIES LABELS fast)
endforeach()
