// Results kept from run to run under everything that they depend on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace l3c::support {

// Implementations may forget anything at any time, and never return what was not stored under
// exactly the same kind and key. From any thread.
class BlobCache {
 public:
  virtual ~BlobCache() = default;

  // `kind` names what is kept ("kernel"); `label` is for readers only ("l0/train") and says in
  // reports what was reused. The key may be of any length.
  virtual std::optional<std::string> Load(std::string_view kind, std::string_view label,
                                          std::string_view key) = 0;
  virtual void Store(std::string_view kind, std::string_view key, std::string_view bytes) = 0;
};

}  // namespace l3c::support
