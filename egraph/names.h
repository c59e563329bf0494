// Maps from names, asked with string views.
//
// Abseil builds differ in whether absl::string_view is std::string_view; with a hash of our own the
// map takes the standard one under both. Nothing iterates such a map.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace l3c::egraph {

struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
};

struct NameEqual {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return a == b; }
};

template <typename T>
using NameMap = absl::flat_hash_map<std::string, T, NameHash, NameEqual>;

// The same without copies of the names, which must outlive it.
template <typename T>
using NameViewMap = absl::flat_hash_map<std::string_view, T, NameHash, NameEqual>;

}  // namespace l3c::egraph
