# `make install` and `make dist`: the program, which carries the hook, and the Python package for `import hotlap`.
if(TARGET hotlap)
  install(TARGETS hotlap RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(EXISTS ${CMAKE_SOURCE_DIR}/python/src)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/src/ DESTINATION ${CMAKE_INSTALL_DATADIR}/hotlap/python
    FILES_MATCHING PATTERN "*.py" PATTERN "py.typed"
    PATTERN "__pycache__" EXCLUDE PATTERN "*.egg-info" EXCLUDE)
endif()
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
