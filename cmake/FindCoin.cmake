# COIN-OR's Cbc with what it stands on: target Coin::Cbc, COIN_FOUND.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(COIN QUIET IMPORTED_TARGET cbc)
endif()
if(COIN_FOUND AND NOT TARGET Coin::Cbc)
  add_library(Coin::Cbc INTERFACE IMPORTED)
  target_link_libraries(Coin::Cbc INTERFACE PkgConfig::COIN)
endif()
