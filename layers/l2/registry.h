// A table of entries, found by the name of their form. Pointers to entries stay valid: an entry
// that a test or a plug-in adds moves none.
#pragma once

#include <deque>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/l2/form.h"

namespace l3c::l2 {

// E has a member `Entry form`.
template <class E>
class Registry {
 public:
  Registry(Family family, std::vector<std::vector<E>> parts) : family_(family) {
    for (std::vector<E>& part : parts) {
      for (E& entry : part) Add(std::move(entry));
    }
  }

  const std::deque<E>& all() const { return entries_; }  // in registration order

  const E* Find(std::string_view name) const {
    for (const E& entry : entries_) {
      if (entry.form.name == name) return &entry;
    }
    return nullptr;
  }

  // std::invalid_argument when the name is taken.
  void Add(E entry) {
    if (Find(entry.form.name) != nullptr || IsReservedName(family_, entry.form.name)) {
      throw std::invalid_argument(std::string(FamilyName(family_)) + " '" + entry.form.name +
                                  "' cannot be registered: there is one already");
    }
    entries_.push_back(std::move(entry));
  }

 private:
  Family family_;
  std::deque<E> entries_;
};

}  // namespace l3c::l2
