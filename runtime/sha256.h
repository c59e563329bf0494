// SHA-256 of a stream of bytes, in lower-case hex.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace l3c::runtime {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Add(std::span<const std::byte> bytes);
  std::string Finish();  // once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Sha256Of(std::string_view bytes);

}  // namespace l3c::runtime
