# `make install` and `make dist`: the program, which carries the hook, and the Python package for `import hotlap`.
if(TARGET hotlap)
  install(TARGETS hotlap RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # Where the program looks for them: beside its own folder, whatever the machine calls its folders of libraries.
  get_property(_observers GLOBAL PROPERTY HOTLAP_OBSERVERS)
  if(_observers)
    install(TARGETS ${_observers} LIBRARY DESTINATION lib/hotlap)
  endif()
  # Where bash and zsh look for completions by themselves.
  foreach(_shell bash zsh)
    set(_script ${CMAKE_BINARY_DIR}/gen/completion.${_shell})
    add_custom_command(OUTPUT ${_script}
      COMMAND hotlap completion ${_shell} > ${_script}
      DEPENDS hotlap VERBATIM)
    list(APPEND _completions ${_script})
  endforeach()
  add_custom_target(completions ALL DEPENDS ${_completions})
  install(FILES ${CMAKE_BINARY_DIR}/gen/completion.bash RENAME hotlap
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${CMAKE_BINARY_DIR}/gen/completion.zsh RENAME _hotlap
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
if(EXISTS ${CMAKE_SOURCE_DIR}/python/src)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/src/ DESTINATION ${CMAKE_INSTALL_DATADIR}/hotlap/python
    FILES_MATCHING PATTERN "*.py" PATTERN "py.typed"
    PATTERN "__pycache__" EXCLUDE PATTERN "*.egg-info" EXCLUDE)
endif()
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
