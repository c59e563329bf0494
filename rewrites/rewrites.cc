#include "rewrites/rewrites.h"

#include <set>
#include <string>

namespace l3c::rewrites {
namespace {

std::set<std::string, std::less<>>& LeftOut() {
  static auto* names = new std::set<std::string, std::less<>>();
  return *names;
}

}  // namespace

bool LeaveOut(std::string_view name) {
  if (Find(name) == nullptr) return false;
  LeftOut().emplace(name);
  return true;
}

const RuleFile* Find(std::string_view name) {
  if (LeftOut().contains(name)) return nullptr;
  for (const RuleFile& file : All()) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

}  // namespace l3c::rewrites
