# Two helpers, so that every folder's CMakeLists.txt reads as a list of its files.
#
#   l3c_library(NAME SOURCES a.cc b.cc [APART c.cc d.cc] DEPS other_targets…)
#   l3c_test(NAME SOURCES x_test.cc [APART y_test.cc] DEPS targets…)      # gtest, registered with ctest

# GCC 12 takes default member initialisers of moved aggregates for uninitialised reads.
set(L3C_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers
                 -Wno-maybe-uninitialized)
# A kernel, an interpreter and a compiled plan must agree bit for bit, so the
# host compiler may not contract a*b+c on its own.
set(L3C_FLOATING_POINT -ffp-contract=off)

get_filename_component(L3C_ROOT ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)

# Several files of a target in one go take 40 % less time to compile. Files of one kind, as the
# layers of a registry are, have local names in common: they stand under APART and compile alone.
option(L3C_UNITY "Compile several files of a target at once" OFF)

function(l3c_unity name)  # the files of it that compile alone…
  if(L3C_UNITY)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    # A name in one file hides nothing in another.
    target_compile_options(${name} PRIVATE -Wno-shadow)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

function(l3c_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;APART;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES} ${ARG_APART})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${L3C_ROOT}>)
  target_compile_options(${name} PRIVATE ${L3C_WARNINGS} ${L3C_FLOATING_POINT})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  l3c_unity(${name} ${ARG_APART})
endfunction()

# Everything but the end-to-end tests: what the sanitizer builds need.
add_custom_target(unit_tests)

function(l3c_test name)
  if(NOT L3C_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;APART;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES} ${ARG_APART})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${L3C_WARNINGS} ${L3C_FLOATING_POINT})
  # A test's own code need not be fast; it compiles a third faster this way.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_definitions(${name} PRIVATE L3C_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  l3c_unity(${name} ${ARG_APART})
  add_test(NAME ${name} COMMAND ${name})
  add_dependencies(unit_tests ${name})
endfunction()
